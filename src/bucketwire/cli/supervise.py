"""Runs the parts of the system as child processes: restarts those that die, stops all of them together.

Each part leads a session of its own, so that Ctrl-C reaches the supervisor alone and a part can be ended with
all that it has started: Spark's Python processes leave its process group, but not its session. A part holds
the reading end of a pipe as its standard input: when the supervisor is gone, however it went, the pipe closes
and the part stops by itself.

Each part is watched by a thread of its own: what has to be done before a start or after a death may block, as
when a database is away, and the other parts are watched all the same.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from bucketwire.errors import BucketwireError, Unavailable

FIRST_DELAY_SECONDS = 0.5
LONGEST_DELAY_SECONDS = 10.0
STEADY_SECONDS = LONGEST_DELAY_SECONDS
"""A part that has run for so long came up, and is started again without a long wait. One that dies again and
again after that is not started more often than one that never comes up."""
STOP_SECONDS = 3.5
END_SECONDS = 5.0
"""How long what is left of a part may take to end once it was killed."""
_LOOK_EVERY_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Start:
    """One start of a part: its command, and what to do when it has died.

    That is done when no process of the part's session runs any more. Where there is no /proc to find them in,
    it is done when its process group was killed. If they do not end in time it is not done, and that is said.
    """

    command: Sequence[str]
    after_death: Callable[[], None] = lambda: None


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the system: its name, and what is asked before each start of it.

    When that raises `BucketwireError` or `OSError` the start is put off.
    """

    name: str
    prepare: Callable[[], Start]


@dataclass(slots=True)
class _Run:
    """A part as it runs now, or waits to be started again."""

    part: Part
    process: subprocess.Popen[bytes] | None = None
    deaths: int = 0


@dataclass(slots=True)
class Supervisor:
    """Keeps the parts alive until `stop` is set."""

    parts: Sequence[Part]
    environment: Mapping[str, str]
    say: Callable[[str], None]
    stop: threading.Event = field(default_factory=threading.Event)
    _runs: list[_Run] = field(default_factory=list)
    _crashes: list[Exception] = field(default_factory=list)

    def run(self) -> None:
        """Start the parts and watch them; returns when `stop` is set and all of them have ended.

        What ends the watch over a part stops all of them, and is raised.
        """
        self._runs = [_Run(part) for part in self.parts]
        threads = [
            threading.Thread(target=self._keep, args=(run,), name=run.part.name, daemon=True)
            for run in self._runs
        ]
        for thread in threads:
            thread.start()
        self.stop.wait()
        ends = time.monotonic() + STOP_SECONDS + 1.0
        for thread in threads:  # one that still waits for a database has no process, and ends with us
            thread.join(max(0.0, ends - time.monotonic()))
        if self._crashes:
            raise self._crashes[0]

    def _keep(self, run: _Run) -> None:
        """Start the part and wait for its death, again and again."""
        try:
            while not self.stop.is_set():
                if (end := self._live(run)) is not None:
                    self._pause(run, end)
        except Exception as error:  # noqa: BLE001 - raised in `run`
            self._crashes.append(error)
        finally:
            self.stop.set()  # a part that nobody watches any more must not pass for one that runs

    def _live(self, run: _Run) -> str | None:
        """One life of the part: how it ended, None when it was stopped."""
        try:
            start = run.part.prepare()
            if self.stop.is_set():
                return None
            run.process = self._open(start)
        except (BucketwireError, OSError) as error:
            run.deaths += 1
            return f"cannot start ({error})"
        began = time.monotonic()
        code = self._wait(run.process)
        has_ended = _bury(run.process)
        run.process = None
        if code is None:
            return None
        run.deaths = 1 if time.monotonic() - began > STEADY_SECONDS else run.deaths + 1
        self._settle(run.part, start, has_ended=has_ended)
        return f"stopped ({_describe(code)})"

    def _open(self, start: Start) -> subprocess.Popen[bytes]:
        return subprocess.Popen(  # noqa: S603 - our own command
            start.command,
            stdin=subprocess.PIPE,
            env=dict(self.environment),
            start_new_session=True,
        )

    def _wait(self, process: subprocess.Popen[bytes]) -> int | None:
        """The exit code of a process that has died by itself; None when it had to stop, and has."""
        while (code := process.poll()) is None:
            if self.stop.wait(_LOOK_EVERY_SECONDS):
                self._end(process)
                return None
        return code

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.say("a part did not stop in time: ending it")

    def _settle(self, part: Part, start: Start, *, has_ended: bool) -> None:
        try:
            if not has_ended:
                raise Unavailable("processes that it has started do not end")
            start.after_death()
        except (BucketwireError, OSError) as error:
            self.say(f"the end of {part.name} is not settled ({error})")

    def _pause(self, run: _Run, end: str) -> None:
        doublings = min(run.deaths - 1, 10)
        delay = min(LONGEST_DELAY_SECONDS, FIRST_DELAY_SECONDS * 2**doublings)
        self.say(f"{run.part.name} {end}: starting it again in {delay:g} s")
        self.stop.wait(delay)


def stop_with_supervisor() -> None:
    """In a part: stop as on SIGTERM once the supervisor is gone, that is when standard input ends."""

    def watch() -> None:
        while os.read(sys.stdin.fileno(), 1024):
            continue
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="supervisor-watch", daemon=True).start()


def _bury(process: subprocess.Popen[bytes]) -> bool:
    """End what is left of a part and of its children; whether all of it has ended."""
    ends = time.monotonic() + END_SECONDS
    with suppress(ProcessLookupError):  # the whole group has ended by itself
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        process.communicate(timeout=END_SECONDS)
    while left := _running(process.pid):  # again and again: one of them may have forked meanwhile
        if time.monotonic() > ends:
            return False
        for pid in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_LOOK_EVERY_SECONDS)
    return True


def _running(session: int) -> list[int]:
    """The processes of a session, without dead ones that nobody has waited for. None without a /proc."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended meanwhile
            state, _, _, its_session = stat.read_text().rpartition(")")[2].split()[:4]
            if int(its_session) == session and state not in "ZX":
                found.append(int(stat.parent.name))
    return found


def _describe(code: int) -> str:
    return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
