"""Refuses writes whose message would have no room in the queue of a topic, where the topic wants that.

A write is refused before it is made, so it is judged by what is known then: its bucket, its key and its kind.
Filters on metadata and tags are taken to match.
"""

from bucketwire.errors import Unavailable
from bucketwire.event.dialect import Dialect
from bucketwire.event.rule import Part, Rule
from bucketwire.metabase.base import Metabase
from bucketwire.metainfo.all_topics import find_topic
from bucketwire.metainfo.queue_limit import REJECT, FullTopics, QueueLimits

RETRY_AFTER_SECONDS = 5.0
_KINDS = {"Tagging": "s3:ObjectTagging:", "Acl": "s3:ObjectAcl:", "Delete": "s3:ObjectRemoved:"}
_CREATED = "s3:ObjectCreated:"


class Backpressure:
    """Looks at the queue about once a second; while nothing is full it costs nothing."""

    def __init__(self, metabase: Metabase, dialect: Dialect, limits: QueueLimits) -> None:
        self._metabase = metabase
        self._dialect = dialect
        self._limits = limits
        self._full = FullTopics(metabase.queue, metabase.topics, limits)

    def check(self, bucket: str, key: str, operation: str) -> None:
        """Raise `Unavailable` with SlowDown if a rule would send this write to a full topic. Blocks."""
        full = self._full.arns()
        if not full:
            return
        kind = next((event for word, event in _KINDS.items() if word in operation), _CREATED)
        for rule in self._metabase.rules.current(bucket):
            if rule.topic_arn in full and _concerns(rule, key, kind) and self._rejects(rule.topic_arn):
                raise Unavailable(
                    "Please reduce your request rate: the queue of a topic of this bucket is full.",
                    code="SlowDown",
                    retry_after_seconds=RETRY_AFTER_SECONDS,
                )

    def _rejects(self, arn: str) -> bool:
        """Not for a topic that was deleted: a change made now becomes a dead letter, and needs no room."""
        topic = find_topic(self._metabase.topics, arn)
        if topic is None or topic.deleted_at_ns is not None:
            return False
        return self._limits.policy_of(topic, self._dialect) == REJECT


def _concerns(rule: Rule, key: str, kind: str) -> bool:
    return any(pattern.startswith(kind) for pattern in rule.events) and all(
        condition.accepts_key(key) for condition in rule.filters if condition.part is Part.KEY
    )
