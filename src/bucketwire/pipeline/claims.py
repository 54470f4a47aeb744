"""The topics that a worker has in hand, for all others to see.

    take     nobody else tries these topics; their last failures stay to be read
    keep     in a thread, again and again
    check    before each call: a process that was paused may find that its claim has run out
    give_up  say how the topic is, and let others have it

A claim is a time a few seconds ahead, before which nobody else tries the topic. When the process dies it runs
out, however long a call of its might have lasted. One that has run out is gone: another may have the topic.
"""

import time
from collections.abc import Iterable
from threading import Lock

from bucketwire.errors import Conflict
from bucketwire.log import get_logger
from bucketwire.metabase.base import Queue
from bucketwire.metabase.values import TopicHealth

SECONDS = 3.0
"""A topic waits for so long, at the most, after the death of the process that had it in hand."""
KEEP_EVERY_SECONDS = 1.0

log = get_logger("pipeline")


class Claims:
    """Those of one worker."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._held: dict[str, TopicHealth] = {}
        self._writing = Lock()
        """Held while the queue is told: what is said last of a topic is how it is."""

    def take(self, topics: Iterable[TopicHealth]) -> None:
        """Claim these topics, of which this is known."""
        with self._writing:
            self._hold(topics)

    def check(self, arn: str) -> None:
        """Raise `Conflict` unless the topic is still ours."""
        held = self._held.get(arn)
        if held is None or time.time_ns() > held.retry_at_ns:
            raise Conflict("the claim on the topic has run out")

    def give_up(self, health: TopicHealth) -> None:
        """Say how the topic is, as long as that is ours to say; raises `Conflict` if it is not."""
        with self._writing:
            self.check(health.topic_arn)
            self._queue.report(health)
            del self._held[health.topic_arn]

    def drop(self, arn: str) -> None:
        """Say nothing more of the topic: if it is claimed still, the claim runs out by itself."""
        with self._writing:
            self._held.pop(arn, None)

    def keep(self) -> None:
        """Put off the end of all claims that have not run out."""
        with self._writing:
            now_ns = time.time_ns()
            self._held = {arn: each for arn, each in self._held.items() if each.retry_at_ns >= now_ns}
            self._hold(self._held.values())

    def keep_always(self) -> None:
        """Never returns."""
        while True:
            time.sleep(KEEP_EVERY_SECONDS)
            try:
                self.keep()
            except Exception as error:  # noqa: BLE001 - without this thread every claim runs out
                log.warning("claims_not_kept", reason=f"{type(error).__name__}: {error}")

    def _hold(self, topics: Iterable[TopicHealth]) -> None:
        until_ns = time.time_ns() + int(SECONDS * 1e9)
        claimed = [
            TopicHealth(each.topic_arn, max(1, each.failures), until_ns, each.reason) for each in topics
        ]
        self._queue.report(*claimed)
        self._held |= {each.topic_arn: each for each in claimed}
