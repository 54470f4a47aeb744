"""Which bucket and key a request addresses. Path style: `/bucket/key`; or the bucket stands in the host.

The key is what stands behind the bucket's slash, decoded once: `//`, `.`, `..` and `%2F` are parts of it.
"""

import re
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import unquote_to_bytes

from bucketwire.errors import InvalidRequest

MAX_KEY_BYTES = 1024
_LOCAL_DOMAIN = "localhost"
"""Every name below it is this machine, without any DNS."""
_BARE_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")


@dataclass(frozen=True, slots=True)
class Address:
    """Both None is the service itself; a bucket without a key is the bucket."""

    bucket: str | None = None
    key: str | None = None


def path_style(raw_path: str, host: str, domain: str | None) -> str:
    """The path with the bucket in it, if that stood in the host: before the domain, or before `localhost`."""
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host
    name = name.lower().rstrip(".")
    if _is_ip_address(name):
        return raw_path
    for each in (domain, _LOCAL_DOMAIN):
        if each and name.endswith(f".{each}"):
            return f"/{name.removesuffix(f'.{each}')}{raw_path}"
    return raw_path


def locate(raw_path: str) -> Address:
    """The address in a path as it was sent on the wire."""
    bucket, _, key = raw_path[1:].partition("/")
    if not bucket:
        if key:
            raise InvalidRequest("The specified bucket is not valid.", code="InvalidBucketName")
        return Address()
    return Address(_decoded(bucket), _checked_key(key) if key else None)


def check_key(key: str) -> None:
    """Raise unless the key is short enough."""
    size_bytes = len(key.encode())
    if size_bytes > MAX_KEY_BYTES:
        raise InvalidRequest(
            "Your key is too long",
            code="KeyTooLongError",
            fields={"Size": str(size_bytes), "MaxSizeAllowed": str(MAX_KEY_BYTES)},
        )


def _is_ip_address(name: str) -> bool:
    try:
        ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


def _checked_key(quoted: str) -> str:
    key = _decoded(quoted)
    check_key(key)
    return key


def _decoded(quoted: str) -> str:
    """The text behind percent signs; it must be UTF-8 and have no NUL."""
    if "%" not in quoted:
        return quoted
    if _BARE_PERCENT.search(quoted):
        raise _unreadable()
    try:
        text = unquote_to_bytes(quoted).decode()
    except UnicodeDecodeError as problem:
        raise _unreadable() from problem
    if "\0" in text:
        raise _unreadable()
    return text


def _unreadable() -> InvalidRequest:
    return InvalidRequest("Couldn't parse the specified URI.", code="InvalidURI")
