"""What each mutation of an object does to rows and to the change stream, once for all backends.

A backend gives `Rows`: the few statements that a mutation is made of, inside one transaction. The decisions
are here, so that they are the same everywhere:

    unversioned   the null version is replaced, deleted for good
    enabled       each write is a new version; a delete makes a marker
    suspended     writes replace the null version; a delete replaces it with a null marker

Each mutation of a key is one change, if a rule in force accepts it: no rule, no row.
"""

from collections.abc import Sequence
from typing import Protocol, TypeVar

import msgspec

from bucketwire.errors import InvalidRequest, NotFound
from bucketwire.event.change import ObjectChange, Origin, Status, Versioning
from bucketwire.event.name import Operation
from bucketwire.event.rule import Rule, matching, transmit
from bucketwire.metabase.values import (
    ALWAYS,
    NULL_VERSION_ID,
    Bucket,
    Condition,
    Deleted,
    NewObject,
    StoredObject,
    parse_version_id,
)

MARKER_ETAG = "d41d8cd98f00b204e9800998ecf8427e"
"""A delete marker has no bytes; this is the digest of none."""

R = TypeVar("R", StoredObject, Deleted)

_MARKER_MADE = {False: Operation.DELETE_MARKER_CREATED, True: Operation.EXPIRATION_DELETE_MARKER_CREATED}
_DELETED = {False: Operation.DELETE, True: Operation.EXPIRATION_DELETE}


class Versions(Protocol):
    """The statements that find a version of a key."""

    def latest(self, bucket_id: str, key: str) -> StoredObject | None:
        """The row of the key with the greatest version."""
        ...

    def null_version(self, bucket_id: str, key: str) -> StoredObject | None:
        """The row of the key that is the null version."""
        ...

    def exact(self, bucket_id: str, key: str, version: int) -> StoredObject | None:
        """The row of that version, unless it is the null version."""
        ...


class Rows(Versions, Protocol):
    """The statements of one transaction. `lock` makes those of one key wait for each other."""

    def bucket(self, name: str) -> tuple[Bucket, int]:
        """The bucket and the revision of its rules; `NotFound` with NoSuchBucket."""
        ...

    def rules(self, bucket_id: str, revision: int) -> Sequence[Rule]:
        """The rules of that revision."""
        ...

    def lock(self, bucket_id: str, *keys: str) -> None:
        """Wait until no other transaction mutates the keys, and keep others out until the end of this one."""
        ...

    def stamp_ns(self) -> int:
        """A time later than any given before for the keys that are locked."""
        ...

    def insert(self, bucket_id: str, stored: StoredObject) -> None:
        """Add a row."""
        ...

    def remove(self, bucket_id: str, key: str, version: int) -> None:
        """Take a row away; its blobs stay."""
        ...

    def describe(self, bucket_id: str, stored: StoredObject) -> None:
        """Write the row's tags and ACL anew."""
        ...

    def drop_blobs(self, names: Sequence[str]) -> None:
        """Note that nothing uses these blobs any more."""
        ...

    def append(self, change: ObjectChange) -> None:
        """Add the change to the stream."""
        ...


def put(
    rows: Rows,
    bucket: str,
    new: NewObject,
    operation: Operation,
    origin: Origin,
    condition: Condition = ALWAYS,
) -> StoredObject:
    """Commit an object: in place of the null version, or as a new version."""
    return _put(_Work(rows, bucket, origin), new, operation, condition)


def delete(
    rows: Rows,
    bucket: str,
    key: str,
    origin: Origin,
    *,
    version: str | None = None,
    missing_transmits: bool,
    expired: bool = False,
    condition: Condition = ALWAYS,
) -> Deleted:
    """Delete the current object, or one version for good."""
    work = _Work(rows, bucket, origin)
    latest = work.lock(key)
    if version is not None:
        named = find_version(rows, work.bucket, key, version)
        check(condition, named)
        return _delete_exact(work, named, key, version, _DELETED[expired])
    check(condition, latest)
    if work.bucket.versioning is not Versioning.UNVERSIONED:
        return _make_marker(work, key, latest, _MARKER_MADE[expired])
    if latest is not None:
        work.take_away(latest)
    if latest is not None or missing_transmits:
        work.record(_DELETED[expired], key, rows.stamp_ns(), old=latest)
    return work.done(Deleted(key))


def move(
    rows: Rows,
    bucket: str,
    key: str,
    to_bucket: str,
    to_key: str,
    origin: Origin,
    condition: Condition = ALWAYS,
) -> StoredObject:
    """The bytes stay where they are; the row gets another key."""
    source, target = _Work(rows, bucket, origin), _Work(rows, to_bucket, origin)
    if (source.bucket.id, key) == (target.bucket.id, to_key):
        raise InvalidRequest("An object cannot be moved onto itself")
    for bucket_id, each in sorted([(source.bucket.id, key), (target.bucket.id, to_key)]):
        rows.lock(bucket_id, each)
    moved = present(rows, source.bucket, key, None)
    check(condition, moved)
    rows.remove(source.bucket.id, key, moved.version)
    stored = _put(target, _new_from_stored(moved, to_key), Operation.COPY, ALWAYS)
    source.record(Operation.DELETE, key, rows.stamp_ns(), old=moved)
    return source.done(stored)


def set_tags(
    rows: Rows,
    bucket: str,
    key: str,
    version: str | None,
    tags: dict[str, str],
    origin: Origin,
    condition: Condition = ALWAYS,
) -> StoredObject:
    """Tags are part of the object, and setting them is a change of it."""
    work = _Work(rows, bucket, origin)
    work.lock(key)
    before = present(rows, work.bucket, key, version)
    check(condition, before)
    after = msgspec.structs.replace(before, tags=tags)
    rows.describe(work.bucket.id, after)
    operation = Operation.TAGGING_PUT if tags else Operation.TAGGING_DELETE
    work.record(operation, key, rows.stamp_ns(), new=after, old=before)
    return work.done(after)


def set_acl(
    rows: Rows,
    bucket: str,
    key: str,
    version: str | None,
    acl: str,
    origin: Origin,
    condition: Condition = ALWAYS,
) -> StoredObject:
    """An ACL that is as it was is no change."""
    work = _Work(rows, bucket, origin)
    work.lock(key)
    before = present(rows, work.bucket, key, version)
    check(condition, before)
    if before.acl == acl:
        return before
    after = msgspec.structs.replace(before, acl=acl)
    rows.describe(work.bucket.id, after)
    work.record(Operation.ACL_PUT, key, rows.stamp_ns(), new=after, old=before)
    return work.done(after)


def find_version(rows: Versions, bucket: Bucket, key: str, version: str | None) -> StoredObject | None:
    """The current row, or the one that a version id names."""
    if version is None:
        return rows.latest(bucket.id, key)
    number = parse_version_id(version)
    if number is None:
        return _null_version(rows, bucket.id, key, rows.latest(bucket.id, key))
    return rows.exact(bucket.id, key, number)


def found_version(rows: Versions, bucket: Bucket, key: str, version: str | None) -> StoredObject:
    """Likewise; `NotFound` with NoSuchKey or NoSuchVersion."""
    found = find_version(rows, bucket, key, version)
    if found is None:
        raise no_such_key(key) if version is None else _no_such_version(key, version)
    return found


def present(rows: Versions, bucket: Bucket, key: str, version: str | None) -> StoredObject:
    """Likewise, and not a delete marker."""
    found = found_version(rows, bucket, key, version)
    if found.is_marker:
        if version is None:
            raise no_such_key(key)
        raise InvalidRequest(
            "The specified method is not allowed against this resource.", code="MethodNotAllowed"
        )
    return found


def check(condition: Condition, current: StoredObject | None) -> None:
    """Raise unless the condition holds of the current object; a delete marker is no object."""
    if condition.if_version is not None and (current is None or current.version != condition.if_version):
        raise _precondition_failed("version")
    etag = None if current is None or current.is_marker else current.etag
    if condition.if_match is not None:
        if etag is None:
            raise no_such_key(current.key if current else "")
        if condition.if_match not in {"*", etag}:
            raise _precondition_failed("If-Match")
    if condition.if_none_match is not None and etag is not None and condition.if_none_match in {"*", etag}:
        raise _precondition_failed("If-None-Match")


def no_such_key(key: str) -> NotFound:
    """The error for a key without a current object."""
    return NotFound("The specified key does not exist.", code="NoSuchKey", fields={"Key": key})


def _null_version(
    rows: Versions, bucket_id: str, key: str, latest: StoredObject | None
) -> StoredObject | None:
    """The current row, if that is it; only if not, all versions of the key are looked at."""
    if latest is None or latest.version_id is None:
        return latest
    return rows.null_version(bucket_id, key)


def _no_such_version(key: str, version: str) -> NotFound:
    return NotFound(
        "The specified version does not exist.",
        code="NoSuchVersion",
        fields={"Key": key, "VersionId": version},
    )


def _precondition_failed(header: str) -> InvalidRequest:
    return InvalidRequest(
        "At least one of the pre-conditions you specified did not hold",
        code="PreconditionFailed",
        fields={"Condition": header},
    )


def _put(work: "_Work", new: NewObject, operation: Operation, condition: Condition) -> StoredObject:
    latest = work.lock(new.key)
    check(condition, latest)
    versioned = work.bucket.versioning is Versioning.ENABLED
    old = None if versioned else work.take_null_version(new.key, latest)
    status = Status.COMMITTED_VERSIONED if versioned else Status.COMMITTED_UNVERSIONED
    stored = _stored(new, status, work.rows.stamp_ns())
    work.rows.insert(work.bucket.id, stored)
    work.record(operation, new.key, stored.version, new=stored, old=old, latest=latest)
    return work.done(stored)


def _make_marker(work: "_Work", key: str, latest: StoredObject | None, operation: Operation) -> Deleted:
    enabled = work.bucket.versioning is Versioning.ENABLED
    old = None if enabled else work.take_null_version(key, latest)
    stamp_ns = work.rows.stamp_ns()
    marker = StoredObject(
        key=key,
        version=stamp_ns,
        status=Status.DELETE_MARKER_VERSIONED if enabled else Status.DELETE_MARKER_UNVERSIONED,
        size_bytes=0,
        etag=MARKER_ETAG,
        owner_id=work.bucket.owner_id,
        created_at_ns=stamp_ns,
    )
    work.rows.insert(work.bucket.id, marker)
    work.record(operation, key, stamp_ns, new=marker, old=old, latest=latest)
    return work.done(Deleted(key, marker.version_id or NULL_VERSION_ID, is_marker=True))


def _delete_exact(
    work: "_Work", named: StoredObject | None, key: str, version: str, operation: Operation
) -> Deleted:
    if named is None:
        return Deleted(key, version)
    work.take_away(named)
    work.record(operation, key, work.rows.stamp_ns(), old=named)
    return work.done(Deleted(key, version, is_marker=named.is_marker))


class _Work:
    """A mutation under way in one bucket."""

    def __init__(self, rows: Rows, bucket: str, origin: Origin) -> None:
        self.rows = rows
        self.bucket, self._revision = rows.bucket(bucket)
        self._pushes = origin.pushes
        self._origin = msgspec.structs.replace(origin, pushes=frozenset()) if origin.pushes else origin
        self._pushed: list[ObjectChange] = []

    def lock(self, key: str) -> StoredObject | None:
        """Keep other mutations of the key out; what is current then."""
        self.rows.lock(self.bucket.id, key)
        return self.rows.latest(self.bucket.id, key)

    def take_null_version(self, key: str, latest: StoredObject | None) -> StoredObject | None:
        """Take the null version away, if there is one."""
        null_version = _null_version(self.rows, self.bucket.id, key, latest)
        if null_version is not None:
            self.take_away(null_version)
        return null_version

    def take_away(self, stored: StoredObject) -> None:
        """Remove the row, and let its bytes be removed after the commit."""
        self.rows.remove(self.bucket.id, stored.key, stored.version)
        if stored.segments:
            self.rows.drop_blobs([segment.blob for segment in stored.segments])

    def record(
        self,
        operation: Operation,
        key: str,
        committed_at_ns: int,
        *,
        new: StoredObject | None = None,
        old: StoredObject | None = None,
        latest: StoredObject | None = None,
    ) -> None:
        """Append the change, if a rule in force accepts it. `latest` is what was current before."""
        if not self._revision:
            return
        change = ObjectChange(
            operation=operation,
            committed_at_ns=committed_at_ns,
            bucket=self.bucket.ref(),
            key=key,
            origin=self._origin,
            new=new.state() if new else None,
            old=old.state() if old else None,
            previous=latest.state() if latest and _still_there(latest, old) else None,
            revision=self._revision,
        )
        rules = self.rows.rules(self.bucket.id, self._revision)
        if self._pushes:
            change, rules = self._shared_out(change, rules)
        if transmit(change, rules):
            self.rows.append(change)

    def done(self, result: R) -> R:
        """The result, with the changes that are not for the stream alone."""
        if not self._pushed:
            return result
        return msgspec.structs.replace(result, pushed=(*result.pushed, *self._pushed))

    def _shared_out(self, change: ObjectChange, rules: Sequence[Rule]) -> tuple[ObjectChange, Sequence[Rule]]:
        """The change, told which topics get it from the gateway, and the rules of the others."""
        pushed = self._pushes & {rule.topic_arn for rule in matching(change, rules)}
        if not pushed:
            return change, rules
        origin = msgspec.structs.replace(self._origin, pushes=pushed)
        change = msgspec.structs.replace(change, origin=origin)
        self._pushed.append(change)
        return change, [rule for rule in rules if rule.topic_arn not in pushed]


def _still_there(latest: StoredObject, old: StoredObject | None) -> bool:
    return not latest.is_marker and (old is None or old.version != latest.version)


def _stored(new: NewObject, status: Status, stamp_ns: int) -> StoredObject:
    return StoredObject(
        key=new.key,
        version=stamp_ns,
        status=status,
        size_bytes=new.size_bytes,
        etag=new.etag,
        owner_id=new.owner_id,
        created_at_ns=stamp_ns,
        acl=new.acl,
        content_type=new.content_type,
        headers=new.headers,
        metadata=new.metadata,
        tags=new.tags,
        checksums=new.checksums,
        inline=new.inline,
        segments=new.segments,
    )


def _new_from_stored(stored: StoredObject, key: str) -> NewObject:
    return NewObject(
        key=key,
        size_bytes=stored.size_bytes,
        etag=stored.etag,
        owner_id=stored.owner_id,
        acl=stored.acl,
        content_type=stored.content_type,
        headers=stored.headers,
        metadata=stored.metadata,
        tags=stored.tags,
        checksums=stored.checksums,
        inline=stored.inline,
        segments=stored.segments,
    )
