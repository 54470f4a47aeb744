"""A change that has not happened: what it would be, for `explain`. Pure.

    what is asked + the object as it is now -> supposed_change -> ObjectChange

What is asked goes before what is there. Where there is no object, one without bytes, metadata and tags is
supposed. Nothing here is ever committed, so the sequencer and the ids are not those of a later event.
"""

from typing import Any

import msgspec

from bucketwire.event.change import ObjectChange, ObjectState, Origin, Status, Versioning
from bucketwire.event.name import PREFIX, Operation
from bucketwire.event.rule import METADATA_PREFIX
from bucketwire.metabase.mutations import MARKER_ETAG
from bucketwire.metabase.values import NULL_VERSION_ID, Bucket, StoredObject, version_id
from bucketwire.metainfo.expire import LIFECYCLE_PRINCIPAL
from bucketwire.metainfo.refusals import invalid_argument

MAX_KEY_BYTES = 1024
MAX_SIZE_BYTES = 1 << 63
_REMOVALS = frozenset({Operation.DELETE, Operation.EXPIRATION_DELETE})
MARKER_MADE = frozenset({Operation.DELETE_MARKER_CREATED, Operation.EXPIRATION_DELETE_MARKER_CREATED})
_DESCRIBING = frozenset({Operation.TAGGING_PUT, Operation.TAGGING_DELETE, Operation.ACL_PUT})
_EXPIRY = frozenset({Operation.EXPIRATION_DELETE, Operation.EXPIRATION_DELETE_MARKER_CREATED})
_IN_PLACE = _REMOVALS | _DESCRIBING
"""What leaves no older version behind."""


class Supposition(msgspec.Struct, frozen=True):
    """What is asked: an event of a key, and what is to be supposed of the object; None leaves it as it is."""

    key: str
    operation: Operation
    size_bytes: int | None = None
    etag: str | None = None
    content_type: str | None = None
    metadata: dict[str, str] | None = None
    tags: dict[str, str] | None = None
    version: str | None = None
    """The id of a version, or `null`."""


def supposition(key: str, event: str, **known: Any) -> Supposition:
    """What is asked, checked; `InvalidRequest` for a key, an event or a size that cannot be."""
    _check_key(key)
    size_bytes = known.get("size_bytes")
    if size_bytes is not None and not 0 <= size_bytes < MAX_SIZE_BYTES:
        raise invalid_argument("The size must be 0 or more", "size", str(size_bytes))
    return Supposition(key, operation_named(event), **known)


def operation_named(event: str) -> Operation:
    """The operation of an event name, with or without `s3:`; `InvalidRequest` that lists what there is."""
    name = event.removeprefix(PREFIX)
    if name in set(Operation):
        return Operation(name)
    known = ", ".join(PREFIX + each for each in Operation)
    problem = "stands for several events" if name.endswith("*") else "is no event that an object can have"
    raise invalid_argument(f"{event!r} {problem}: use one of {known}", "event", event)


def entries(texts: list[str], argument: str) -> dict[str, str] | None:
    """Metadata or tags out of `name=value` each; None when nothing is given."""
    pairs = [text.partition("=") for text in texts]
    for text, (name, equals, _) in zip(texts, pairs, strict=True):
        if not name or not equals:
            raise invalid_argument(f"{argument} is given as name=value", argument, text)
    return {name: value for name, _, value in pairs} or None


def metadata_entries(texts: list[str]) -> dict[str, str] | None:
    """Likewise for metadata, whose names are in lower case, and may have their prefix."""
    found = entries(texts, "metadata")
    return found and {name.lower().removeprefix(METADATA_PREFIX): value for name, value in found.items()}


def supposed_change(
    asked: Supposition, bucket: Bucket, stored: StoredObject | None, origin: Origin, now_ns: int
) -> ObjectChange:
    """The change that would be committed now. `stored` is the object it would find."""
    before = stored.state() if stored else None
    state = _state(asked, bucket, before, now_ns)
    new, taken = _sides(asked.operation, bucket, state, before, now_ns)
    stays = asked.operation not in _IN_PLACE and _stays(taken, bucket)
    return ObjectChange(
        operation=asked.operation,
        committed_at_ns=now_ns,
        bucket=bucket.ref(),
        key=asked.key,
        origin=_expirer(origin) if asked.operation in _EXPIRY else origin,
        new=new,
        old=None if stays else taken,
        previous=taken if stays else None,
    )


def _sides(
    operation: Operation, bucket: Bucket, state: ObjectState, before: ObjectState | None, now_ns: int
) -> tuple[ObjectState | None, ObjectState | None]:
    """What would be there then, and what is there before."""
    if operation in _REMOVALS:
        return None, state
    if operation in MARKER_MADE:
        return _marker(bucket, now_ns), state
    if operation in _DESCRIBING:
        tags = {} if operation is Operation.TAGGING_DELETE else state.tags
        return msgspec.structs.replace(state, tags=tags), before
    return _written(state, bucket, before, now_ns), before


def _state(asked: Supposition, bucket: Bucket, before: ObjectState | None, now_ns: int) -> ObjectState:
    """The object that the change is about, as it is and as it is supposed to be."""
    given = {
        name: value
        for name in ("size_bytes", "etag", "content_type", "metadata", "tags")
        if (value := getattr(asked, name)) is not None
    }
    if asked.version is not None:
        given["version_id"] = None if asked.version == NULL_VERSION_ID else asked.version
    return msgspec.structs.replace(before or _nothing(bucket, now_ns), **given)


def _nothing(bucket: Bucket, now_ns: int) -> ObjectState:
    if bucket.versioning is Versioning.ENABLED:
        return ObjectState(Status.COMMITTED_VERSIONED, 0, MARKER_ETAG, version_id(now_ns))
    return ObjectState(Status.COMMITTED_UNVERSIONED, 0, MARKER_ETAG)


def _written(state: ObjectState, bucket: Bucket, before: ObjectState | None, now_ns: int) -> ObjectState:
    """The object as a write leaves it: a version of its own, where there is versioning."""
    if bucket.versioning is not Versioning.ENABLED:
        return msgspec.structs.replace(state, status=Status.COMMITTED_UNVERSIONED, version_id=None)
    known = before is not None and state.version_id == before.version_id
    return msgspec.structs.replace(
        state,
        status=Status.COMMITTED_VERSIONED,
        version_id=version_id(now_ns) if known else state.version_id,
    )


def _expirer(origin: Origin) -> Origin:
    """The origin of what no user does."""
    return Origin(LIFECYCLE_PRINCIPAL, LIFECYCLE_PRINCIPAL, origin.request_id, "lifecycle")


def _marker(bucket: Bucket, now_ns: int) -> ObjectState:
    if bucket.versioning is Versioning.SUSPENDED:
        return ObjectState(Status.DELETE_MARKER_UNVERSIONED, 0, MARKER_ETAG)
    return ObjectState(Status.DELETE_MARKER_VERSIONED, 0, MARKER_ETAG, version_id(now_ns))


def _stays(before: ObjectState | None, bucket: Bucket) -> bool:
    """Whether the object before stays, as an older version, or makes room."""
    return bucket.versioning is Versioning.ENABLED or (before is not None and before.version_id is not None)


def _check_key(key: str) -> None:
    try:
        size_bytes = len(key.encode())
    except UnicodeEncodeError as problem:
        raise invalid_argument("The key is not UTF-8", "key", ascii(key)) from problem
    if not 0 < size_bytes <= MAX_KEY_BYTES or "\0" in key:
        raise invalid_argument(f"A key has 1 to {MAX_KEY_BYTES} bytes, none of them NUL", "key", key)
