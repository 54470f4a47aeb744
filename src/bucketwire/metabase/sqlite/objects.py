"""Objects: the rows that `mutations` works with, and the reads beside them."""

from collections.abc import Sequence

from bucketwire.event.change import ObjectChange, Origin, encode_change
from bucketwire.event.name import Operation
from bucketwire.event.rule import Rule
from bucketwire.metabase import mutations
from bucketwire.metabase.sqlite.buckets import find_bucket
from bucketwire.metabase.sqlite.connection import Execute, Readers, Row
from bucketwire.metabase.sqlite.listing import list_page, list_versions
from bucketwire.metabase.sqlite.rules import SqliteRules
from bucketwire.metabase.sqlite.writer import Transaction, Writer
from bucketwire.metabase.stored import (
    COLUMNS,
    WITHOUT_BYTES,
    encode_described,
    row_from_stored,
    stored_from_row,
)
from bucketwire.metabase.values import (
    ALWAYS,
    Bucket,
    Condition,
    Deleted,
    NewObject,
    Page,
    StoredObject,
)

_OF_KEY = f"SELECT {COLUMNS} FROM objects WHERE bucket_id = ? AND object_key = ?"  # noqa: S608 - constants
_LATEST = _OF_KEY + " ORDER BY version DESC LIMIT 1"
_NULL_VERSION = _OF_KEY + " AND status IN (3, 6)"
_EXACT = _OF_KEY + " AND version = ? AND status NOT IN (3, 6)"
_KEY_FURTHER_ON = """
SELECT object_key FROM objects WHERE bucket_id = ? AND object_key > ? ORDER BY object_key LIMIT 1 OFFSET ?
"""
_OF_KEYS = f"""
SELECT {WITHOUT_BYTES} FROM objects WHERE bucket_id = ? AND object_key > ? AND object_key <= ?
ORDER BY object_key, version DESC
"""  # noqa: S608 - constants
_BEHIND_ALL_KEYS = b""
"""To SQLite, bytes are greater than any text."""
_INSERT = f"INSERT INTO objects (bucket_id, {COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608
_DELETE = "DELETE FROM objects WHERE bucket_id = ? AND object_key = ? AND version = ?"
_DESCRIBE = """
UPDATE objects SET described = ?, acl = ? WHERE bucket_id = ? AND object_key = ? AND version = ?
"""
_USE_BLOB = "INSERT OR IGNORE INTO used_blobs (name) VALUES (?)"
_DROP_BLOB = "INSERT OR IGNORE INTO dropped_blobs (name) VALUES (?)"
_CHANGE = "INSERT INTO changes (committed_at_ns, change) VALUES (?, ?)"
_IS_USED = (
    "SELECT name FROM used_blobs WHERE name = ?1 UNION ALL SELECT name FROM dropped_blobs WHERE name = ?1"
)


class SqliteRows:
    """Implements `mutations.Rows`. There is one writer, so nothing else is under way: `lock` has no work."""

    def __init__(self, transaction: Transaction, rules: SqliteRules) -> None:
        self._transaction = transaction
        self._execute: Execute = transaction.execute
        self._rules = rules
        self.stamp_ns = transaction.stamp_ns

    def bucket(self, name: str) -> tuple[Bucket, int]:
        """The bucket and the revision of its rules."""
        return find_bucket(self._execute, name)

    def rules(self, bucket_id: str, revision: int) -> Sequence[Rule]:
        """The rules of that revision."""
        return self._rules.seen_by(self._execute, bucket_id, revision)

    def lock(self, bucket_id: str, *keys: str) -> None:
        """The transaction holds the whole file already."""

    def latest(self, bucket_id: str, key: str) -> StoredObject | None:
        """The row with the greatest version."""
        return _first(self._execute(_LATEST, (bucket_id, key)).fetchone())

    def null_version(self, bucket_id: str, key: str) -> StoredObject | None:
        """The null version."""
        return _first(self._execute(_NULL_VERSION, (bucket_id, key)).fetchone())

    def exact(self, bucket_id: str, key: str, version: int) -> StoredObject | None:
        """The row of that version."""
        return _first(self._execute(_EXACT, (bucket_id, key, version)).fetchone())

    def insert(self, bucket_id: str, stored: StoredObject) -> None:
        """Add a row, and note which blobs it uses."""
        self._execute(_INSERT, (bucket_id, *row_from_stored(stored, stored.key)))
        if stored.segments:
            self._transaction.executemany(_USE_BLOB, [(segment.blob,) for segment in stored.segments])

    def remove(self, bucket_id: str, key: str, version: int) -> None:
        """Take a row away."""
        self._execute(_DELETE, (bucket_id, key, version))

    def describe(self, bucket_id: str, stored: StoredObject) -> None:
        """Write tags and ACL anew."""
        self._execute(
            _DESCRIBE, (encode_described(stored), stored.acl, bucket_id, stored.key, stored.version)
        )

    def drop_blobs(self, names: Sequence[str]) -> None:
        """Nothing uses these blobs any more."""
        rows = [(name,) for name in names]
        self._transaction.executemany(_DROP_BLOB, rows)
        self._transaction.executemany("DELETE FROM used_blobs WHERE name = ?", rows)

    def append(self, change: ObjectChange) -> None:
        """Add the change to the stream."""
        self._execute(_CHANGE, (change.committed_at_ns, encode_change(change)))


class SqliteObjects:
    """Implements `Objects`."""

    def __init__(self, readers: Readers, writer: Writer, rules: SqliteRules) -> None:
        self._readers = readers
        self._writer = writer
        self._rules = rules

    def put(
        self,
        bucket: str,
        new: NewObject,
        operation: Operation,
        origin: Origin,
        condition: Condition = ALWAYS,
    ) -> StoredObject:
        """Commit the object."""
        return self._writer.run(
            lambda work: mutations.put(self._rows(work), bucket, new, operation, origin, condition)
        )

    def get(self, bucket: str, key: str, version: str | None = None) -> StoredObject:
        """The current object, or a version of it."""
        reading = _Reading(self._readers)
        found, _ = find_bucket(self._readers.execute, bucket)
        return mutations.found_version(reading, found, key, version)

    def delete(
        self,
        bucket: str,
        key: str,
        origin: Origin,
        *,
        version: str | None = None,
        missing_transmits: bool,
        expired: bool = False,
        condition: Condition = ALWAYS,
    ) -> Deleted:
        """Delete the current object, or a version of it."""
        return self._writer.run(
            lambda work: mutations.delete(
                self._rows(work),
                bucket,
                key,
                origin,
                version=version,
                missing_transmits=missing_transmits,
                expired=expired,
                condition=condition,
            )
        )

    def move(
        self,
        bucket: str,
        key: str,
        to_bucket: str,
        to_key: str,
        origin: Origin,
        condition: Condition = ALWAYS,
    ) -> StoredObject:
        """Move the current object."""
        return self._writer.run(
            lambda work: mutations.move(self._rows(work), bucket, key, to_bucket, to_key, origin, condition)
        )

    def set_tags(
        self,
        bucket: str,
        key: str,
        version: str | None,
        tags: dict[str, str],
        origin: Origin,
        condition: Condition = ALWAYS,
    ) -> StoredObject:
        """Set the tags of the object."""
        return self._writer.run(
            lambda work: mutations.set_tags(self._rows(work), bucket, key, version, tags, origin, condition)
        )

    def set_acl(
        self,
        bucket: str,
        key: str,
        version: str | None,
        acl: str,
        origin: Origin,
        condition: Condition = ALWAYS,
    ) -> StoredObject:
        """Set the canned ACL of the object."""
        return self._writer.run(
            lambda work: mutations.set_acl(self._rows(work), bucket, key, version, acl, origin, condition)
        )

    def page(self, bucket: str, *, prefix: str, delimiter: str, after: str, limit: int) -> Page:
        """A page of the current objects."""
        found, _ = find_bucket(self._readers.execute, bucket)
        return list_page(self._readers, found, prefix=prefix, delimiter=delimiter, after=after, limit=limit)

    def versions_page(
        self, bucket: str, *, prefix: str, delimiter: str, after: str, after_version: int | None, limit: int
    ) -> Page:
        """A page of all versions."""
        found, _ = find_bucket(self._readers.execute, bucket)
        return list_versions(
            self._readers,
            found.id,
            prefix=prefix,
            delimiter=delimiter,
            after=after,
            after_version=after_version,
            limit=limit,
        )

    def versions_of_keys(self, bucket: str, *, after: str, limit: int) -> list[StoredObject]:
        """All versions of the next keys."""
        found, _ = find_bucket(self._readers.execute, bucket)
        last = self._readers.row(_KEY_FURTHER_ON, (found.id, after, limit - 1))
        rows = self._readers.rows(_OF_KEYS, (found.id, after, last[0] if last else _BEHIND_ALL_KEYS))
        return [stored_from_row(row) for row in rows]

    def dropped_blobs(self, limit: int) -> list[str]:
        """Blobs that may be removed."""
        return [row[0] for row in self._readers.rows("SELECT name FROM dropped_blobs LIMIT ?", (limit,))]

    def forget_blobs(self, names: Sequence[str]) -> None:
        """The bytes are gone."""

        def job(transaction: Transaction) -> None:
            transaction.executemany("DELETE FROM dropped_blobs WHERE name = ?", [(name,) for name in names])

        self._writer.run(job)

    def unknown_blobs(self, names: Sequence[str]) -> list[str]:
        """Those that nothing uses and nothing dropped."""
        return [name for name in names if self._readers.row(_IS_USED, (name,)) is None]

    def _rows(self, transaction: Transaction) -> SqliteRows:
        return SqliteRows(transaction, self._rules)


class _Reading:
    """The part of `mutations.Rows` that finds a version, outside of a transaction."""

    def __init__(self, readers: Readers) -> None:
        self._execute = readers.execute

    latest = SqliteRows.latest
    null_version = SqliteRows.null_version
    exact = SqliteRows.exact


def _first(row: Row | None) -> StoredObject | None:
    return stored_from_row(row) if row else None
