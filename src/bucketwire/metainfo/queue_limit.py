"""How much may wait for a topic, and what happens when it is full.

    reject        writes that would need the topic are refused with 503 SlowDown until there is room
    dead-letter   they are accepted; what has no room becomes a dead letter

What waits is looked at about once a second, so that a queue may grow a little over its limit.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

from bucketwire.event.dialect import Dialect
from bucketwire.event.topic import Topic
from bucketwire.metabase.base import Queue, Topics
from bucketwire.metainfo.all_topics import ChosenTopics

DEFAULT_LIMIT_BYTES = 128 * 1024 * 1024
REJECT = "reject"
DEAD_LETTER = "dead-letter"
LIMIT_ATTRIBUTE = "queue-limit"
POLICY_ATTRIBUTE = "queue-policy"
_LOOK_EVERY_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class QueueLimits:
    """The server's own settings, for topics that have none."""

    limit_bytes: int = DEFAULT_LIMIT_BYTES
    """0 is no limit."""
    policy: str = ""
    """Empty leaves it to the dialect."""

    def limit_of(self, topic: Topic) -> int:
        """How many bytes may wait for the topic; 0 is no limit."""
        text = topic.attributes.get(LIMIT_ATTRIBUTE, "")
        return int(text) if text.isdecimal() else self.limit_bytes

    def policy_of(self, topic: Topic, dialect: Dialect) -> str:
        """What happens when that much waits."""
        return topic.attributes.get(POLICY_ATTRIBUTE) or self.policy or dialect.full_queue_policy


class FullTopics:
    """The topics whose queue is full, as of a moment ago. Threads may ask at once."""

    def __init__(
        self, queue: Queue, topics: Topics, limits: QueueLimits, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._queue = queue
        self._limited = ChosenTopics(topics, lambda topic: LIMIT_ATTRIBUTE in topic.attributes)
        self._limits = limits
        self._clock = clock
        self._looks = Lock()
        self._looked_at = float("-inf")
        self._arns: frozenset[str] = frozenset()

    def arns(self) -> frozenset[str]:
        """Their ARNs. Blocks one who asks, once a second."""
        if self._clock() - self._looked_at >= _LOOK_EVERY_SECONDS and self._looks.acquire(blocking=False):
            try:
                self._looked_at = self._clock()
                self._arns = self._look()
            finally:
                self._looks.release()
        return self._arns

    def _look(self) -> frozenset[str]:
        backlogs = self._queue.backlogs()
        own = {arn: self._limits.limit_of(topic) for arn, topic in self._limited.look().items()}
        limits = ((arn, size, own.get(arn, self._limits.limit_bytes)) for arn, size in backlogs.items())
        return frozenset(arn for arn, size, limit in limits if 0 < limit <= size)
