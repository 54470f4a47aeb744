"""Objects, and the one change that each mutation commits with itself.

    find the bucket and its revision -> what stands there now -> write -> change, if a rule accepts it

all in one transaction. The row of an object that is replaced goes away; its blob is noted as dropped
and removed later, once the commit is on the disk.
"""

from collections.abc import Sequence

import msgspec

from bucketwire.errors import NotFound
from bucketwire.event.change import ObjectChange, Origin, Status, encode_change
from bucketwire.event.name import Operation
from bucketwire.event.rule import transmit
from bucketwire.metabase.base import Bucket, NewObject, Page, StoredObject
from bucketwire.metabase.sqlite.buckets import find_bucket
from bucketwire.metabase.sqlite.connection import Execute, Readers
from bucketwire.metabase.sqlite.listing import list_page
from bucketwire.metabase.sqlite.rules import SqliteRules
from bucketwire.metabase.sqlite.writer import Transaction, Writer


class _Described(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is kept of an object as JSON, since nothing is ever looked up by it."""

    headers: dict[str, str] = {}
    metadata: dict[str, str] = {}
    tags: dict[str, str] = {}
    checksums: dict[str, str] = {}


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Described).decode

_CURRENT = """
SELECT status, size_bytes, etag, created_at_ns, version_id, content_type, described, blob, inline
FROM objects WHERE bucket_id = ? AND object_key = ? ORDER BY version DESC LIMIT 1
"""
_INSERT = """
INSERT INTO objects (bucket_id, object_key, version, status, size_bytes, etag, created_at_ns,
    content_type, described, blob, inline)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_DELETE = "DELETE FROM objects WHERE bucket_id = ? AND object_key = ?"
_DROP_BLOB = "INSERT OR IGNORE INTO dropped_blobs (name) VALUES (?)"
_CHANGE = "INSERT INTO changes (committed_at_ns, change) VALUES (?, ?)"


class SqliteObjects:
    """Implements `Objects`."""

    def __init__(self, readers: Readers, writer: Writer, rules: SqliteRules) -> None:
        self._readers = readers
        self._writer = writer
        self._rules = rules

    def put(self, bucket: str, new: NewObject, operation: Operation, origin: Origin) -> StoredObject:
        """Commit the object in place of what had its key."""

        def job(transaction: Transaction) -> StoredObject:
            found, revision = find_bucket(transaction.execute, bucket)
            old = _take_away(transaction, found, new.key)
            stored = _stored(new, transaction.stamp_ns())
            _insert(transaction, found, stored)
            self._record(
                transaction,
                ObjectChange(
                    operation=operation,
                    committed_at_ns=stored.created_at_ns,
                    bucket=found.ref(),
                    key=new.key,
                    origin=origin,
                    new=stored.state(),
                    old=old.state() if old else None,
                    revision=revision,
                ),
            )
            return stored

        return self._writer.run(job)

    def get(self, bucket: str, key: str) -> StoredObject:
        """The current object."""
        found, _ = find_bucket(self._readers.execute, bucket)
        current = _current(self._readers.execute, found, key)
        if current is None:
            raise NotFound("The specified key does not exist.", code="NoSuchKey", fields={"Key": key})
        return current

    def delete(self, bucket: str, key: str, origin: Origin, *, missing_transmits: bool) -> None:
        """Remove the current object."""

        def job(transaction: Transaction) -> None:
            found, revision = find_bucket(transaction.execute, bucket)
            old = _take_away(transaction, found, key)
            if old is None and not missing_transmits:
                return
            self._record(
                transaction,
                ObjectChange(
                    operation=Operation.DELETE,
                    committed_at_ns=transaction.stamp_ns(),
                    bucket=found.ref(),
                    key=key,
                    origin=origin,
                    old=old.state() if old else None,
                    revision=revision,
                ),
            )

        self._writer.run(job)

    def page(self, bucket: str, *, prefix: str, delimiter: str, after: str, limit: int) -> Page:
        """A page of the listing."""
        found, _ = find_bucket(self._readers.execute, bucket)
        return list_page(
            self._readers, found.id, prefix=prefix, delimiter=delimiter, after=after, limit=limit
        )

    def dropped_blobs(self, limit: int) -> list[str]:
        """Blobs that may be removed."""
        rows = self._readers.rows("SELECT name FROM dropped_blobs LIMIT ?", (limit,))
        return [row[0] for row in rows]

    def forget_blobs(self, names: Sequence[str]) -> None:
        """The bytes are gone."""

        def job(transaction: Transaction) -> None:
            transaction.executemany("DELETE FROM dropped_blobs WHERE name = ?", [(name,) for name in names])

        self._writer.run(job)

    def _record(self, transaction: Transaction, change: ObjectChange) -> None:
        """Write the change, if a rule in force accepts it: no rule, no row."""
        revision = change.revision
        if revision and transmit(
            change, self._rules.seen_by(transaction.execute, change.bucket.id, revision)
        ):
            transaction.execute(_CHANGE, (change.committed_at_ns, encode_change(change)))


def _take_away(transaction: Transaction, bucket: Bucket, key: str) -> StoredObject | None:
    """Remove what has the key, and give it back."""
    old = _current(transaction.execute, bucket, key)
    if old is not None:
        transaction.execute(_DELETE, (bucket.id, key))
        if old.blob is not None:
            transaction.execute(_DROP_BLOB, (old.blob,))
    return old


def _current(execute: Execute, bucket: Bucket, key: str) -> StoredObject | None:
    row = execute(_CURRENT, (bucket.id, key)).fetchone()
    if row is None:
        return None
    status, size_bytes, etag, created_at_ns, version_id, content_type, described, blob, inline = row
    rest = _decode(described)
    return StoredObject(
        key=key,
        status=Status(status),
        size_bytes=size_bytes,
        etag=etag,
        created_at_ns=created_at_ns,
        version_id=version_id,
        content_type=content_type,
        headers=rest.headers,
        metadata=rest.metadata,
        tags=rest.tags,
        checksums=rest.checksums,
        blob=blob,
        inline=inline,
    )


def _stored(new: NewObject, stamp_ns: int) -> StoredObject:
    return StoredObject(
        key=new.key,
        status=Status.COMMITTED_UNVERSIONED,
        size_bytes=new.size_bytes,
        etag=new.etag,
        created_at_ns=stamp_ns,
        content_type=new.content_type,
        headers=new.headers,
        metadata=new.metadata,
        tags=new.tags,
        checksums=new.checksums,
        inline=new.inline,
        blob=new.blob,
    )


def _insert(transaction: Transaction, bucket: Bucket, stored: StoredObject) -> None:
    described = _Described(stored.headers, stored.metadata, stored.tags, stored.checksums)
    transaction.execute(
        _INSERT,
        (
            bucket.id,
            stored.key,
            stored.created_at_ns,
            stored.status.value,
            stored.size_bytes,
            stored.etag,
            stored.created_at_ns,
            stored.content_type,
            _encode(described).decode(),
            stored.blob,
            stored.inline,
        ),
    )
