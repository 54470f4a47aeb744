"""The topics that a worker has in hand, for all others to see.

    take     nobody else tries these topics from now on; those that others have in hand are passed over
    keep     in a thread, again and again
    check    before each call: a process that was paused may find that another has the topic
    give_up  say how the topic is, and let others have it

A claim is a time a few seconds ahead, before which nobody else tries the topic. When the process dies it runs
out, however long a call of its might have lasted. One that has run out is kept if nobody has taken the topic.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Event, Lock

from bucketwire.errors import Conflict
from bucketwire.log import get_logger
from bucketwire.metabase.base import Queue
from bucketwire.metabase.queued import AHEAD_NS
from bucketwire.metabase.values import TopicHealth

SECONDS = 3.0
"""A topic waits for so long, at the most, after the death of the process that had it in hand."""
KEEP_EVERY_SECONDS = 1.0
LONGEST_SECONDS = 60.0
"""So much longer than a call may take, a topic is kept without a `check`: what hangs for good is let go."""

log = get_logger("pipeline")


@dataclass(slots=True)
class _Claim:
    until_ns: int
    checked_at: float


class Claims:
    """Those of one worker, whose calls may take so many seconds."""

    def __init__(self, queue: Queue, call_seconds: float) -> None:
        self._queue = queue
        self._longest_seconds = call_seconds + LONGEST_SECONDS
        self._held: dict[str, _Claim] = {}
        self._lock = Lock()
        """Guards `_held`; never held while the queue is asked."""

    def take(self, topics: Sequence[TopicHealth]) -> list[TopicHealth]:
        """Claim these topics, of which this is known; those that nobody else has in hand."""
        now_ns, until_ns = time.time_ns(), _until_ns()
        free = [each for each in topics if not now_ns < each.retry_at_ns < now_ns + AHEAD_NS]
        ours = self._queue.claim(free, until_ns) if free else set()
        with self._lock:
            self._held |= {arn: _Claim(until_ns, time.monotonic()) for arn in ours}
        return [each for each in free if each.topic_arn in ours]

    def check(self, arn: str) -> None:
        """Raise `Conflict` unless the topic is still ours."""
        with self._lock:
            claim = self._held.get(arn)
            if claim is None or time.time_ns() > claim.until_ns:
                raise Conflict("the claim on the topic has run out")
            claim.checked_at = time.monotonic()

    def give_up(self, health: TopicHealth) -> None:
        """Say how the topic is, as long as that is ours to say; raises `Conflict` if it is not."""
        self.check(health.topic_arn)
        self.drop(health.topic_arn)
        self._queue.report(health)

    def drop(self, arn: str) -> None:
        """Say nothing more of the topic: if it is claimed still, the claim runs out by itself."""
        with self._lock:
            self._held.pop(arn, None)

    def keep(self) -> None:
        """Put off the end of all claims, and forget those of topics that others have told of meanwhile."""
        self._let_go_of_what_hangs()
        with self._lock:
            held = dict(self._held)
        if not held:
            return
        until_ns = _until_ns()
        kept = self._queue.claim([TopicHealth(arn, 1, each.until_ns) for arn, each in held.items()], until_ns)
        with self._lock:
            for arn, claim in held.items():
                if arn in kept:
                    claim.until_ns = until_ns
                elif self._held.get(arn) is claim:
                    del self._held[arn]

    def keep_until(self, stopped: Event) -> None:
        """Keep them until then."""
        while not stopped.wait(KEEP_EVERY_SECONDS):
            try:
                self.keep()
            except Exception as error:  # noqa: BLE001 - without this thread every claim runs out
                log.warning("claims_not_kept", reason=f"{type(error).__name__}: {error}")

    def _let_go_of_what_hangs(self) -> None:
        too_long_ago = time.monotonic() - self._longest_seconds
        with self._lock:
            hanging = [arn for arn, claim in self._held.items() if claim.checked_at < too_long_ago]
            for arn in hanging:
                del self._held[arn]
        for arn in hanging:
            log.error("drain_hangs", topic=arn)


def _until_ns() -> int:
    return time.time_ns() + int(SECONDS * 1e9)
