"""IBM COS 2.0: a key and a payload.

    event_type                                    object_version   object_length  etag  headers
    Object:Write                                  the new one      new size       yes   new object's
    Object:Delete                                 the removed one  old size       no    removed one's
    Object:CreateDeleteMarker                     the marker's     0              no    none
    Object:CreateDeleteMarker:NullVersionDeleted  null             old size       no    null version's

`object_version` is there where the bucket has versioning; the null version is `null`, as in
`x-amz-version-id`. IBM has no word for changes of tags and ACLs: a rule that asks for them gets
`Object:Write`, with the object as it is.
"""

import re
from functools import lru_cache
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from bucketwire.event.change import ObjectChange, ObjectState, Versioning
from bucketwire.event.formats.s3 import Filled, Size
from bucketwire.event.formats.stamp import MILLISECONDS, Stamp, TimeInMilliseconds, Uuid, with_hyphens
from bucketwire.event.installation import Installation
from bucketwire.event.name import Operation
from bucketwire.event.rule import METADATA_PREFIX

_BARE_UUID = re.compile("[0-9a-f]{32}")
EventType = Literal[
    "Object:Write",
    "Object:Delete",
    "Object:CreateDeleteMarker",
    "Object:CreateDeleteMarker:NullVersionDeleted",
]
_MARKER_MADE = frozenset({Operation.DELETE_MARKER_CREATED, Operation.EXPIRATION_DELETE_MARKER_CREATED})
_DELETED = frozenset({Operation.DELETE, Operation.EXPIRATION_DELETE})


class CosKey(msgspec.Struct, frozen=True, gc=False):
    """Spreads the messages evenly over partitions, and is the same on a retry."""

    format: Literal["2.0"]
    request_id: Annotated[Filled, Meta(description="As the client was told it, in x-amz-request-id")]
    notification_id: Annotated[Uuid, Meta(description="The event id")]


class Header(msgspec.Struct, frozen=True, gc=False):
    """One entry of the object's metadata."""

    header: Annotated[str, Meta(pattern="^x-amz-meta-")]
    value: str


class CosMessage(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """The payload."""

    format: Literal["2.0"]
    request_id: Annotated[Filled, Meta(description="As the client was told it, in x-amz-request-id")]
    request_time: TimeInMilliseconds
    event_type: EventType
    bucket_name: Filled
    bucket_uuid: Uuid
    system_uuid: Uuid
    system_name: Filled | UnsetType = UNSET
    object_version: Filled | UnsetType = UNSET
    object_name: Filled
    object_length: Size
    object_etag: Filled | UnsetType = UNSET
    content_type: Filled | UnsetType = UNSET
    meta_headers: Annotated[list[Header], Meta(min_length=1)] | UnsetType = UNSET


TIME_DIGITS = MILLISECONDS
_encode = msgspec.json.Encoder().encode


def render_cos(change: ObjectChange, stamp: Stamp, installation: Installation) -> bytes:
    """The body of the message."""
    event_type, described = _event(change)
    return _encode(
        CosMessage(
            format="2.0",
            request_id=change.origin.request_id,
            request_time=stamp.time,
            event_type=event_type,
            bucket_name=change.bucket.name,
            bucket_uuid=_hyphenated(change.bucket.id),
            system_uuid=_hyphenated(installation.uuid),
            system_name=installation.name or UNSET,
            object_version=_version(change),
            object_name=change.key,
            object_length=described.size_bytes if described is not None else 0,
            object_etag=described.etag if described is not None and event_type == "Object:Write" else UNSET,
            content_type=(described.content_type if described is not None else None) or UNSET,
            meta_headers=_headers(described.metadata if described is not None else {}),
        )
    )


def cos_key(change: ObjectChange, stamp: Stamp) -> bytes:
    """What the message is placed by on a broker with partitions."""
    return _encode(CosKey("2.0", change.origin.request_id, with_hyphens(stamp.event_id)))


def _event(change: ObjectChange) -> tuple[EventType, ObjectState | None]:
    """The event type, and the state whose size and headers the payload tells."""
    operation = change.operation
    if operation in _DELETED:
        return "Object:Delete", change.old
    if operation not in _MARKER_MADE:
        return "Object:Write", change.new
    if change.old is None:
        return "Object:CreateDeleteMarker", None
    return "Object:CreateDeleteMarker:NullVersionDeleted", change.old


def _version(change: ObjectChange) -> str | UnsetType:
    state = change.new or change.old
    if state is None:
        return UNSET
    if state.version_id is not None:
        return state.version_id
    return UNSET if change.bucket.versioning is Versioning.UNVERSIONED else "null"


def _headers(metadata: dict[str, str]) -> list[Header] | UnsetType:
    """The metadata as it is told, in an order that is the same on every backend."""
    if not metadata:
        return UNSET
    return [Header(METADATA_PREFIX + name, value) for name, value in sorted(metadata.items())]


@lru_cache(maxsize=1024)
def _hyphenated(name: str) -> str:
    """The UUID in the form that IBM shows; a name of another form stays as it is."""
    return with_hyphens(name) if _BARE_UUID.fullmatch(name) else name
