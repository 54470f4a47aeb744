"""The only place where a change becomes bytes.

    (change, [(rule, topic), ...]) -> [Message, ...]

Same change, same rule: same bytes and same event id, on retries, on replays, on every backend.
"""

from collections.abc import Iterable
from hashlib import blake2b

from bucketwire.event.change import ObjectChange
from bucketwire.event.formats.s3 import render_s3
from bucketwire.event.installation import Installation
from bucketwire.event.message import Message
from bucketwire.event.rule import Rule
from bucketwire.event.topic import Topic

Subscription = tuple[Rule, Topic]


def compose(
    change: ObjectChange, subscriptions: Iterable[Subscription], installation: Installation
) -> list[Message]:
    """One message for each subscription, in the order given."""
    return [_message(change, rule, topic, installation) for rule, topic in subscriptions]


def event_id(change: ObjectChange, rule: Rule) -> str:
    """32 hexadecimal digits that name this change for this rule, wherever it is composed."""
    identity = f"{change.bucket.id}\0{change.key}\0{change.sequencer}\0{rule.id}"
    return blake2b(identity.encode(), digest_size=16).hexdigest()


def _message(change: ObjectChange, rule: Rule, topic: Topic, installation: Installation) -> Message:
    identity = event_id(change, rule)
    return Message(
        topic_arn=topic.arn,
        event_id=identity,
        key=change.key,
        body=render_s3(change, rule, topic, identity, installation.dialect),
        committed_at_ns=change.committed_at_ns,
    )
