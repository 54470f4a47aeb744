"""The only place where a change becomes bytes.

    Subscription(rule, topic, installation).compose(change) -> Message
    Subscription(rule, topic, installation).write(plain_change) -> the same Message, sooner

Same change, same rule: same bytes and same event id, on retries, on replays, on every backend.

The structs of the formats compose a message about any change. Messages about changes of one shape differ in
their values alone: where there are many of them, a subscription makes a writer, which puts the values into
the text around them. It escapes nothing: only a change that `read_change` calls plain may be written.

    write -> writer -> writer -> ... -> _composed: from the structs, and counted
              each takes changes of its own shape

Where there are more than a few writers, `write` first looks for one by the shape.
"""

from threading import RLock

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
WORTH_A_WRITER = 32
"""Messages of one shape: by then composing has cost about as much as making a writer does."""
_WRITERS_CHAINED = 6
"""A writer that does not take a change asks the next: sooner than looking for one, if they are few."""
_WRITERS_AT_MOST = 32
_SHAPES_COUNTED = 256


class Subscription:
    """One rule and the topic that it names. Threads may share it."""

    __slots__ = (
        "_chained",
        "_format",
        "_installation",
        "_learning",
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
        self._writers: dict[Shape, Writer] = {}
        self._learning = RLock()
        """Held while a new writer is tried, which may leave the change to `_composed`."""
        self._rendering = Rendering(
            self._rendered,
            TIME_DIGITS if topic.format == "cos" else installation.dialect.time_digits,
            key_is_attribute=topic.format == "cloudevents" or topic.is_set("cloudevents"),
        )
        self._chained: Writer = self._composed
        self.write: Writer = self._composed
        """The message about a plain change."""

    def compose(self, change: ObjectChange) -> Message:
        """The message about any change, from the structs."""
        half = rule_half(change.bucket.id, self.rule.id)
        return self._rendered(change, stamp(change.committed_at_ns, self._rendering.digits, half))

    def _looked_up(self, change: ObjectChange) -> Message:
        return self._writers.get(shape_of(change), self._chained)(change)

    def _composed(self, change: ObjectChange) -> Message:
        """Of a change that no writer takes."""
        can_be_written = not self._rendering.key_is_attribute or change.key.isprintable()
        if can_be_written and len(self._writers) < _WRITERS_AT_MOST:
            self._count(shape_of(change), change)
        return self.compose(change)

    def _count(self, shape: Shape, change: ObjectChange) -> None:
        """A writer is made when it would have paid, had it been there from the first one on."""
        with self._learning:
            if len(self._met) > _SHAPES_COUNTED:
                self._met.clear()
            times = self._met[shape] = self._met.get(shape, 0) + 1
            if times == WORTH_A_WRITER:
                self._learn(shape, change)

    def _learn(self, shape: Shape, change: ObjectChange) -> None:
        half = rule_half(change.bucket.id, self.rule.id)
        is_chained = len(self._writers) < _WRITERS_CHAINED
        writer = make_writer(change, self._rendering, half, self._chained if is_chained else self._composed)
        if writer is None or writer(change) != self.compose(change):
            return
        self._writers[shape] = writer
        if is_chained:
            self._chained = self.write = writer
        else:
            self.write = self._looked_up

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
