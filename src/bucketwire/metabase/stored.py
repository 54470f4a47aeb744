"""How buckets, objects, uploads and rules stand in their tables, and what is said of those that do not.

A key may stand there as bytes, where a text column would not sort by them.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from bucketwire.errors import Conflict, InvalidRequest, NotFound
from bucketwire.event.change import Status, Versioning
from bucketwire.event.rule import Rule
from bucketwire.metabase.values import Bucket, Part, Segment, StoredObject, Upload


class Described(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is kept of an object as JSON, since nothing is ever looked up by it."""

    headers: dict[str, str] = {}
    metadata: dict[str, str] = {}
    tags: dict[str, str] = {}
    checksums: dict[str, str] = {}


_encode = msgspec.json.Encoder().encode
decode_described = msgspec.json.Decoder(Described).decode
decode_upload = msgspec.json.Decoder(Upload).decode
decode_part = msgspec.json.Decoder(Part).decode
_decode_segments = msgspec.json.Decoder(tuple[Segment, ...]).decode
_decode_rule = msgspec.json.Decoder(Rule).decode

_ABOUT = (
    "object_key, version, status, size_bytes, etag, owner_id, created_at_ns, acl, content_type, described"
)
COLUMNS = f"{_ABOUT}, segments, inline"
WITHOUT_BYTES = f"{_ABOUT}, NULL, NULL"
"""Likewise, for those who do not ask for the bytes."""
BUCKET_COLUMNS = "id, name, owner_id, region, created_at_ns, versioning, revision"
_REVISIONS_KEPT = 4096


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


def encode_text(value: Upload | Part | Rule) -> str:
    """A value of which one column is made."""
    return _encode(value).decode()


def bucket_from_row(row: tuple[Any, ...]) -> Bucket:
    """From the values of `BUCKET_COLUMNS`."""
    identity, name, owner_id, region, created_at_ns, versioning, _ = row
    return Bucket(identity, name, owner_id, region, created_at_ns, Versioning(versioning))


def found_bucket(row: tuple[Any, ...] | None, name: str) -> tuple[Bucket, int]:
    """The bucket and the revision of its rules; `NotFound` with NoSuchBucket."""
    if row is None:
        raise NotFound(
            "The specified bucket does not exist", code="NoSuchBucket", fields={"BucketName": name}
        )
    return bucket_from_row(row), row[-1]


def bucket_taken(name: str, *, owned: bool) -> Conflict:
    """The error for a bucket that exists, be it the caller's own or not."""
    if owned:
        return Conflict(
            "Your previous request to create the named bucket succeeded and you already own it.",
            code="BucketAlreadyOwnedByYou",
            fields={"BucketName": name},
        )
    return Conflict(
        "The requested bucket name is not available. Please select a different name and try again.",
        code="BucketAlreadyExists",
        fields={"BucketName": name},
    )


def bucket_not_empty(name: str) -> Conflict:
    """The error for a bucket that cannot be deleted."""
    return Conflict(
        "The bucket you tried to delete is not empty", code="BucketNotEmpty", fields={"BucketName": name}
    )


def found_upload(row: tuple[Any, ...] | None, upload_id: str) -> Upload:
    """From (upload); `NotFound` with NoSuchUpload."""
    if row is None:
        raise NotFound(
            "The specified upload does not exist. The upload ID may be invalid, or the upload may have been "
            "aborted or completed.",
            code="NoSuchUpload",
            fields={"UploadId": upload_id},
        )
    return decode_upload(row[0])


def left_over(present: set[str], parts: Sequence[Part]) -> list[str]:
    """The blobs of an upload that these parts do not use; InvalidPart if one that they use is gone."""
    kept = {part.blob for part in parts}
    if not kept <= present:
        raise InvalidRequest("One or more of the specified parts could not be found.", code="InvalidPart")
    return sorted(present - kept)


class SeenRules:
    """The rules of revisions that were read once: they never change."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, int], list[Rule]] = {}

    def of(self, bucket_id: str, revision: int, read: Callable[[], Iterable[tuple[Any, ...]]]) -> list[Rule]:
        """From rows (rule), in their order, if they must be read; do not change the list."""
        known = self._kept.get((bucket_id, revision))
        if known is None:
            known = [_decode_rule(row[0]) for row in read()]
            if len(self._kept) >= _REVISIONS_KEPT:
                self._kept.clear()
            self._kept[bucket_id, revision] = known
        return known
