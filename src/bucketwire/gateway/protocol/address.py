"""Which bucket and key a request addresses. Path style: `/bucket/key`.

The key is what stands behind the bucket's slash, decoded once: `//`, `.`, `..` and `%2F` are parts of it.
"""

from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

from bucketwire.errors import InvalidRequest

MAX_KEY_BYTES = 1024


@dataclass(frozen=True, slots=True)
class Address:
    """Both None is the service itself; a bucket without a key is the bucket."""

    bucket: str | None = None
    key: str | None = None


def locate(raw_path: str) -> Address:
    """The address in a path as it was sent on the wire."""
    bucket, _, key = raw_path[1:].partition("/")
    if not bucket:
        if key:
            raise InvalidRequest("The specified bucket is not valid.", code="InvalidBucketName")
        return Address()
    return Address(_decoded(bucket), _checked_key(key) if key else None)


def _checked_key(quoted: str) -> str:
    key = _decoded(quoted)
    size_bytes = len(key.encode())
    if size_bytes > MAX_KEY_BYTES:
        raise InvalidRequest(
            "Your key is too long",
            code="KeyTooLongError",
            fields={"Size": str(size_bytes), "MaxSizeAllowed": str(MAX_KEY_BYTES)},
        )
    return key


def _decoded(quoted: str) -> str:
    """The text behind percent signs; it must be UTF-8 and have no NUL."""
    if "%" not in quoted:
        return quoted
    try:
        text = unquote_to_bytes(quoted).decode()
    except UnicodeDecodeError as problem:
        raise _unreadable() from problem
    if "\0" in text:
        raise _unreadable()
    return text


def _unreadable() -> InvalidRequest:
    return InvalidRequest("Couldn't parse the specified URI.", code="InvalidURI")
