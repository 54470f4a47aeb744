"""Writes messages about plain changes straight, in any format: piece, value, piece.

For each shape of changes a function is made, from a sample of their messages (`twin`). It looks like this:

    def write(change):
        origin = change.origin
        ...
        if bucket.id != bucket_id or change.operation is not operation or ... or not new.version_id:
            return other(change)
        ...
        body = f"<0>{second}{milliseconds}<1>{origin.source_ip}<2>{shown}<3>{new.etag}<4>".encode()
        ...
        return Message(topic_arn, event_id, key, body, content_type, at_ns, None, cloudevent)

The source has the names of values and the numbers of pieces in it, and none of their text: nothing that a
customer has written is ever compiled. So it is the same for all rules whose messages tell the same, and
compiled once. The pieces take the places of their numbers among the constants of the function.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import zip_longest
from sys import intern
from types import CodeType
from typing import Any, NamedTuple

from bucketwire.event.change import ObjectChange
from bucketwire.event.formats.s3 import url_encoded
from bucketwire.event.formats.stamp import MICROSECONDS, THREE_DIGITS, latest, turned, with_hyphens
from bucketwire.event.formats.twin import (
    MANY,
    OPTIONAL,
    SIDES,
    Compose,
    Entries,
    Layout,
    Sample,
    presence,
    sample_of,
    told_if_filled,
    told_sides,
)
from bucketwire.event.message import Message

Writer = Callable[[ObjectChange], Message]
_SOURCES_KEPT = 1024
_SOURCE = """
def writer(other, change, rule_half, message):
    operation, bucket = change.operation, change.bucket
    bucket_id, versioning = bucket.id, bucket.versioning
    {statuses}
    topic_arn, content_type, cloudevent = message.topic_arn, message.content_type, message.cloudevent

    def write(change):
        {sides}
        if {misfits}:
            return other(change)
        origin = change.origin
        key = change.key
        at_ns = change.committed_at_ns
        start, second = latest[0]
        rest = at_ns - start
        if not 0 <= rest < 1_000_000_000:
            rest, second = turned(at_ns)
        octets = at_ns.to_bytes(8)
        moment = octets.hex()
        event_id = moment + rule_half
        {preparations}
        body = {body}.encode()
        {amendment}
        return Message(topic_arn, event_id, key, body, content_type, at_ns, {partition_key}, {cloudevent})

    return write
"""
_MILLISECONDS = "milliseconds = THREE_DIGITS[rest // 1_000_000]"
_MICROSECONDS = "microseconds = THREE_DIGITS[rest // 1000 % 1000]"
# One odd letter, and Python takes five times as long to encode the text around it. NUL is in no plain change.
_STAND_IN = r"shown = key if key.isascii() else '\0'"
_TAKE_ITS_PLACE = r"if shown is not key: body = body.replace(b'\0', key.encode())"


class Rendering(NamedTuple):
    """How the structs write the messages of one rule."""

    compose: Compose
    digits: int
    """Behind the second."""
    key_is_attribute: bool
    """Of a CloudEvent: some characters may not be there, and only the structs leave such a key out."""


def make_writer(change: ObjectChange, rendering: Rendering, rule_half: str, other: Writer) -> Writer | None:
    """Writes about changes of the shape of this one, and leaves the rest to `other`. None if it cannot."""
    sample, told = sample_of(change, rendering.compose), told_if_filled(change, rendering.compose)
    untold = tuple(f"{side}." for side in SIDES if side not in told_sides(change))
    if sample is None or any(value.startswith(untold) for value in told):
        return None
    texts = _Texts(change, rendering, rule_half)
    bodies = texts.of(sample)
    sides = told_sides(change)
    present = [side for side in sides if getattr(change, side) is not None]
    source = _SOURCE.format(
        sides="; ".join(f"{side} = change.{side}" for side in sides),
        statuses="; ".join(f"{side}_status = change.{side}.status" for side in present) or "pass",
        misfits=" or ".join(_misfits(change, told, rendering)),
        preparations="; ".join(texts.preparations),
        **bodies,
    )
    writer = _compiled(source)(other, change, rule_half, sample.message)
    writer.__code__ = texts.with_pieces(writer.__code__)
    return writer


def _misfits(change: ObjectChange, told: set[str], rendering: Rendering) -> Iterator[str]:
    """Signs that a change is of another shape, as far as messages tell of it."""
    yield "change.operation is not operation"
    for side in told_sides(change):
        present = presence(getattr(change, side))
        if present is None:
            yield f"{side} is not None"
            continue
        yield from (f"{side} is None", f"{side}.status is not {side}_status")
        for field in OPTIONAL:
            if f"{side}.{field}" in told:
                yield _misfit(f"{side}.{field}", getattr(present, field))
    yield from ("(bucket := change.bucket).versioning is not versioning", "bucket.id != bucket_id")
    if rendering.key_is_attribute:
        yield "not change.key.isprintable()"


def _misfit(value: str, there: object) -> str:
    match there:
        case None:
            return f"{value} is not None"
        case "":
            return f"{value} != ''"
        case 0:
            return value
        case str():
            return f"not {value}"
        case number if number == MANY:
            return f"len({value}) < {MANY}"
        case number:
            return f"len({value}) != {number}"


class _Texts:
    """The source of the texts of a message, the pieces that it names, and what is to be done before."""

    def __init__(self, change: ObjectChange, rendering: Rendering, rule_half: str) -> None:
        self._change = change
        self._pieces: dict[object, str] = {}
        """By what stands for them in the source."""
        self.preparations = [_MILLISECONDS]
        time = "{second}{milliseconds}"
        if rendering.digits == MICROSECONDS:
            self.preparations.append(_MICROSECONDS)
            time = "{second}{milliseconds}{microseconds}"
        self._formatted = {
            **{f"{side}.size_bytes": (f"{{{side}.size_bytes!r}}", "") for side in SIDES},
            "sequencer": ("{moment.upper()}", ""),
            "time": (time, "Z"),
            "uuid": ("{octets.hex('-', 2).replace('-', '', 1)}", with_hyphens(16 * "0" + rule_half)[18:]),
        }
        """Values that are not written as they stand in the change, and the text that always follows them."""

    def of(self, sample: Sample) -> dict[str, str]:
        """All of them, by their names."""
        message, body, amendment = sample.message, self._text(sample.body), "pass"
        if "{key}" in body:
            self.preparations.append(_STAND_IN)
            body, amendment = body.replace("{key}", "{shown}"), _TAKE_ITS_PLACE
        placed_by = f"{self._text(sample.partition_key)}.encode()"
        beside = ", ".join(
            f"{name!r}: {self._text(layout)}"
            for name, layout in zip(message.cloudevent, sample.cloudevent, strict=True)
        )
        return {
            "body": body,
            "amendment": amendment,
            "partition_key": "None" if message.partition_key is None else placed_by,
            "cloudevent": f"{{{beside}}}" if beside else "cloudevent",
        }

    def _text(self, layout: Layout) -> str:
        parts, following = [], ""
        for piece, value in zip_longest(layout.pieces, layout.values):
            if text := following + piece:
                parts.append(self._piece(text))
            following = ""
            if isinstance(value, Entries):
                parts.append(self._entries(value))
            elif value is not None:
                shown, following = self._formatted.get(value, (f"{{{value}}}", ""))
                parts.append(shown)
        return f'f"{"".join(parts)}"'

    def _entries(self, entries: Entries) -> str:
        """In an order that is the same on every backend."""
        side, field = entries.value.split(".")
        number = getattr(presence(getattr(self._change, side)), field)
        middle, between = self._piece(entries.middle), self._piece(entries.between)
        if number == MANY:
            return f"{{listed({entries.value}, '{middle}', '{between}')}}"
        names = [f"{side}_{field}_{place}" for place in range(number)]
        ordered = entries.value if number == 1 else f"sorted({entries.value})"
        self.preparations.append(f"{', '.join(names)}, = {ordered}")
        return between.join(f"{{{name}}}{middle}{{{entries.value}[{name}]}}" for name in names)

    def _piece(self, text: str) -> str:
        number = f"<{len(self._pieces)}>"
        self._pieces[number] = intern(text)
        return number

    def with_pieces(self, code: CodeType) -> CodeType:
        """The code, with each piece in the place of what stands for it."""
        return code.replace(co_consts=tuple(self._pieces.get(each, each) for each in code.co_consts))


def listed(entries: dict[str, str], middle: str, between: str) -> str:
    """For writers: many entries, in that order."""
    return between.join([f"{name}{middle}{entries[name]}" for name in sorted(entries)])


@lru_cache(maxsize=_SOURCES_KEPT)
def _compiled(source: str) -> Callable[..., Writer]:
    names: dict[str, Any] = {each.__name__: each for each in (Message, listed, turned, url_encoded)}
    names |= {"latest": latest, "THREE_DIGITS": THREE_DIGITS}
    exec(source, names)  # noqa: S102 - all of it was written here: no text of a message is in it
    made: Callable[..., Writer] = names["writer"]
    return made
