"""Why an event goes to a topic or does not: each rule of a bucket judged, for people.

    rules x supposed change -> explain -> verdicts, with the message that would be sent

`explain` is pure and asks the very rules, refusals and `compose` that deliver events, so it cannot tell
another story. A topic that refuses the change shows no message: attributes of the topic would be in it.
`explain_in` looks up in a metabase what the verdicts need; it writes nothing and sends nothing.
"""

from collections.abc import Callable, Iterable
from functools import partial

import msgspec

from bucketwire.errors import NotFound
from bucketwire.event.change import ObjectChange, Origin, Versioning
from bucketwire.event.compose import Subscription
from bucketwire.event.dialect import Dialect
from bucketwire.event.expiry import expiry_name
from bucketwire.event.installation import Installation
from bucketwire.event.message import Message
from bucketwire.event.name import PREFIX, Operation
from bucketwire.event.rule import METADATA_PREFIX, Filter, Part, Rule
from bucketwire.event.topic import Topic
from bucketwire.metabase.base import Metabase, Objects
from bucketwire.metabase.values import Bucket, StoredObject
from bucketwire.metainfo.all_topics import find_topic
from bucketwire.metainfo.routing import FindOwner, closed_to, refusal
from bucketwire.metainfo.supposed import MARKER_MADE, Supposition, supposed_change
from bucketwire.metainfo.users import Owners

FindTopic = Callable[[str], Topic | None]


class ShownMessage(msgspec.Struct, frozen=True, omit_defaults=True):
    """A message as it would travel: the body, and what goes beside it on every transport."""

    event_id: str
    key: str
    content_type: str
    body: msgspec.Raw
    partition_key: str | None = None
    cloudevent: dict[str, str] = {}


class Verdict(msgspec.Struct, frozen=True):
    """What a rule makes of the change."""

    rule: str
    topic: str
    matches: bool
    """Whether the rule takes the change."""
    delivers: bool
    """Whether it also has a topic that the message can go to."""
    reasons: list[str]
    """What does not fit; empty when the message would go out."""
    message: ShownMessage | None = None


class Explanation(msgspec.Struct, frozen=True):
    """What an event would do."""

    bucket: str
    key: str
    event: str
    object_exists: bool
    notes: list[str]
    """What holds whatever the rules say."""
    rules: list[Verdict]


def explain(
    rules: Iterable[Rule],
    find_topic: FindTopic,
    find_owner: FindOwner,
    change: ObjectChange,
    installation: Installation,
) -> list[Verdict]:
    """One verdict a rule, in the order in which the customer wrote them."""
    return [_verdict(rule, find_topic(rule.topic_arn), find_owner, change, installation) for rule in rules]


def explain_in(
    metabase: Metabase,
    bucket: Bucket,
    asked: Supposition,
    origin: Origin,
    installation: Installation,
    now_ns: int,
) -> Explanation:
    """What the event would do in the bucket now. Blocks."""
    stored = _stored(metabase.objects, bucket.name, asked)
    change = supposed_change(asked, bucket, stored, origin, now_ns)
    rules = metabase.rules.current(bucket.name)
    find_owner = Owners(metabase.users, metabase.buckets).find
    return Explanation(
        bucket=bucket.name,
        key=asked.key,
        event=PREFIX + asked.operation,
        object_exists=stored is not None,
        notes=_notes(change, installation.dialect, exists=stored is not None),
        rules=explain(rules, _topics_of(metabase), find_owner, change, installation),
    )


def _stored(objects: Objects, bucket: str, asked: Supposition) -> StoredObject | None:
    """The object, or the version that is named; a delete marker is one only when it is named."""
    try:
        found = objects.get(bucket, asked.key, asked.version)
    except NotFound:
        return None
    return None if found.is_marker and asked.version is None else found


def _topics_of(metabase: Metabase) -> FindTopic:
    return partial(find_topic, metabase.topics)


def _notes(change: ObjectChange, dialect: Dialect, *, exists: bool) -> list[str]:
    notes = []
    if not exists:
        notes.append("the object does not exist: what was not given of it is taken to be empty")
        if change.operation is Operation.DELETE and not dialect.missing_delete_transmits:
            notes.append(f"deleting a key that does not exist is no event in the dialect {dialect.name}")
    if change.operation in MARKER_MADE and change.bucket.versioning is Versioning.UNVERSIONED:
        notes.append("the bucket has no versioning, and so no delete markers are made in it")
    return notes


def _verdict(
    rule: Rule, topic: Topic | None, find_owner: FindOwner, change: ObjectChange, installation: Installation
) -> Verdict:
    matches = rule.accepts(change)
    refused = refusal(topic, closed_to(change.bucket, topic, find_owner), change)
    obstacle = refused or _obstacle(topic)
    reasons = [*_mismatches(rule, change), *([obstacle] if obstacle else [])]
    message = None
    if matches and topic is not None and not refused:
        message = _shown(Subscription(rule, topic, installation).compose(change))
    return Verdict(rule.id, rule.topic_arn, matches, matches and not obstacle, reasons, message)


def _obstacle(topic: Topic | None) -> str:
    if topic is not None and not topic.endpoint:
        return "the topic has no push-endpoint: messages wait until it has one"
    return ""


def _mismatches(rule: Rule, change: ObjectChange) -> list[str]:
    failed = [_mismatch(each, change) for each in rule.filters if not each.accepts(change)]
    return failed if rule.subscribes(change) else [_not_covered(rule, change), *failed]


def _not_covered(rule: Rule, change: ObjectChange) -> str:
    names = " or ".join(PREFIX + name for name in (change.operation, expiry_name(change)) if name)
    subject, verb = ("event", "does") if len(rule.events) == 1 else ("events", "do")
    return f"the {subject} {', '.join(rule.events)} {verb} not cover {names}"


def _mismatch(condition: Filter, change: ObjectChange) -> str:
    described = change.described
    match condition.part:
        case Part.KEY:
            return _key_mismatch(condition)
        case Part.METADATA:
            entries = described.metadata if described else {}
            actual = entries.get(condition.name.removeprefix(METADATA_PREFIX))
            return _entry_mismatch("metadata", condition, actual)
        case Part.TAGS:
            return _entry_mismatch(
                "tag", condition, (described.tags if described else {}).get(condition.name)
            )


def _key_mismatch(condition: Filter) -> str:
    match condition.name:
        case "prefix":
            return f"the key does not start with {condition.value!r}"
        case "suffix":
            return f"the key does not end with {condition.value!r}"
        case _:
            return f"the regular expression {condition.value!r} does not match all of the key"


def _entry_mismatch(kind: str, condition: Filter, actual: str | None) -> str:
    if actual is None:
        return f"{kind} {condition.name} is not set, and must be {condition.value!r}"
    return f"{kind} {condition.name} is {actual!r}, not {condition.value!r}"


def _shown(message: Message) -> ShownMessage:
    partition_key = message.partition_key
    return ShownMessage(
        event_id=message.event_id,
        key=message.key,
        content_type=message.content_type,
        body=msgspec.Raw(message.body),
        partition_key=None if partition_key is None else partition_key.decode(errors="replace"),
        cloudevent=message.cloudevent,
    )
