"""Where a change goes: the rules of its bucket at its commit, and the topics they name.

    change x rules in force at its commit -> subscriptions -> messages

The rules of a revision never change, so they are kept by (bucket, revision). A change that does not know its
revision goes by its commit time. Topics, and the subscriptions to them, are kept as long as the metabase says
that no topic was changed; it is asked once a slice, by `refresh`.
"""

from collections.abc import Sequence
from functools import lru_cache

from bucketwire.event.change import ObjectChange
from bucketwire.event.compose import Subscription
from bucketwire.event.installation import Installation
from bucketwire.event.message import Message
from bucketwire.event.rule import Rule
from bucketwire.event.topic import Topic, topic_named_by
from bucketwire.metabase.base import Rules, Topics

REVISIONS_KEPT = 4_096
TOPICS_KEPT = 10_000
SUBSCRIPTIONS_KEPT = 4_096

Address = tuple[str, str]
"""A topic's ARN, and why nothing may be sent to it; empty when it may."""


class _Known:
    """What is remembered until a topic changes."""

    def __init__(self) -> None:
        self.topics: dict[str, Topic | None] = {}
        self.subscriptions: dict[int, tuple[Subscription, Topic | None]] = {}
        """By the identity of the rule: a subscription holds its rule, so no other has that identity here."""

    def is_full(self) -> bool:
        return len(self.topics) > TOPICS_KEPT or len(self.subscriptions) > SUBSCRIPTIONS_KEPT


class Router:
    """Turns changes into messages with their addresses. Threads may call at once; one of them refreshes."""

    def __init__(self, rules: Rules, topics: Topics, installation: Installation) -> None:
        self._rules = rules
        self._topics = topics
        self._installation = installation
        self._revision = lru_cache(maxsize=REVISIONS_KEPT)(rules.at)
        self._known = _Known()
        self._version: int | None = None

    def refresh(self) -> None:
        """Forget topics that may have changed."""
        version = self._topics.version()
        if version != self._version or self._known.is_full():
            self._known = _Known()
            self._version = version

    def topic(self, arn: str) -> Topic | None:
        """The topic as of the last `refresh`, or later."""
        topics = self._known.topics  # another thread may `refresh` while the metabase is asked
        if arn not in topics:
            topics[arn] = topic_named_by(arn) or self._topics.get(arn)
        return topics[arn]

    def route(self, change: ObjectChange) -> list[tuple[Address, Message]]:
        """The messages of the change, each with its address; without those that the gateway has taken on."""
        return self._composed(change, pushed=False)

    def route_pushed(self, change: ObjectChange) -> list[tuple[Address, Message]]:
        """The others: those that the gateway delivers before it answers."""
        return self._composed(change, pushed=True)

    def _composed(self, change: ObjectChange, *, pushed: bool) -> list[tuple[Address, Message]]:
        known, pushes = self._known.subscriptions, change.origin.pushes
        messages = []
        for rule in self._rules_of(change):
            arn = rule.topic_arn
            if (arn in pushes) is pushed and rule.accepts(change):
                subscription, topic = known.get(id(rule)) or self._subscribed(rule)
                messages.append(((arn, _refusal(topic, change)), subscription.compose(change)))
        return messages

    def _subscribed(self, rule: Rule) -> tuple[Subscription, Topic | None]:
        known, topic = self._known.subscriptions, self.topic(rule.topic_arn)
        subscription = Subscription(rule, topic or Topic(rule.topic_arn, "", ""), self._installation)
        known[id(rule)] = subscription, topic
        return subscription, topic

    def _rules_of(self, change: ObjectChange) -> Sequence[Rule]:
        if change.revision is None:
            return self._rules.at(change.bucket.id, change.committed_at_ns)
        return self._revision(change.bucket.id, change.revision)


def _refusal(topic: Topic | None, change: ObjectChange) -> str:
    if topic is None:
        return "the topic does not exist"
    if topic.deleted_at_ns is not None and topic.deleted_at_ns <= change.committed_at_ns:
        return "the topic was deleted before the change"
    owner = topic.owner_id
    if owner and owner != change.bucket.owner_id and "Policy" not in topic.attributes:
        # a rule can be older than the topic that it names, or than the end of the policy that opened it
        return "the topic is another user's, and no policy opens it"
    return ""
