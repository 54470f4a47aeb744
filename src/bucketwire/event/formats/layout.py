"""Where the values stand in a message, and the text around them, which is the same in every message.

That text is not written down a second time: a message about a *marked* change, with a number of its own for
each value (the name of the event is its own), is composed from the structs, and cut at the marks.

    {"eventTime":"<time>","eventName":"ObjectCreated:Put", ... "key":"<key>" ...
    ------------->      <-------------------------------------------->     <---   the pieces

A message about a plain change can then be written straight: piece, value, piece.
"""

from collections.abc import Callable, Sequence

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
    compose: Writer
    """For changes of other kinds."""
    write_other: Writer
    """For changes of another bucket, or of the same after its versioning was set, where that is told."""
    sample: Writer
    """Composes, with marks for what is told of the moment of the change."""
    rule_half: str
    """The half of the event id that names the rule."""
    ordered: bool
    """Whether messages are placed by the key."""


_EVERY_MARK = tuple(map(str, range(730_294_616_058_117_000, 730_294_616_058_117_016)))
TIME, SEQUENCER, EVENT_ID, PRINCIPAL, ADDRESS, REQUEST, HOST = _EVERY_MARK[:7]
KEY, SIZE, ETAG, VERSION, CONTENT_TYPE, NAME, VALUE, TAG_NAME, TAG_VALUE = _EVERY_MARK[7:]
EVENT_NAME = CREATED[Operation.PUT]
MARKED_STAMP = Stamp(TIME, SEQUENCER, EVENT_ID)


def marked_change(bucket: BucketRef, *, bare: bool = False) -> ObjectChange:
    """A change with a mark for each value that another change of the bucket may have otherwise.

    A bare object has nothing that an object may be without.
    """
    new = ObjectState(Status.COMMITTED_VERSIONED, int(SIZE), ETAG)
    if not bare:
        new = msgspec.structs.replace(
            new,
            version_id=VERSION,
            content_type=CONTENT_TYPE,
            metadata={NAME: VALUE},
            tags={TAG_NAME: TAG_VALUE},
        )
    return ObjectChange(Operation.PUT, 0, bucket, KEY, Origin(PRINCIPAL, ADDRESS, REQUEST, HOST), new)


def cut(composed: bytes, marks: Sequence[str]) -> list[str] | None:
    """The text before, between and behind the marks; None where they do not stand just so, or others do."""
    text = composed.decode()
    if any(text.count(mark) != marks.count(mark) for mark in marks):
        return None  # a name that looks like a mark, for instance
    pieces = []
    for mark in marks:
        piece, found, text = text.partition(mark)
        if not found:
            return None
        pieces.append(piece)
    pieces.append(text)
    return None if any(mark in piece for piece in pieces for mark in _EVERY_MARK) else pieces


def pieces_of(entry: bytes) -> list[str]:
    """Those of metadata or tags: the text before, between and behind the marks of a name and a value."""
    pieces = cut(entry, (NAME, VALUE)) or cut(entry, (TAG_NAME, TAG_VALUE))
    if pieces is None:
        raise ValueError(f"{entry!r} has no marks")
    return pieces


def listing(entry: bytes, before: str, behind: str, without: str) -> Callable[[dict[str, str]], str]:
    """Writes metadata or tags between these texts, or another where there are none.

    They are written like the entry, which is a marked one, in an order that is the same on every backend.
    """
    left, middle, right = pieces_of(entry)
    before, between, behind = before + left, f"{right},{left}", right + behind

    def written(entries: dict[str, str]) -> str:
        if not entries:
            return without
        if len(entries) == 1:
            (name,) = entries
            return f"{before}{name}{middle}{entries[name]}{behind}"
        texts = [f"{name}{middle}{entries[name]}" for name in sorted(entries)]
        return f"{before}{between.join(texts)}{behind}"

    return written
