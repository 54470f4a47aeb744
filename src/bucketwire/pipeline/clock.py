"""Notices that the clock was set back, and ends the waits that were counted by it as it was.

    look     all the time: it shows less than it did a moment ago
    compare  with a time that was written down before this pipeline was at work

Pauses of topics, and the times at which messages are due, are times of the clock: they hold for all
processes, and through a restart. When it is set back by an hour, each of them is an hour further off. How
long a wait was meant to be is not written down, so all that are long are ended: what waits is tried once
too early.
"""

import time
from math import inf

from bucketwire.errors import Unavailable
from bucketwire.log import get_logger
from bucketwire.metabase.base import Queue

FAR_SECONDS = 10.0
"""A clock that is set back by less is let be: that holds up a topic no longer than its next wait would."""
SETTLE_SECONDS = 5.0
"""By then claims are kept by the clock as it is, and calls that began before have told what they had to."""

log = get_logger("pipeline")


class ClockWatch:
    """Of one pipeline, at work or standing by."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._latest_ns = time.time_ns()
        self._hasten_at = inf

    def look(self) -> None:
        """To be called now and then; returns soon."""
        self.compare(self._latest_ns)
        self._latest_ns = time.time_ns()
        if time.monotonic() >= self._hasten_at:
            self._hasten()

    def compare(self, past_ns: int) -> None:
        """The clock once showed this. If it shows less now, waits are ended, in a while."""
        ahead_seconds = (past_ns - time.time_ns()) / 1e9
        if ahead_seconds > FAR_SECONDS:
            log.warning("clock_set_back", seconds=round(ahead_seconds, 1))
            self._hasten_at = time.monotonic() + SETTLE_SECONDS

    def _hasten(self) -> None:
        try:
            self._queue.hasten(time.time_ns() + int(FAR_SECONDS * 1e9))
        except Unavailable as error:
            log.warning("waits_not_ended", reason=error.message)
            self._hasten_at = time.monotonic() + SETTLE_SECONDS
        else:
            self._hasten_at = inf
