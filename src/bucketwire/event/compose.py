"""The only place where a change becomes bytes.

    (change, [(rule, topic), ...]) -> [Message, ...]

Same change, same rule: same bytes and same event id, on retries, on replays, on every backend.

The structs of the formats render any change. Most of a message about a new object is the same as in the one
before: so a plan is made once for a rule, with writers that put the values into the text around them.
"""

from collections.abc import Iterable

from bucketwire.event.change import BucketRef, ObjectChange
from bucketwire.event.formats.cloudevents import binary_attributes, render_cloudevent
from bucketwire.event.formats.cos import TIME_DIGITS, cos_key, render_cos
from bucketwire.event.formats.cos_writer import cos_writer
from bucketwire.event.formats.layout import MARKED_STAMP, Rendering, Writer, marked_change
from bucketwire.event.formats.s3 import render_s3, s3_record
from bucketwire.event.formats.s3_writer import s3_writer
from bucketwire.event.formats.stamp import Stamp, moment_half, rule_half, stamp
from bucketwire.event.installation import Installation
from bucketwire.event.message import Message
from bucketwire.event.name import Operation
from bucketwire.event.rule import Rule
from bucketwire.event.topic import Topic

Subscription = tuple[Rule, Topic]

PLANS_KEPT = 4_096
_JSON = "application/json"
_WRITTEN = frozenset({Operation.PUT, Operation.POST, Operation.COPY, Operation.COMPLETE_MULTIPART_UPLOAD})
"""Operations whose messages are written straight."""


def compose(
    change: ObjectChange, subscriptions: Iterable[Subscription], installation: Installation
) -> list[Message]:
    """One message for each subscription, in the order given."""
    messages = []
    for rule, topic in subscriptions:
        plan = _plans.get(id(rule))
        if (
            plan is None
            or plan.topic is not topic
            or plan.installation is not installation
            or plan.bucket != change.bucket
        ):
            plan = _planned(rule, topic, installation, change.bucket)
        write = plan.writers.get(change.operation) or plan.writer(change.operation)
        messages.append(write(change))
    return messages


def event_id(change: ObjectChange, rule: Rule) -> str:
    """32 hexadecimal digits that name this change for this rule, wherever it is composed."""
    return moment_half(change.committed_at_ns) + rule_half(change.bucket.id, rule.id)


class Plan:
    """How the changes of one bucket are written for one rule."""

    __slots__ = ("_met", "bucket", "installation", "rule", "topic", "writers")

    def __init__(self, rule: Rule, topic: Topic, installation: Installation, bucket: BucketRef) -> None:
        self.rule = rule
        self.topic = topic
        self.installation = installation
        self.bucket = bucket
        self.writers: dict[Operation, Writer] = {}
        self._met: set[Operation] = set()

    def writer(self, operation: Operation) -> Writer:
        """What writes the messages about that operation; a writer costs some, and is made for the second."""
        if operation in _WRITTEN and operation not in self._met:
            self._met.add(operation)
            return self.render
        write = self._prepared(operation) if operation in _WRITTEN else self.render
        self.writers[operation] = write
        return write

    def render(self, change: ObjectChange) -> Message:
        """The message, from the structs."""
        digits = TIME_DIGITS if self.topic.format == "cos" else self.installation.dialect.time_digits
        half = rule_half(change.bucket.id, self.rule.id)
        return self._rendered(change, stamp(change.committed_at_ns, digits, half))

    def rendering(self) -> Rendering:
        """What a writer must know of the rule."""
        half = rule_half(self.bucket.id, self.rule.id)
        return Rendering(self.render, self._sample, half, self.topic.ordered)

    def _prepared(self, operation: Operation) -> Writer:
        marked = marked_change(operation, self.bucket)
        if self.topic.format == "cos":
            return cos_writer(marked, self.rendering())
        return s3_writer(marked, self.rendering(), self.installation.dialect)

    def _sample(self, marked: ObjectChange) -> Message:
        return self._rendered(marked, MARKED_STAMP)

    def _rendered(self, change: ObjectChange, stamped: Stamp) -> Message:
        topic, content_type, placed_by = self.topic, _JSON, None
        beside: dict[str, str] = {}
        match topic.format:
            case "cos":
                body, placed_by = render_cos(change, stamped, self.installation), cos_key(change, stamped)
            case "cloudevents":
                record = s3_record(change, stamped, self.rule, topic, self.installation.dialect)
                body, content_type, beside = render_cloudevent(record, stamped.event_id, change.key, topic)
            case _:  # also a format that is not known, so that nothing is ever stuck here
                record = s3_record(change, stamped, self.rule, topic, self.installation.dialect)
                body = render_s3(record)
                if topic.is_set("cloudevents"):
                    beside = binary_attributes(record, stamped.event_id, change.key)
        if topic.ordered:
            placed_by = change.key.encode()
        return Message(
            topic.arn,
            stamped.event_id,
            change.key,
            body,
            content_type,
            change.committed_at_ns,
            placed_by,
            beside,
        )


_plans: dict[int, Plan] = {}
"""By the identity of the rule: a plan holds its rule, so no other can have that identity while it is here."""


def _planned(rule: Rule, topic: Topic, installation: Installation, bucket: BucketRef) -> Plan:
    if len(_plans) >= PLANS_KEPT:
        _plans.clear()
    plan = _plans[id(rule)] = Plan(rule, topic, installation, bucket)
    return plan
