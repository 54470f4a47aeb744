"""Where the values stand in a message, and the text around them, which is the same in every message.

That text is not written down a second time: a message about a *marked* change, with a number of its own for
each value, is rendered from the structs, and cut at the marks.

    {"eventTime":"<time>","eventName":"ObjectCreated:Put", ... "key":"<key>" ...
    ------------->      <-------------------------------------------->     <---   the pieces

A message can then be written straight: piece, value, piece. That is right for values that JSON writes as they
are, and only for them: a message with other text is left to the structs.
"""

from collections.abc import Callable, Sequence
from itertools import chain, islice

import msgspec

from bucketwire.event.change import BucketRef, ObjectChange, ObjectState, Origin, Status
from bucketwire.event.formats.stamp import Stamp
from bucketwire.event.message import Message
from bucketwire.event.name import Operation

Writer = Callable[[ObjectChange], Message]


CREATED = {
    operation: operation.value
    for operation in (Operation.PUT, Operation.POST, Operation.COPY, Operation.COMPLETE_MULTIPART_UPLOAD)
}
"""Operations that make an object, and the names of their events: these messages are written straight."""


class Rendering(msgspec.Struct, frozen=True):
    """How the structs write the messages of one rule about one bucket."""

    bucket: BucketRef
    render: Writer
    compose_other: Writer
    """For changes of another bucket, or of the same after its state has changed."""
    sample: Writer
    """Likewise, with marks for what is told of the moment of the change."""
    rule_half: str
    """The half of the event id that names the rule."""
    ordered: bool
    """Whether messages are placed by the key."""


_marks = map(str, range(730_294_616_058_117_000, 730_294_616_058_117_016))
TIME, SEQUENCER, EVENT_ID, PRINCIPAL, ADDRESS, REQUEST, HOST = islice(_marks, 7)
KEY, SIZE, ETAG, VERSION, CONTENT_TYPE, NAME, VALUE, TAG_NAME, TAG_VALUE = _marks
EVENT_NAME = CREATED[Operation.PUT]
MARKED_STAMP = Stamp(TIME, SEQUENCER, EVENT_ID)
dumped = msgspec.json.Encoder().encode
"""A quick check: text in ASCII gets longer by two quotation marks, and by more if some of it is escaped."""


def is_escaped(text: str) -> bool:
    """Whether JSON has another way to write some of the text."""
    return len(dumped(text)) != len(text.encode()) + 2


def marked_change(bucket: BucketRef) -> ObjectChange:
    """A change with a mark for each value that another change of the bucket may have otherwise."""
    new = ObjectState(
        Status.COMMITTED_VERSIONED,
        int(SIZE),
        ETAG,
        VERSION,
        CONTENT_TYPE,
        {NAME: VALUE},
        {TAG_NAME: TAG_VALUE},
    )
    return ObjectChange(Operation.PUT, 0, bucket, KEY, Origin(PRINCIPAL, ADDRESS, REQUEST, HOST), new)


def cut(rendered: bytes, marks: Sequence[str]) -> list[str] | None:
    """The text before, between and behind the marks; None where they do not stand just so."""
    text = rendered.decode()
    if any(text.count(mark) != marks.count(mark) for mark in marks):
        return None  # a name that looks like a mark, for instance
    pieces = []
    for mark in marks:
        piece, found, text = text.partition(mark)
        if not found:
            return None
        pieces.append(piece)
    return [*pieces, text]


def listing(entry: bytes) -> Callable[[dict[str, str]], tuple[str, str]]:
    """Writes metadata or tags as the entry is written, which is a marked one.

    It gives the entries, in an order that is the same on every backend, and the text in them, which must need
    no escapes.
    """
    left, middle, right = cut(entry, (NAME, VALUE)) or cut(entry, (TAG_NAME, TAG_VALUE)) or ("", "", "")

    def written(entries: dict[str, str]) -> tuple[str, str]:
        if not entries:
            return "", ""
        if len(entries) == 1:
            (name,) = entries
            value = entries[name]
            return f"{left}{name}{middle}{value}{right}", name + value
        ordered = sorted(entries.items())
        objects = [f"{left}{name}{middle}{value}{right}" for name, value in ordered]
        return ",".join(objects), "".join(chain.from_iterable(ordered))

    return written
