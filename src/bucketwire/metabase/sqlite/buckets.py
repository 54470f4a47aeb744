"""Buckets by name."""

import uuid

from bucketwire.errors import Conflict, NotFound
from bucketwire.event.change import Versioning
from bucketwire.metabase.base import Bucket
from bucketwire.metabase.sqlite.connection import Execute, Readers, Row
from bucketwire.metabase.sqlite.writer import Transaction, Writer

_COLUMNS = "id, name, owner_id, region, created_at_ns, versioning, revision"
_INSERT = f"INSERT INTO buckets ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, 0)"  # noqa: S608 - constants only
_BY_NAME = f"SELECT {_COLUMNS} FROM buckets WHERE name = ?"  # noqa: S608 - likewise
_BY_OWNER = f"SELECT {_COLUMNS} FROM buckets WHERE owner_id = ? ORDER BY name"  # noqa: S608 - likewise


class SqliteBuckets:
    """Implements `Buckets`."""

    def __init__(self, readers: Readers, writer: Writer) -> None:
        self._readers = readers
        self._writer = writer

    def create(self, name: str, owner_id: str, region: str) -> Bucket:
        """Make a bucket with an id of its own."""

        def job(transaction: Transaction) -> Bucket:
            row = transaction.execute(_BY_NAME, (name,)).fetchone()
            if row is not None:
                raise _taken(name, owned=_bucket_from_row(row).owner_id == owner_id)
            made = Bucket(uuid.uuid4().hex, name, owner_id, region, transaction.stamp_ns())
            transaction.execute(
                _INSERT, (made.id, name, owner_id, region, made.created_at_ns, made.versioning.value)
            )
            return made

        return self._writer.run(job)

    def get(self, name: str) -> Bucket:
        """The bucket of that name."""
        return find_bucket(self._readers.execute, name)[0]

    def owned_by(self, owner_id: str) -> list[Bucket]:
        """The owner's buckets."""
        return [_bucket_from_row(row) for row in self._readers.rows(_BY_OWNER, (owner_id,))]

    def delete(self, name: str) -> None:
        """Remove an empty bucket; its rules stay as history."""

        def job(transaction: Transaction) -> None:
            found, _ = find_bucket(transaction.execute, name)
            if transaction.execute(
                "SELECT 1 FROM objects WHERE bucket_id = ? LIMIT 1", (found.id,)
            ).fetchone():
                raise Conflict(
                    "The bucket you tried to delete is not empty",
                    code="BucketNotEmpty",
                    fields={"BucketName": name},
                )
            transaction.execute(
                "UPDATE rules SET retired_at_ns = ? WHERE bucket_id = ? AND retired_at_ns IS NULL",
                (transaction.stamp_ns(), found.id),
            )
            transaction.execute("DELETE FROM buckets WHERE id = ?", (found.id,))

        self._writer.run(job)


def find_bucket(execute: Execute, name: str) -> tuple[Bucket, int]:
    """The bucket and the revision of its rules."""
    row = execute(_BY_NAME, (name,)).fetchone()
    if row is None:
        raise NotFound(
            "The specified bucket does not exist", code="NoSuchBucket", fields={"BucketName": name}
        )
    return _bucket_from_row(row), row[-1]


def _bucket_from_row(row: Row) -> Bucket:
    identity, name, owner_id, region, created_at_ns, versioning, _ = row
    return Bucket(
        identity,
        name,
        owner_id,
        region,
        created_at_ns,
        Versioning(versioning),
    )


def _taken(name: str, *, owned: bool) -> Conflict:
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
