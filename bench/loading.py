"""Load on a running system, and what it costs."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from bench.receiver import RunningReceiver
from wire import System, descendants


def load(system: System, bucket: str, **options: float) -> dict[str, Any]:
    """PUTs from a process of their own."""
    command = [sys.executable, "-m", "bench.load", "--port", str(system.port), "--bucket", bucket]
    for name, value in options.items():
        command += [f"--{name}", str(value)]
    result: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return result


def delays_ms(answered_at_ns: dict[str, int], receiver: RunningReceiver) -> list[float]:
    """From the answer to a PUT to the first receipt of its event."""
    first: dict[str, int] = {}
    for line in receiver.dump():
        key = json.loads(line["body"])["Records"][0]["s3"]["object"]["key"]
        first.setdefault(key, line["received_at_ns"])
    return [(first[key] - answered) / 1e6 for key, answered in answered_at_ns.items() if key in first]


def busy_cores(system: System, seconds: float) -> float:
    """CPU of all processes for that long, in cores; one that ends meanwhile does not count."""
    before = _cpu_seconds(system)
    time.sleep(seconds)
    return sum(used - before.get(pid, 0.0) for pid, used in _cpu_seconds(system).items()) / seconds


def _cpu_seconds(system: System) -> dict[int, float]:
    """What each process of the system has used so far."""
    found = {}
    for pid in [system.supervisor, *descendants(system.supervisor)]:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        found[pid] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return found
