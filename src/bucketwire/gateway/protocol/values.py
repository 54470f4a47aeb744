"""Scalars on the wire: text to values of a shape's type, and back."""

from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime
from typing import Any

from bucketwire.gateway.protocol.model import Shape

Convert = Callable[[str], Any]
_OFFSET_DIGITS = 18
_BEHIND_EVERYTHING = 10**_OFFSET_DIGITS


def reader(shape: Shape) -> Convert:
    """Reads a scalar of the shape's type; raises ValueError when the text is none."""
    return _READERS.get(shape.type_name, str)


def writer(shape: Shape, *, in_header: bool) -> Callable[[Any], str]:
    """Writes a scalar of the shape's type."""
    if shape.type_name == "timestamp":
        style = shape.serialization.get("timestampFormat", "rfc822" if in_header else "iso8601")
        return http_date if style == "rfc822" else _iso_date
    if shape.type_name == "boolean":
        return _boolean_text
    return str


def http_date(when: datetime) -> str:
    """`Sun, 15 Nov 2026 20:24:40 GMT`."""
    return format_datetime(when, usegmt=True)


def byte_offset(digits: str) -> int:
    """Where a byte is, by a number of any length: one behind all objects stands for all such."""
    significant = digits.lstrip("0")
    return int(significant or "0") if len(significant) <= _OFFSET_DIGITS else _BEHIND_EVERYTHING


def _integer(text: str) -> int:
    if not text.lstrip("-").isdecimal() or not text.isascii() or len(text) > 19:  # noqa: PLR2004 - 64 bits
        raise ValueError("not an integer")
    return int(text)


def _boolean(text: str) -> bool:
    match text.lower():
        case "true":
            return True
        case "false":
            return False
        case _:
            raise ValueError("neither true nor false")


def _timestamp(text: str) -> datetime:
    """RFC 822 as in HTTP, or ISO 8601; without a zone it is UTC."""
    try:
        when = datetime.fromisoformat(text) if text[:1].isdigit() else parsedate_to_datetime(text)
        return when.astimezone(UTC) if when.tzinfo else when.replace(tzinfo=UTC)
    except (OverflowError, TypeError, IndexError) as problem:
        raise ValueError("not a time") from problem


def _boolean_text(value: Any) -> str:
    return "true" if value else "false"


def _iso_date(when: datetime) -> str:
    return f"{when:%Y-%m-%dT%H:%M:%S}.{when.microsecond // 1000:03d}Z"


_READERS: dict[str, Convert] = {
    "integer": _integer,
    "long": _integer,
    "boolean": _boolean,
    "timestamp": _timestamp,
}
