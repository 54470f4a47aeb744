"""The supervisor: restarts, stops, leaves nothing behind."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bucketwire.cli.supervise import Part, Supervisor
from bucketwire.errors import Unavailable

PATIENCE_SECONDS = 20


def until(condition: Callable[[], bool]) -> None:
    ends = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < ends, "waited in vain"
        time.sleep(0.02)


def script(name: str, code: str) -> Part:
    return Part(name, [sys.executable, "-c", code])


@contextmanager
def supervised(*parts: Part) -> Iterator[tuple[Supervisor, list[str]]]:
    said: list[str] = []
    supervisor = Supervisor(parts, os.environ, said.append)
    thread = threading.Thread(target=supervisor.run)
    thread.start()
    try:
        yield supervisor, said
    finally:
        supervisor.stop.set()
        thread.join(PATIENCE_SECONDS)
        assert not thread.is_alive()


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_part_that_dies_is_started_again_and_that_is_said(tmp_path: Path) -> None:
    log = tmp_path / "starts"
    code = f"open({str(log)!r}, 'a').write('x'); raise SystemExit(3)"
    with supervised(script("gateway", code)) as (_, said):
        until(lambda: log.exists() and len(log.read_text()) >= 2)
    assert said[0] == "gateway stopped (exit code 3): starting it again in 0.5 s"


def test_a_part_that_keeps_dying_is_started_less_and_less_often() -> None:
    with supervised(script("gateway", "raise SystemExit(1)")) as (_, said):
        until(lambda: len(said) >= 3)
    assert [line.rpartition("in ")[2] for line in said[:3]] == ["0.5 s", "1 s", "2 s"]


def test_children_of_a_killed_part_are_ended_with_it(tmp_path: Path) -> None:
    child = tmp_path / "child"
    code = (
        "import subprocess, sys, time\n"
        "grandchild = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(child)!r}, 'w').write(str(grandchild.pid))\n"
        "time.sleep(600)"
    )
    with supervised(script("pipeline", code)) as (supervisor, said):
        until(lambda: child.exists() and child.read_text() != "")
        grandchild = int(child.read_text())
        process = supervisor._runs[0].process
        assert process is not None
        process.kill()
        until(lambda: len(said) == 1)
        assert said[0].startswith("pipeline stopped (killed by SIGKILL)")
        until(lambda: not alive(grandchild))


def test_stopping_ends_even_a_part_that_will_not_stop(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    code = (
        "import signal, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        f"open({str(ready)!r}, 'w').write('x')\n"
        "time.sleep(600)"
    )
    with supervised(script("pipeline", code)) as (supervisor, _):
        until(ready.exists)
        process = supervisor._runs[0].process
        assert process is not None
    assert process.returncode == -signal.SIGKILL


def test_a_part_stops_when_its_supervisor_was_killed(tmp_path: Path) -> None:
    part = tmp_path / "part"
    inner = (
        "import os, time\n"
        "from bucketwire.cli.supervise import stop_with_supervisor\n"
        "stop_with_supervisor()\n"
        f"open({str(part)!r}, 'w').write(str(os.getpid()))\n"
        "time.sleep(600)"
    )
    outer = (
        "import os, sys\n"
        "from bucketwire.cli.supervise import Part, Supervisor\n"
        f"Supervisor([Part('p', [sys.executable, '-c', {inner!r}])], os.environ, print).run()"
    )
    supervisor = subprocess.Popen([sys.executable, "-c", outer])
    until(lambda: part.exists() and part.read_text() != "")
    pid = int(part.read_text())
    assert alive(pid)
    supervisor.kill()
    supervisor.wait()
    until(lambda: not alive(pid))


def test_a_part_that_cannot_be_started_now_is_put_off_and_the_others_go_on(tmp_path: Path) -> None:
    attempts: list[float] = []

    def refuse_twice() -> None:
        attempts.append(time.monotonic())
        if len(attempts) < 3:
            raise Unavailable("database or disk is full")

    started, other = tmp_path / "started", tmp_path / "other"
    late = Part("late", script("late", touch(started)).command, before_start=refuse_twice)
    with supervised(late, script("other", touch(other))) as (_, said):
        until(lambda: started.exists() and other.exists())
    assert len(attempts) == 3
    assert "late cannot start (database or disk is full): starting it again in 0.5 s" in said


def touch(path: Path) -> str:
    return f"import pathlib, time; pathlib.Path({str(path)!r}).touch(); time.sleep(60)"
