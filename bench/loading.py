"""Load on a running system, and what it costs."""

import json
import os
import subprocess
import sys
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


def cpu_seconds(system: System) -> float:
    """What all processes of the system have used so far."""
    total = 0.0
    for pid in [system.supervisor, *descendants(system.supervisor)]:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total
