"""Runs the parts of the system as child processes: restarts those that die, stops all of them together.

Each part leads a process group of its own, so that Ctrl-C reaches the supervisor alone and a part can
be ended with all its children. A part holds the reading end of a pipe as its standard input: when the
supervisor is gone, however it went, the pipe closes and the part stops by itself.
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

from bucketwire.errors import BucketwireError

FIRST_DELAY_SECONDS = 0.5
LONGEST_DELAY_SECONDS = 10.0
STEADY_SECONDS = 60.0
STOP_SECONDS = 3.5


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the system: its name and the command that runs it."""

    name: str
    command: Sequence[str]
    before_start: Callable[[], None] = lambda: None


@dataclass(slots=True)
class _Run:
    """A part as it runs now, or waits to be started again."""

    part: Part
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    start_at: float = 0.0
    deaths: int = 0


@dataclass(slots=True)
class Supervisor:
    """Keeps the parts alive until `stop` is set."""

    parts: Sequence[Part]
    environment: Mapping[str, str]
    say: Callable[[str], None]
    stop: threading.Event = field(default_factory=threading.Event)
    _runs: list[_Run] = field(default_factory=list)

    def run(self) -> None:
        """Start the parts and watch them; returns when `stop` is set and all of them have ended."""
        self._runs = [_Run(part) for part in self.parts]
        try:
            while not self.stop.is_set():
                for run in self._runs:
                    self._tend(run)
                self.stop.wait(0.1)
        finally:
            self._end_all()

    def _tend(self, run: _Run) -> None:
        now = time.monotonic()
        if run.process is None:
            if now >= run.start_at:
                self._start(run, now)
            return
        if (code := run.process.poll()) is not None:
            _bury(run.process)
            run.process = None
            run.deaths = 0 if now - run.started_at > STEADY_SECONDS else run.deaths + 1
            self._put_off(run, now, f"stopped ({_describe(code)})")

    def _put_off(self, run: _Run, now: float, why: str) -> None:
        delay = min(LONGEST_DELAY_SECONDS, FIRST_DELAY_SECONDS * 2 ** max(0, run.deaths - 1))
        run.start_at = now + delay
        self.say(f"{run.part.name} {why}: starting it again in {delay:g} s")

    def _start(self, run: _Run, now: float) -> None:
        try:
            run.part.before_start()
        except BucketwireError as error:
            run.deaths += 1
            self._put_off(run, now, f"cannot start ({error})")
            return
        run.process = subprocess.Popen(  # noqa: S603 - our own command
            run.part.command,
            stdin=subprocess.PIPE,
            env=dict(self.environment),
            start_new_session=True,
        )
        run.started_at = now

    def _end_all(self) -> None:
        running = [run.process for run in self._runs if run.process is not None]
        for process in running:
            process.terminate()
        ends = time.monotonic() + STOP_SECONDS
        for process in running:
            try:
                process.wait(max(0.0, ends - time.monotonic()))
            except subprocess.TimeoutExpired:
                self.say("a part did not stop in time: ending it")
            _bury(process)


def stop_with_supervisor() -> None:
    """In a part: stop as on SIGTERM once the supervisor is gone, that is when standard input ends."""

    def watch() -> None:
        while os.read(sys.stdin.fileno(), 1024):
            continue
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="supervisor-watch", daemon=True).start()


def _bury(process: subprocess.Popen[bytes]) -> None:
    """End what is left of a part and of its children."""
    with suppress(ProcessLookupError):  # the whole group has ended by itself
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def _describe(code: int) -> str:
    return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
