"""The twin of a change: of the same shape, with a mark in the place of each value.

Changes of one *shape* differ in values alone: what a message tells, and in which order, is the same for all
of them. So the message that the structs compose about a twin shows where the values stand, and the text
around them, which every message about a change of that shape has:

    {"eventTime":"<time>","eventName":"ObjectRemoved:Delete", ... "key":"<key>" ...
    ------------->      <-------------------------------------------->     <---   the pieces

Nothing here knows what a format tells when. There are two twins, with marks of their own: that a name of the
customer's looks like a mark shows where they differ.
"""

import re
from collections.abc import Callable
from functools import cache, lru_cache
from typing import NamedTuple

import msgspec

from bucketwire.event.change import ObjectChange, ObjectState, Origin, Status
from bucketwire.event.formats.stamp import Stamp, with_hyphens
from bucketwire.event.message import Message
from bucketwire.event.name import REMOVALS

SIDES = ("new", "old", "previous")
OPTIONAL = ("version_id", "content_type", "metadata", "tags")
"""What a state may be without."""
TEXT = "text"
"""Stands for any text that is not empty."""
MANY = 5
"""Stands for as many entries of metadata or tags, or more: a loop writes them."""
_ORIGIN = ("origin.principal_id", "origin.source_ip", "origin.request_id", "origin.host_id")
_STAMPED = ("time", "sequencer", "event_id")
_VALUES = (
    *("key", *_ORIGIN, *_STAMPED),
    *(f"{side}.{field}" for side in SIDES for field in ("size_bytes", "etag", *OPTIONAL)),
)
_KEYS = {" ": "key", "+": "url_encoded(key)"}
"""The mark of the key ends with a space, which tells the key as it is from the key in its encoding."""
_BEGINNINGS = ("730294616058117", "918273645546372")
"""Of the marks of both twins; behind them stand two digits for the value, and one for a part of it."""
_STATES_KEPT = 1024

Shape = tuple[object, ...]
Compose = Callable[[ObjectChange, Stamp], Message]


class Presence(NamedTuple):
    """The kind of a state, and what it has of the optional fields: a text or none, how many entries."""

    status: Status
    version_id: str | None
    content_type: str | None
    metadata: int
    tags: int


class Entries(NamedTuple):
    """Stands for metadata or tags: which, and the text within an entry and between two of them."""

    value: str
    middle: str
    between: str


class Layout(NamedTuple):
    """Text around values: there is one piece more than there are values."""

    pieces: list[str]
    values: list[str | Entries]


class Sample(NamedTuple):
    """A message about a twin, and the layouts of its texts; an attribute of CloudEvents is one of them."""

    message: Message
    body: Layout
    partition_key: Layout
    cloudevent: list[Layout]

    def told(self) -> set[str]:
        """The values that it has."""
        layouts = (self.body, self.partition_key, *self.cloudevent)
        values = (value for layout in layouts for value in layout.values)
        return {value.value if isinstance(value, Entries) else value for value in values}


def told_sides(change: ObjectChange) -> tuple[str, ...]:
    """The states that messages may tell of: what was there before is told where it is no longer."""
    return SIDES[:1] if _is_kept(change) else SIDES


def shape_of(change: ObjectChange) -> Shape:
    """All that decides what a message tells, beside the rule and the topic."""
    bucket, new = change.bucket, _present(change.new)
    if _is_kept(change):
        return (change.operation, bucket.id, bucket.versioning, new)
    old, previous = _present(change.old), _present(change.previous)
    return (change.operation, bucket.id, bucket.versioning, new, old, previous)


def presence(state: ObjectState | None) -> Presence | None:
    """What the state has; None if there is none."""
    present = _present(state)
    return present and Presence(*present)


def _is_kept(change: ObjectChange) -> bool:
    """There is an object, and the change is about that."""
    return change.new is not None and change.operation not in REMOVALS


def _present(state: ObjectState | None) -> tuple[Status, str | None, str | None, int, int] | None:
    if state is None:
        return None
    metadata, tags = len(state.metadata), len(state.tags)
    return (
        state.status,
        state.version_id and TEXT,
        state.content_type and TEXT,
        metadata if metadata < MANY else MANY,  # noqa: FURB136 - a call to min takes longer than all of this
        tags if tags < MANY else MANY,  # noqa: FURB136
    )


def sample_of(change: ObjectChange, compose: Compose) -> Sample | None:
    """The message about a twin of the change; None if it cannot be told where the values stand."""
    first, second = (_sample(change, compose, beginning) for beginning in _BEGINNINGS)
    return first if first[1:] == second[1:] else None


def told_if_filled(change: ObjectChange, compose: Compose) -> set[str]:
    """The values that a message has if the states have all that they may be without."""
    filled = {side: _filled(state) for side in SIDES if (state := getattr(change, side)) is not None}
    return _sample(msgspec.structs.replace(change, **filled), compose, _BEGINNINGS[0]).told()


def _filled(state: ObjectState) -> ObjectState:
    return ObjectState(state.status, 0, "", TEXT, TEXT, {TEXT: TEXT}, {TEXT: TEXT})


def _sample(change: ObjectChange, compose: Compose, beginning: str) -> Sample:
    stamp = Stamp(*(_mark(beginning, value) for value in _STAMPED))
    message = compose(_twin(change, beginning), stamp)
    placed_by = (message.partition_key or b"").decode()
    texts = (message.body.decode(), placed_by, *message.cloudevent.values())
    body, partition_key, *cloudevent = (_layout(text, beginning) for text in texts)
    return Sample(message, body, partition_key, cloudevent)


def _twin(change: ObjectChange, beginning: str) -> ObjectChange:
    principal, address, request, host = (_mark(beginning, value) for value in _ORIGIN)
    new, old, previous = (_marked(presence(getattr(change, side)), beginning, side) for side in SIDES)
    return ObjectChange(
        change.operation,
        int(beginning),
        change.bucket,
        _mark(beginning, "key") + " ",
        Origin(principal, address, request, host),
        new,
        old,
        previous,
    )


@lru_cache(maxsize=_STATES_KEPT)
def _marked(present: Presence | None, beginning: str, side: str) -> ObjectState | None:
    """A state that has this."""
    if present is None:
        return None
    return ObjectState(
        present.status,
        int(_mark(beginning, f"{side}.size_bytes")),
        _mark(beginning, f"{side}.etag"),
        present.version_id and _mark(beginning, f"{side}.version_id"),
        present.content_type and _mark(beginning, f"{side}.content_type"),
        _entries(beginning, f"{side}.metadata") if present.metadata else {},
        _entries(beginning, f"{side}.tags") if present.tags else {},
    )


def _entries(beginning: str, value: str) -> dict[str, str]:
    """Two of them, to see what stands between."""
    first, its_text, second, text = (_mark(beginning, value, part) for part in range(4))
    return {first: its_text, second: text}


@cache
def _mark(beginning: str, value: str, part: int = 0) -> str:
    return f"{beginning}{_VALUES.index(value):02d}{part}"


def _layout(text: str, beginning: str) -> Layout:
    pieces, values, end = [], [], 0
    for found in _marks(beginning).finditer(text):
        pieces.append(text[end : found.start()])
        values.append(_value(found))
        end = found.end()
    return Layout([*pieces, text[end:]], values)


@cache
def _marks(beginning: str) -> re.Pattern[str]:
    """The event id as a UUID; two entries of a name and a text; the key in one of its forms; or another.

    Each search behind a mark ends with the next digit: a text full of what looks like marks costs no more.
    """
    digits, rest, uuid = beginning[:8], beginning[8:], with_hyphens(_mark(beginning, "event_id"))
    known = "|".join(f"{number:02d}" for number in range(1, len(_VALUES)))
    return re.compile(
        rf"{digits}(?:"
        rf"(?P<uuid>{uuid[8:]})"
        rf"|{rest}(?P<entries>{known})0(?P<middle>\D+){beginning}(?P=entries)1"
        rf"(?P<between>\D+){beginning}(?P=entries)2(?P=middle){beginning}(?P=entries)3"
        rf"|{rest}000(?P<key>[ +])"
        rf"|{rest}(?P<value>{known})0)"
    )


def _value(found: re.Match[str]) -> str | Entries:
    if found["uuid"]:
        return "uuid"
    if found["entries"]:
        return Entries(_VALUES[int(found["entries"])], found["middle"], found["between"])
    return _KEYS[found["key"]] if found["key"] else _VALUES[int(found["value"])]
