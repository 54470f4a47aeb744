"""How an object stands in its table, on every backend with one.

A key may stand there as bytes, where a text column would not sort by them.
"""

from typing import Any

import msgspec

from bucketwire.event.change import Status
from bucketwire.metabase.values import Segment, StoredObject


class Described(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is kept of an object as JSON, since nothing is ever looked up by it."""

    headers: dict[str, str] = {}
    metadata: dict[str, str] = {}
    tags: dict[str, str] = {}
    checksums: dict[str, str] = {}


_encode = msgspec.json.Encoder().encode
decode_described = msgspec.json.Decoder(Described).decode
_decode_segments = msgspec.json.Decoder(tuple[Segment, ...]).decode

_ABOUT = (
    "object_key, version, status, size_bytes, etag, owner_id, created_at_ns, acl, content_type, described"
)
COLUMNS = f"{_ABOUT}, segments, inline"
WITHOUT_BYTES = f"{_ABOUT}, NULL, NULL"
"""Likewise, for those who do not ask for the bytes."""


def stored_from_row(row: tuple[Any, ...]) -> StoredObject:
    """An object as it stands in the table."""
    key, version, status, size_bytes, etag, owner_id, created_at_ns, acl, content_type, *rest = row
    described, segments, inline = rest
    kept = decode_described(described)
    return StoredObject(
        key=key if isinstance(key, str) else bytes(key).decode(),
        version=version,
        status=Status(status),
        size_bytes=size_bytes,
        etag=etag,
        owner_id=owner_id,
        created_at_ns=created_at_ns,
        acl=acl,
        content_type=content_type,
        headers=kept.headers,
        metadata=kept.metadata,
        tags=kept.tags,
        checksums=kept.checksums,
        segments=_decode_segments(segments) if segments else (),
        inline=inline,
    )


def row_from_stored(stored: StoredObject, key: str | bytes) -> tuple[object, ...]:
    """The values of `COLUMNS`, with the key as the backend keeps it."""
    return (
        key,
        stored.version,
        stored.status.value,
        stored.size_bytes,
        stored.etag,
        stored.owner_id,
        stored.created_at_ns,
        stored.acl,
        stored.content_type,
        encode_described(stored),
        _encode(stored.segments).decode() if stored.segments else None,
        stored.inline,
    )


def encode_described(stored: StoredObject) -> str:
    """The column `described`."""
    kept = Described(stored.headers, stored.metadata, stored.tags, stored.checksums)
    return _encode(kept).decode()
