"""The only place where a change becomes bytes.

    Subscription(rule, topic, installation).compose(change) -> Message
    Subscription(rule, topic, installation).write(plain_change) -> the same Message, sooner

Same change, same rule: same bytes and same event id, on retries, on replays, on every backend.

The structs of the formats compose a message about any change. Messages about changes of one shape differ in
their values alone: where there are many of them, a subscription makes a writer, which puts the values into
the text around them. It escapes nothing: only a change that `read_change` calls plain may be written.

    write -> newest writer -> ... -> oldest writer -> _write, which composes and counts
              each takes changes of its own shape
"""

from bucketwire.event.change import ObjectChange
from bucketwire.event.formats.cloudevents import binary_attributes, render_cloudevent
from bucketwire.event.formats.cos import TIME_DIGITS, cos_key, render_cos
from bucketwire.event.formats.s3 import render_s3, s3_record
from bucketwire.event.formats.stamp import Stamp, moment_half, rule_half, stamp
from bucketwire.event.formats.twin import Shape, shape_of
from bucketwire.event.formats.writer import Rendering, Writer, make_writer
from bucketwire.event.installation import Installation
from bucketwire.event.message import Message
from bucketwire.event.rule import Rule
from bucketwire.event.topic import Topic

_JSON = "application/json"
WORTH_A_WRITER = 8
"""Messages of one shape. A writer costs what it saves with thirty: where there were eight, more will come."""
_WRITERS_CHAINED = 16
_SHAPES_COUNTED = 256


class Subscription:
    """One rule and the topic that it names. Threads may share it."""

    __slots__ = (
        "_format",
        "_installation",
        "_met",
        "_ordered",
        "_rendering",
        "_writers",
        "rule",
        "topic",
        "write",
    )

    def __init__(self, rule: Rule, topic: Topic, installation: Installation) -> None:
        self.rule = rule
        self.topic = topic
        self._format, self._ordered = topic.format, topic.ordered
        self._installation = installation
        self._met: dict[Shape, int] = {}
        self._writers = 0
        self._rendering = Rendering(
            self._rendered,
            TIME_DIGITS if topic.format == "cos" else installation.dialect.time_digits,
            is_event=topic.format == "cloudevents" or topic.is_set("cloudevents"),
        )
        self.write: Writer = self._write
        """The message about a plain change: by the newest writer, from which the way goes to the others."""

    def compose(self, change: ObjectChange) -> Message:
        """The message about any change, from the structs."""
        half = rule_half(change.bucket.id, self.rule.id)
        return self._rendered(change, stamp(change.committed_at_ns, self._rendering.digits, half))

    def _write(self, change: ObjectChange) -> Message:
        """Of a change that no writer takes for its own. One is made when it would have paid already."""
        if len(self._met) > _SHAPES_COUNTED:
            self._met.clear()
        shape = shape_of(change)
        times = self._met[shape] = self._met.get(shape, 0) + 1
        if times == WORTH_A_WRITER:
            self._learn(change)
        return self.compose(change)

    def _learn(self, change: ObjectChange) -> None:
        """What the new writer does not take is left to the one that was made before it, and so on."""
        if self._writers >= _WRITERS_CHAINED:
            self.write, self._writers, self._met = self._write, 0, {}
        writer = make_writer(change, self._rendering, rule_half(change.bucket.id, self.rule.id), self.write)
        if writer is not None:
            self.write, self._writers = writer, self._writers + 1

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
