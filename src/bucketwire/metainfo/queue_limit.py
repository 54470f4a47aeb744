"""How much may wait for a topic, and what happens when it is full.

    reject        writes that would need the topic are refused with 503 SlowDown until there is room
    dead-letter   they are accepted; what has no room becomes a dead letter

What waits is looked at about once a second, so that a queue may grow a little over its limit.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

from bucketwire.event.dialect import Dialect
from bucketwire.event.topic import Topic
from bucketwire.metabase.base import Queue

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
    """The topics whose queue is full, as of a moment ago."""

    def __init__(
        self,
        queue: Queue,
        find_topic: Callable[[str], Topic | None],
        limits: QueueLimits,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._queue = queue
        self._find_topic = find_topic
        self._limits = limits
        self._clock = clock
        self._looked_at = float("-inf")
        self._arns: frozenset[str] = frozenset()

    def arns(self) -> frozenset[str]:
        """Their ARNs. Blocks, once a second."""
        if self._clock() - self._looked_at >= _LOOK_EVERY_SECONDS:
            self._looked_at = self._clock()
            backlogs = self._queue.backlogs()
            self._arns = frozenset(arn for arn, size in backlogs.items() if self._is_full(arn, size))
        return self._arns

    def _is_full(self, arn: str, size_bytes: int) -> bool:
        topic = self._find_topic(arn)
        limit = self._limits.limit_of(topic) if topic else self._limits.limit_bytes
        return 0 < limit <= size_bytes
