"""Where a change goes: the rules of its bucket at its commit, and the topics they name.

    change x rules in force at its commit -> subscriptions -> messages

The rules of a revision never change, so they are kept by (bucket, revision). A change that does not know its
revision goes by its commit time. Topics, and the subscriptions to them, are kept as long as the metabase says
that no topic was changed; it is asked once a slice, by `refresh`.

A rule can be older than the topic that it names, or than the topic's policy. So whether the owner of the
bucket may publish is asked here again, by the policy as it is now: once a subscription, not with each change.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

from bucketwire.access.policy import Who
from bucketwire.event.change import BucketRef, ObjectChange, read_change
from bucketwire.event.compose import Subscription
from bucketwire.event.installation import Installation
from bucketwire.event.message import Message
from bucketwire.event.rule import Rule
from bucketwire.event.topic import Topic
from bucketwire.metabase.base import Metabase
from bucketwire.metainfo.all_topics import find_topic
from bucketwire.metainfo.topics import may_publish
from bucketwire.metainfo.users import Owners

REVISIONS_KEPT = 4_096
TOPICS_KEPT = 10_000
SUBSCRIPTIONS_KEPT = 4_096

Address = tuple[str, str]
"""A topic's ARN, and why nothing may be sent to it; empty when it may."""
FindOwner = Callable[[str], Who | None]
"""Finds the owner of a bucket by its user id; None when it was removed."""


class _Subscribed(NamedTuple):
    """A rule of a bucket and its topic, with all that is the same for each change."""

    subscription: Subscription
    topic: Topic | None
    closed: str


class _Known:
    """What is remembered until a topic changes."""

    def __init__(self, owners: Owners) -> None:
        self.owners = owners
        self.topics: dict[str, Topic | None] = {}
        self.subscriptions: dict[int, _Subscribed] = {}
        """By the identity of the rule: a subscription holds its rule, so no other has that identity here."""

    def is_full(self) -> bool:
        return len(self.topics) > TOPICS_KEPT or len(self.subscriptions) > SUBSCRIPTIONS_KEPT


class Router:
    """Turns changes into messages with their addresses. Threads may call at once; one of them refreshes."""

    def __init__(self, metabase: Metabase, installation: Installation) -> None:
        self._metabase = metabase
        self._installation = installation
        self._revision = lru_cache(maxsize=REVISIONS_KEPT)(metabase.rules.at)
        self._known = self._nothing_known()
        self._version: int | None = None

    def refresh(self) -> None:
        """Forget topics that may have changed."""
        version = self._metabase.topics.version()
        if version != self._version or self._known.is_full():
            self._known = self._nothing_known()
            self._version = version

    def topic(self, arn: str) -> Topic | None:
        """The topic as of the last `refresh`, or later."""
        topics = self._known.topics  # another thread may `refresh` while the metabase is asked
        if arn not in topics:
            topics[arn] = find_topic(self._metabase.topics, arn)
        return topics[arn]

    def route(self, encoded: bytes) -> list[tuple[Address, Message]]:
        """The messages of a change of the stream, each with its address; without those that are pushed."""
        change, is_plain = read_change(encoded)
        return self._composed(change, pushed=False, plain=is_plain)

    def route_pushed(self, change: ObjectChange) -> list[tuple[Address, Message]]:
        """The others: those that the gateway itself delivers, before it answers."""
        return self._composed(change, pushed=True, plain=False)

    def _composed(self, change: ObjectChange, *, pushed: bool, plain: bool) -> list[tuple[Address, Message]]:
        known, pushes = self._known.subscriptions, change.origin.pushes
        messages = []
        for rule in self._rules_of(change):
            arn = rule.topic_arn
            if (arn in pushes) is pushed and rule.accepts(change):
                subscription, topic, closed = known.get(id(rule)) or self._subscribed(rule, change.bucket)
                compose = subscription.write if plain else subscription.compose
                messages.append(((arn, refusal(topic, closed, change)), compose(change)))
        return messages

    def _subscribed(self, rule: Rule, bucket: BucketRef) -> _Subscribed:
        known, topic = self._known, self.topic(rule.topic_arn)
        subscription = Subscription(rule, topic or Topic(rule.topic_arn, "", ""), self._installation)
        subscribed = _Subscribed(subscription, topic, closed_to(bucket, topic, known.owners.find))
        known.subscriptions[id(rule)] = subscribed
        return subscribed

    def _nothing_known(self) -> _Known:
        return _Known(Owners(self._metabase.users, self._metabase.buckets))

    def _rules_of(self, change: ObjectChange) -> Sequence[Rule]:
        if change.revision is None:
            return self._metabase.rules.at(change.bucket.id, change.committed_at_ns)
        return self._revision(change.bucket.id, change.revision)


def closed_to(bucket: BucketRef, topic: Topic | None, find_owner: FindOwner) -> str:
    """Why changes of the bucket may not go to the topic, by its policy; empty when they may."""
    if topic is None or topic.owner_id in {"", bucket.owner_id}:
        return ""
    owner = find_owner(bucket.owner_id)
    if owner is None:
        return "the topic is another user's, and the owner of the bucket was removed"
    if not may_publish(topic, owner.user_id, owner.tenant, owner.name, bucket.name):
        return "the topic is another user's, and no policy opens it to the owner of the bucket"
    return ""


def refusal(topic: Topic | None, closed: str, change: ObjectChange) -> str:
    """Why the message of the change may not be sent to the topic; empty when it may.

    `closed` is what `closed_to` says of the topic and the change's bucket.
    """
    if topic is None:
        return "the topic does not exist"
    if topic.deleted_at_ns is not None and topic.deleted_at_ns <= change.committed_at_ns:
        return "the topic was deleted before the change"
    return closed
