"""The only place where a change becomes bytes.

    Subscription(rule, topic, installation).compose(change) -> Message
    Subscription(rule, topic, installation).write(plain_change) -> the same Message, sooner

Same change, same rule: same bytes and same event id, on retries, on replays, on every backend.

The structs of the formats compose a message about any change. Most of a message about a new object is the
same as in the one before: so a subscription makes a writer, once, that puts the values into the text around
them. It escapes nothing: only a change that `read_change` calls plain may be written.
"""

from bucketwire.event.change import BucketRef, ObjectChange
from bucketwire.event.formats.cloudevents import binary_attributes, render_cloudevent
from bucketwire.event.formats.cos import TIME_DIGITS, cos_key, render_cos
from bucketwire.event.formats.cos_writer import cos_writer
from bucketwire.event.formats.layout import CREATED, MARKED_STAMP, Rendering, Writer
from bucketwire.event.formats.s3 import render_s3, s3_record
from bucketwire.event.formats.s3_writer import s3_writer
from bucketwire.event.formats.stamp import Stamp, moment_half, rule_half, stamp
from bucketwire.event.installation import Installation
from bucketwire.event.message import Message
from bucketwire.event.rule import Rule
from bucketwire.event.topic import Topic

_JSON = "application/json"


class Subscription:
    """One rule and the topic that it names. Threads may share it."""

    __slots__ = ("_format", "_installation", "_met", "_ordered", "rule", "topic", "write")

    def __init__(self, rule: Rule, topic: Topic, installation: Installation) -> None:
        self.rule = rule
        self.topic = topic
        self._format, self._ordered = topic.format, topic.ordered
        self._installation = installation
        self._met: BucketRef | None = None
        self.write: Writer = self._write
        """The message about a plain change; here it is also learnt how to write the next one faster."""

    def compose(self, change: ObjectChange) -> Message:
        """The message about any change, from the structs."""
        digits = TIME_DIGITS if self._format == "cos" else self._installation.dialect.time_digits
        half = rule_half(change.bucket.id, self.rule.id)
        return self._rendered(change, stamp(change.committed_at_ns, digits, half))

    def rendering(self, bucket: BucketRef) -> Rendering:
        """What a writer must know."""
        half = rule_half(bucket.id, self.rule.id)
        return Rendering(bucket, self.compose, self._write, self._sample, half, self._ordered)

    def writer(self, rendering: Rendering) -> Writer:
        """Writes what the rendering is of, in the format of the topic."""
        match self._format:
            case "cos":
                return cos_writer(rendering)
            case "s3" | "cloudevents":
                return s3_writer(rendering, self._installation.dialect)
            case _:
                return rendering.compose

    def _write(self, change: ObjectChange) -> Message:
        """A writer costs as much as five messages, and so is made for the second one of a bucket."""
        if change.operation not in CREATED:
            return self.compose(change)
        if self._met != change.bucket:
            self._met = change.bucket
            return self.compose(change)
        self.write = write = self.writer(self.rendering(change.bucket))
        return write(change)

    def _sample(self, marked: ObjectChange) -> Message:
        return self._rendered(marked, MARKED_STAMP)

    def _rendered(self, change: ObjectChange, stamped: Stamp) -> Message:
        topic, content_type, placed_by = self.topic, _JSON, None
        beside: dict[str, str] = {}
        match self._format:
            case "cos":
                body, placed_by = render_cos(change, stamped, self._installation), cos_key(change, stamped)
            case "cloudevents":
                record = s3_record(change, stamped, self.rule, topic, self._installation.dialect)
                body, content_type, beside = render_cloudevent(record, stamped.event_id, change.key, topic)
            case _:  # also a format that is not known, so that nothing is ever stuck here
                record = s3_record(change, stamped, self.rule, topic, self._installation.dialect)
                body = render_s3(record)
                if topic.is_set("cloudevents"):
                    beside = binary_attributes(record, stamped.event_id, change.key)
        if self._ordered:
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


def event_id(change: ObjectChange, rule: Rule) -> str:
    """32 hexadecimal digits that name this change for this rule, wherever it is composed."""
    return moment_half(change.committed_at_ns) + rule_half(change.bucket.id, rule.id)
