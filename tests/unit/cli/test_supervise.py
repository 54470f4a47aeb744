"""The supervisor: restarts, stops, leaves nothing behind."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

from bucketwire.cli import supervise
from bucketwire.cli.supervise import Part, Start, Supervisor
from bucketwire.errors import Unavailable

PATIENCE_SECONDS = 20
MORE_THAN_ANY_PID = 1 << 23


def until(condition: Callable[[], bool]) -> None:
    ends = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < ends, "waited in vain"
        time.sleep(0.02)


def script(name: str, code: str, after_death: Callable[[], None] = lambda: None) -> Part:
    return Part(name, lambda: Start([sys.executable, "-c", code], after_death))


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


def test_stopping_ends_even_a_part_that_will_not_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervise, "STOP_SECONDS", 0.2)
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
        "from bucketwire.cli.supervise import Part, Start, Supervisor\n"
        f"Supervisor([Part('p', lambda: Start([sys.executable, '-c', {inner!r}]))], os.environ, print).run()"
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

    def refuse_twice() -> Start:
        attempts.append(time.monotonic())
        if len(attempts) < 3:
            raise Unavailable("database or disk is full")
        return script("late", touch(started)).prepare()

    started, other = tmp_path / "started", tmp_path / "other"
    with supervised(Part("late", refuse_twice), script("other", touch(other))) as (_, said):
        until(lambda: started.exists() and other.exists())
    assert len(attempts) == 3
    assert "late cannot start (database or disk is full): starting it again in 0.5 s" in said


def test_a_part_that_has_run_well_is_started_again_soon_however_often_it_died(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(supervise, "STEADY_SECONDS", 0.0)
    with supervised(script("pipeline", "raise SystemExit(1)")) as (_, said):
        until(lambda: len(said) >= 3)
    assert {line.rpartition("in ")[2] for line in said} == {"0.5 s"}


def test_the_wait_has_a_limit_however_often_a_part_died(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervise, "LONGEST_DELAY_SECONDS", 0.01)
    with supervised(script("pipeline", "raise SystemExit(1)")) as (supervisor, said):
        until(lambda: len(said) >= 1)
        supervisor._runs[0].deaths = 5_000
        until(lambda: len(said) >= 3)
    assert said[-1].endswith("starting it again in 0.01 s")


def test_each_start_may_have_another_command(tmp_path: Path) -> None:
    names = tmp_path / "names"
    numbers = count(1)

    def prepare() -> Start:
        code = f"import sys; open({str(names)!r}, 'a').write(sys.argv[1])"
        return Start([sys.executable, "-c", code, str(next(numbers))])

    with supervised(Part("pipeline", prepare)):
        until(lambda: names.exists() and names.read_text().startswith("12"))


def test_what_is_to_do_after_a_death_is_done_when_all_children_have_ended_too(tmp_path: Path) -> None:
    left_alive: list[bool] = []
    part = leaving(child := tmp_path / "child", lambda: left_alive.append(alive(int(child.read_text()))))
    with supervised(part):
        until(lambda: bool(left_alive))
    assert not left_alive[0]


def test_while_children_of_a_dead_part_do_not_end_its_end_is_not_settled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(supervise, "END_SECONDS", 0.2)
    monkeypatch.setattr(supervise, "_running", lambda _: [MORE_THAN_ANY_PID])
    settled: list[bool] = []
    with supervised(script("pipeline", "raise SystemExit(1)", lambda: settled.append(True))) as (_, said):
        until(lambda: len(said) >= 2)
    assert said[0] == "the end of pipeline is not settled (processes that it has started do not end)"
    assert not settled


def leaving(child: Path, after_death: Callable[[], None]) -> Part:
    """A part that dies and leaves a child behind, in a process group of its own as Spark's are."""
    code = (
        "import subprocess, sys\n"
        "sleep = [sys.executable, '-c', 'import time; time.sleep(600)']\n"
        "grandchild = subprocess.Popen(sleep, process_group=0)\n"
        f"open({str(child)!r}, 'w').write(str(grandchild.pid))"
    )
    return script("pipeline", code, after_death)


def test_what_ends_the_watch_over_a_part_stops_all_and_is_raised(tmp_path: Path) -> None:
    def fail() -> Start:
        until(other.exists)
        raise RuntimeError("a mistake of ours")

    other = tmp_path / "other"
    supervisor = Supervisor([Part("broken", fail), script("other", touch(other))], os.environ, print)
    with pytest.raises(RuntimeError, match="a mistake of ours"):
        supervisor.run()
    assert supervisor._runs[1].process is None


def test_while_a_death_cannot_be_settled_the_other_parts_are_watched(tmp_path: Path) -> None:
    back, starts = threading.Event(), tmp_path / "starts"

    def settle() -> None:
        back.wait(PATIENCE_SECONDS)
        raise Unavailable("the database is away")

    other = script("other", f"open({str(starts)!r}, 'a').write('x')")
    with supervised(script("pipeline", "raise SystemExit(1)", settle), other) as (_, said):
        until(lambda: starts.exists() and len(starts.read_text()) >= 2)
        assert not [line for line in said if line.startswith("pipeline")]
        back.set()
        until(lambda: "the end of pipeline is not settled (the database is away)" in said)


def touch(path: Path) -> str:
    return f"import pathlib, time; pathlib.Path({str(path)!r}).touch(); time.sleep(60)"
