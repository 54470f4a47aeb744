"""The only place where a change becomes bytes.

    (change, [(rule, topic), ...]) -> [Message, ...]

Same change, same rule: same bytes and same event id, on retries, on replays, on every backend.
"""

from collections.abc import Iterable
from hashlib import blake2b

from bucketwire.event.change import ObjectChange
from bucketwire.event.formats.cloudevents import binary_attributes, render_cloudevent
from bucketwire.event.formats.cos import cos_key, render_cos
from bucketwire.event.formats.s3 import render_s3, s3_record
from bucketwire.event.installation import Installation
from bucketwire.event.message import Message
from bucketwire.event.rule import Rule
from bucketwire.event.topic import Topic

Subscription = tuple[Rule, Topic]

_JSON = "application/json"
_fresh_digest = blake2b(digest_size=16).copy


def compose(
    change: ObjectChange, subscriptions: Iterable[Subscription], installation: Installation
) -> list[Message]:
    """One message for each subscription, in the order given."""
    return [_message(change, rule, topic, installation) for rule, topic in subscriptions]


def event_id(change: ObjectChange, rule: Rule) -> str:
    """32 hexadecimal digits that name this change for this rule, wherever it is composed."""
    return _identity(change, change.sequencer, rule)


def _identity(change: ObjectChange, sequencer: str, rule: Rule) -> str:
    digest = _fresh_digest()
    digest.update(f"{change.bucket.id}\0{change.key}\0{sequencer}\0{rule.id}".encode())
    return digest.hexdigest()


def _message(change: ObjectChange, rule: Rule, topic: Topic, installation: Installation) -> Message:
    sequencer = change.sequencer
    identity = _identity(change, sequencer, rule)
    content_type, placed_by = _JSON, None
    beside: dict[str, str] = {}
    match topic.format:
        case "cos":
            body, placed_by = render_cos(change, installation), cos_key(change, identity)
        case "cloudevents":
            record = s3_record(change, sequencer, rule, topic, identity, installation.dialect)
            body, content_type, beside = render_cloudevent(record, identity, change.key, topic)
        case _:  # also a format that is not known, so that nothing is ever stuck here
            record = s3_record(change, sequencer, rule, topic, identity, installation.dialect)
            body = render_s3(record)
            if topic.is_set("cloudevents"):
                beside = binary_attributes(record, identity, change.key)
    if topic.ordered:
        placed_by = change.key.encode()
    return Message(
        topic.arn, identity, change.key, body, content_type, change.committed_at_ns, placed_by, beside
    )
