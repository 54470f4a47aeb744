"""Whether the system is ready: writes are accepted, and the pipeline is processing what they change."""

import time
from dataclasses import dataclass
from threading import Lock

from bucketwire.config import CONSUMER
from bucketwire.errors import BucketwireError
from bucketwire.gateway.retention import HOUR_NS, Lag, pipeline_lag
from bucketwire.metabase.base import Metabase

ALIVE_SECONDS = 5.0
LOST = "changes were trimmed before they were delivered: see docs/operations.md, `bucketwire cursor skip`"


@dataclass(frozen=True, slots=True)
class ReadyState:
    """Why the system is not ready, if it is not, or what will make it so."""

    reason: str | None = None
    warning: str | None = None

    def page(self) -> dict[str, object]:
        """As /-/ready shows it."""
        if self.reason is not None:
            return {"ready": False, "reason": self.reason}
        return {"ready": True} if self.warning is None else {"ready": True, "warning": self.warning}


class Pulse:
    """For how long a pipeline has been silent.

    It tells when it was alive by its own clock, which may be another machine's, and wrong. When that time has
    moved on between two looks, it is alive now; from then on the difference of the clocks is known.
    """

    def __init__(self) -> None:
        self._alive_at_ns = 0
        self._looked_at = float("-inf")
        self._difference_ns = 0

    def silent_seconds(self, alive_at_ns: int, now_ns: int, moment: float) -> float:
        """By the time that the pipeline tells, and this machine's, looked at in that moment."""
        if alive_at_ns != self._alive_at_ns and moment - self._looked_at < ALIVE_SECONDS:
            self._difference_ns = now_ns - alive_at_ns
        self._alive_at_ns, self._looked_at = alive_at_ns, moment
        return (now_ns - alive_at_ns - self._difference_ns) / 1e9


class Readiness:
    """Asks the metabase. The look writes and flushes, so its result is kept for a second, whoever asks.

    Threads may ask at once: one of them looks, and the others wait for what it sees.
    """

    def __init__(self, metabase: Metabase, retention_hours: int) -> None:
        self._metabase = metabase
        self._retention_hours = retention_hours
        self._pulse = Pulse()
        self._looks = Lock()
        self._asked_at = float("-inf")
        self._state = ReadyState()

    def __call__(self) -> ReadyState:
        """The state as of a moment ago. Blocks."""
        with self._looks:
            if time.monotonic() - self._asked_at >= 1:
                self._state = look(self._metabase, self._retention_hours, self._pulse)
                self._asked_at = time.monotonic()
            return self._state


def look(metabase: Metabase, retention_hours: int, pulse: Pulse) -> ReadyState:
    """The state now."""
    try:
        metabase.check()
        alive_at_ns = metabase.cursors.alive_at_ns(CONSUMER)
        lag = pipeline_lag(metabase)
    except BucketwireError as error:
        return ReadyState(f"writes are not accepted: {error}")
    now_ns = time.time_ns()
    trouble = _pipeline_trouble(alive_at_ns, now_ns, pulse)
    return ReadyState(LOST if lag.lost else trouble, _warning(lag, retention_hours, now_ns))


def _pipeline_trouble(alive_at_ns: int | None, now_ns: int, pulse: Pulse) -> str | None:
    if not alive_at_ns:
        return "the pipeline is starting"
    silent_seconds = pulse.silent_seconds(alive_at_ns, now_ns, time.monotonic())
    if silent_seconds > ALIVE_SECONDS:
        return f"the pipeline has not reported for {silent_seconds:.0f} s"
    return None


def _warning(lag: Lag, retention_hours: int, now_ns: int) -> str | None:
    if lag.oldest_at_ns is None or now_ns - lag.oldest_at_ns <= retention_hours * HOUR_NS // 2:
        return None
    hours = lag.seconds(now_ns) / 3600
    return f"the pipeline is {hours:.0f} h behind: changes are kept for {retention_hours} h"
