"""Buckets by name."""

import uuid
from collections.abc import Collection

from bucketwire.event.change import Versioning
from bucketwire.metabase.sqlite.connection import Execute, Readers
from bucketwire.metabase.sqlite.writer import Transaction, Writer
from bucketwire.metabase.stored import (
    BUCKET_COLUMNS,
    bucket_from_row,
    bucket_not_empty,
    bucket_taken,
    found_bucket,
)
from bucketwire.metabase.values import Bucket

_INSERT = f"INSERT INTO buckets ({BUCKET_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, 0)"  # noqa: S608 - constants only
_BY_NAME = f"SELECT {BUCKET_COLUMNS} FROM buckets WHERE name = ?"  # noqa: S608 - likewise
_BY_OWNER = f"SELECT {BUCKET_COLUMNS} FROM buckets WHERE owner_id = ? ORDER BY name"  # noqa: S608 - likewise

_WITH_DOCUMENT = f"""
SELECT {BUCKET_COLUMNS}, document FROM bucket_documents JOIN buckets ON buckets.id = bucket_id
WHERE kind = ? ORDER BY name
"""  # noqa: S608 - likewise
_SET_DOCUMENT = """
INSERT INTO bucket_documents (bucket_id, kind, document) VALUES (?, ?, ?)
ON CONFLICT (bucket_id, kind) DO UPDATE SET document = excluded.document
"""
RETIRE_RULES = "UPDATE rules SET retired_at_ns = ? WHERE bucket_id = ? AND added_at_ns = ?"
_UPLOADS = "(SELECT id FROM uploads WHERE bucket_id = ?)"
_DELETE_CONTENT = (
    f"INSERT OR IGNORE INTO dropped_blobs SELECT blob FROM parts WHERE upload_id IN {_UPLOADS}",  # noqa: S608
    f"DELETE FROM used_blobs WHERE name IN (SELECT blob FROM parts WHERE upload_id IN {_UPLOADS})",  # noqa: S608
    f"DELETE FROM parts WHERE upload_id IN {_UPLOADS}",  # noqa: S608
    "DELETE FROM uploads WHERE bucket_id = ?",
    "DELETE FROM bucket_documents WHERE bucket_id = ?",
)
"""What goes with a bucket: its uploads, whose bytes are dropped, and its documents."""


class SqliteBuckets:
    """Implements `Buckets`."""

    def __init__(self, readers: Readers, writer: Writer) -> None:
        self._readers = readers
        self._writer = writer

    def create(
        self, name: str, owner_id: str, region: str, documents: Collection[tuple[str, str]] = ()
    ) -> Bucket:
        """Make a bucket with an id of its own, and its documents."""

        def job(transaction: Transaction) -> Bucket:
            row = transaction.execute(_BY_NAME, (name,)).fetchone()
            if row is not None:
                raise bucket_taken(name, owned=bucket_from_row(row).owner_id == owner_id)
            made = Bucket(uuid.uuid4().hex, name, owner_id, region, transaction.stamp_ns())
            transaction.execute(
                _INSERT, (made.id, name, owner_id, region, made.created_at_ns, made.versioning.value)
            )
            for kind, document in documents:
                transaction.execute(_SET_DOCUMENT, (made.id, kind, document))
            return made

        return self._writer.run(job)

    def get(self, name: str) -> Bucket:
        """The bucket of that name."""
        return find_bucket(self._readers.execute, name)[0]

    def owned_by(self, owner_id: str) -> list[Bucket]:
        """The owner's buckets."""
        return [bucket_from_row(row) for row in self._readers.rows(_BY_OWNER, (owner_id,))]

    def set_versioning(self, name: str, versioning: Versioning) -> None:
        """Set the versioning state."""

        def job(transaction: Transaction) -> None:
            found, _ = find_bucket(transaction.execute, name)
            transaction.execute(
                "UPDATE buckets SET versioning = ? WHERE id = ?", (versioning.value, found.id)
            )

        self._writer.run(job)

    def set_document(self, name: str, kind: str, document: str | None) -> None:
        """Keep or remove a document."""

        def job(transaction: Transaction) -> None:
            found, _ = find_bucket(transaction.execute, name)
            if document is None:
                transaction.execute(
                    "DELETE FROM bucket_documents WHERE bucket_id = ? AND kind = ?", (found.id, kind)
                )
            else:
                transaction.execute(_SET_DOCUMENT, (found.id, kind, document))

        self._writer.run(job)

    def document(self, name: str, kind: str) -> str | None:
        """The document, if there is one."""
        found, _ = find_bucket(self._readers.execute, name)
        row = self._readers.row(
            "SELECT document FROM bucket_documents WHERE bucket_id = ? AND kind = ?", (found.id, kind)
        )
        return row[0] if row else None

    def with_document(self, kind: str) -> list[tuple[Bucket, str]]:
        """All buckets that have such a document."""
        return [(bucket_from_row(row[:-1]), row[-1]) for row in self._readers.rows(_WITH_DOCUMENT, (kind,))]

    def delete(self, name: str) -> None:
        """Remove an empty bucket; its rules stay as history."""

        def job(transaction: Transaction) -> None:
            found, revision = find_bucket(transaction.execute, name)
            if transaction.execute(
                "SELECT 1 FROM objects WHERE bucket_id = ? LIMIT 1", (found.id,)
            ).fetchone():
                raise bucket_not_empty(name)
            transaction.execute(RETIRE_RULES, (transaction.stamp_ns(), found.id, revision))
            for statement in _DELETE_CONTENT:
                transaction.execute(statement, (found.id,))
            transaction.execute("DELETE FROM buckets WHERE id = ?", (found.id,))

        self._writer.run(job)


def find_bucket(execute: Execute, name: str) -> tuple[Bucket, int]:
    """The bucket and the revision of its rules."""
    return found_bucket(execute(_BY_NAME, (name,)).fetchone(), name)
