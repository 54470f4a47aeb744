"""Buckets by name. Who writes into one holds its lock shared; who changes the bucket itself, alone."""

import uuid
from collections.abc import Collection

from bucketwire.event.change import Versioning
from bucketwire.metabase.postgres.connection import Database, Transaction, lock_number
from bucketwire.metabase.stored import (
    BUCKET_COLUMNS,
    bucket_from_row,
    bucket_not_empty,
    bucket_taken,
    found_bucket,
)
from bucketwire.metabase.values import Bucket

_INSERT = f"INSERT INTO buckets ({BUCKET_COLUMNS}) VALUES (%s, %s, %s, %s, %s, %s, 0)"  # noqa: S608 - constants only
_BY_NAME = f"SELECT {BUCKET_COLUMNS} FROM buckets WHERE name = %s"  # noqa: S608 - likewise
_ENTER = f"SELECT {BUCKET_COLUMNS} FROM enter_bucket(%s, %s)"  # noqa: S608 - likewise
_BY_OWNER = f"SELECT {BUCKET_COLUMNS} FROM buckets WHERE owner_id = %s ORDER BY name"  # noqa: S608 - likewise
_WITH_DOCUMENT = f"""
SELECT {BUCKET_COLUMNS}, document FROM bucket_documents JOIN buckets ON buckets.id = bucket_id
WHERE kind = %s ORDER BY name
"""  # noqa: S608 - likewise
_DOCUMENT = "SELECT document FROM bucket_documents WHERE bucket_id = %s AND kind = %s"
_SET_DOCUMENT = """
INSERT INTO bucket_documents (bucket_id, kind, document) VALUES (%s, %s, %s)
ON CONFLICT (bucket_id, kind) DO UPDATE SET document = excluded.document
"""
_REMOVE_DOCUMENT = "DELETE FROM bucket_documents WHERE bucket_id = %s AND kind = %s"
RETIRE_RULES = "UPDATE rules SET retired_at_ns = %s WHERE bucket_id = %s AND added_at_ns = %s"
_DELETE_CONTENT = (
    """
    WITH gone AS (
        DELETE FROM parts USING uploads
        WHERE uploads.id = parts.upload_id AND uploads.bucket_id = %s RETURNING blob
    ), unused AS (DELETE FROM used_blobs WHERE name IN (SELECT blob FROM gone))
    INSERT INTO dropped_blobs (name) SELECT blob FROM gone ON CONFLICT DO NOTHING
    """,
    "DELETE FROM uploads WHERE bucket_id = %s",
    "DELETE FROM bucket_documents WHERE bucket_id = %s",
    "DELETE FROM buckets WHERE id = %s",
)
"""What goes with a bucket: its uploads, whose bytes are dropped, and its documents."""


class PostgresBuckets:
    """Implements `Buckets`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(
        self, name: str, owner_id: str, region: str, documents: Collection[tuple[str, str]] = ()
    ) -> Bucket:
        """Make a bucket with an id of its own, and its documents."""

        def job(work: Transaction) -> Bucket:
            work.lock(name)
            row = work.row(_BY_NAME, (name,))
            if row is not None:
                raise bucket_taken(name, owned=bucket_from_row(row).owner_id == owner_id)
            made = Bucket(uuid.uuid4().hex, name, owner_id, region, work.stamp_ns())
            work.write(_INSERT, (made.id, name, owner_id, region, made.created_at_ns, made.versioning.value))
            for kind, document in documents:
                work.write(_SET_DOCUMENT, (made.id, kind, document))
            return made

        return self._database.run(job)

    def get(self, name: str) -> Bucket:
        """The bucket of that name."""
        return read_bucket(self._database, name)[0]

    def owned_by(self, owner_id: str) -> list[Bucket]:
        """The owner's buckets."""
        return [bucket_from_row(row) for row in self._database.rows(_BY_OWNER, (owner_id,))]

    def set_versioning(self, name: str, versioning: Versioning) -> None:
        """Set the versioning state."""

        def job(work: Transaction) -> None:
            found, _ = lock_bucket(work, name)
            work.write("UPDATE buckets SET versioning = %s WHERE id = %s", (versioning.value, found.id))

        self._database.run(job)

    def set_document(self, name: str, kind: str, document: str | None) -> None:
        """Keep or remove a document."""

        def job(work: Transaction) -> None:
            found, _ = lock_bucket(work, name)
            if document is None:
                work.write(_REMOVE_DOCUMENT, (found.id, kind))
            else:
                work.write(_SET_DOCUMENT, (found.id, kind, document))

        self._database.run(job)

    def document(self, name: str, kind: str) -> str | None:
        """The document, if there is one."""
        found, _ = read_bucket(self._database, name)
        row = self._database.row(_DOCUMENT, (found.id, kind))
        return row[0] if row else None

    def with_document(self, kind: str) -> list[tuple[Bucket, str]]:
        """All buckets that have such a document."""
        return [(bucket_from_row(row[:-1]), row[-1]) for row in self._database.rows(_WITH_DOCUMENT, (kind,))]

    def delete(self, name: str) -> None:
        """Remove an empty bucket; its rules stay as history."""

        def job(work: Transaction) -> None:
            found, revision = lock_bucket(work, name)
            if work.row("SELECT 1 FROM objects WHERE bucket_id = %s LIMIT 1", (found.id,)):
                raise bucket_not_empty(name)
            work.write(RETIRE_RULES, (work.stamp_ns(), found.id, revision))
            for statement in _DELETE_CONTENT:
                work.write(statement, (found.id,))

        self._database.run(job)


def lock_bucket(work: Transaction, name: str) -> tuple[Bucket, int]:
    """The bucket and the revision of its rules, for one who changes them: no other transaction is in it."""
    work.lock(name)
    return found_bucket(work.row(_BY_NAME, (name,)), name)


def enter_bucket(work: Transaction, name: str) -> tuple[Bucket, int]:
    """Likewise, for one who writes into it: neither changes until the transaction ends."""
    return found_bucket(work.row(_ENTER, (lock_number(name), name)), name)


def read_bucket(database: Database, name: str) -> tuple[Bucket, int]:
    """The bucket and the revision of its rules, as they are now."""
    return found_bucket(database.row(_BY_NAME, (name,)), name)
