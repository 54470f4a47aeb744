"""Multipart uploads and their parts."""

from collections.abc import Sequence

import msgspec

from bucketwire.event.change import Origin
from bucketwire.event.name import Operation
from bucketwire.metabase import mutations
from bucketwire.metabase.listing import LAST, fold
from bucketwire.metabase.sqlite.buckets import find_bucket
from bucketwire.metabase.sqlite.connection import Execute, Readers
from bucketwire.metabase.sqlite.objects import SqliteRows
from bucketwire.metabase.sqlite.rules import SqliteRules
from bucketwire.metabase.sqlite.writer import Transaction, Writer
from bucketwire.metabase.stored import decode_part, decode_upload, encode_text, found_upload, left_over
from bucketwire.metabase.values import ALWAYS, Condition, NewObject, Part, StoredObject, Upload, UploadPage

_INSERT = "INSERT INTO uploads (id, bucket_id, object_key, created_at_ns, upload) VALUES (?, ?, ?, ?, ?)"
_FIND = """
SELECT upload FROM uploads
WHERE id = ? AND object_key = ? AND bucket_id = (SELECT id FROM buckets WHERE name = ?)
"""
_PAGE = """
SELECT object_key, id, upload FROM uploads
WHERE bucket_id = ?1 AND object_key >= ?2 AND (object_key > ?2 OR id > ?3) AND object_key >= ?4
ORDER BY object_key, id LIMIT ?5
"""
_PUT_PART = """
INSERT INTO parts (upload_id, number, blob, part) VALUES (?, ?, ?, ?)
ON CONFLICT (upload_id, number) DO UPDATE SET blob = excluded.blob, part = excluded.part
"""
_USE_BLOB = "INSERT OR IGNORE INTO used_blobs (name) VALUES (?)"


class SqliteUploads:
    """Implements `Uploads`."""

    def __init__(self, readers: Readers, writer: Writer, rules: SqliteRules) -> None:
        self._readers = readers
        self._writer = writer
        self._rules = rules

    def create(self, bucket: str, upload: Upload) -> Upload:
        """Start an upload."""

        def job(transaction: Transaction) -> Upload:
            found, _ = find_bucket(transaction.execute, bucket)
            stamp_ns = transaction.stamp_ns()
            made = msgspec.structs.replace(upload, id=f"{stamp_ns:016x}{upload.id}", created_at_ns=stamp_ns)
            transaction.execute(_INSERT, (made.id, found.id, made.key, stamp_ns, encode_text(made)))
            return made

        return self._writer.run(job)

    def get(self, bucket: str, key: str, upload_id: str) -> Upload:
        """The upload."""
        return _find(self._readers.execute, bucket, key, upload_id)

    def put_part(self, bucket: str, key: str, upload_id: str, part: Part) -> Part:
        """Add the part, in place of one of its number."""

        def job(transaction: Transaction) -> Part:
            _find(transaction.execute, bucket, key, upload_id)
            made = msgspec.structs.replace(part, created_at_ns=transaction.stamp_ns())
            replaced = transaction.execute(
                "SELECT blob FROM parts WHERE upload_id = ? AND number = ?", (upload_id, part.number)
            ).fetchone()
            if replaced is not None:
                self._rows(transaction).drop_blobs([replaced[0]])
            transaction.execute(_PUT_PART, (upload_id, part.number, part.blob, encode_text(made)))
            transaction.execute(_USE_BLOB, (part.blob,))
            return made

        return self._writer.run(job)

    def parts(self, bucket: str, key: str, upload_id: str, *, after: int, limit: int) -> list[Part]:
        """The parts, by number."""
        _find(self._readers.execute, bucket, key, upload_id)
        rows = self._readers.rows(
            "SELECT part FROM parts WHERE upload_id = ? AND number > ? ORDER BY number LIMIT ?",
            (upload_id, after, limit),
        )
        return [decode_part(row[0]) for row in rows]

    def page(
        self, bucket: str, *, prefix: str, delimiter: str, after_key: str, after_upload_id: str, limit: int
    ) -> UploadPage:
        """A page of the uploads under way."""
        found, _ = find_bucket(self._readers.execute, bucket)

        def fetch(key: str, upload_id: str, count: int) -> list[tuple[str, str, Upload]]:
            rows = self._readers.rows(_PAGE, (found.id, key, upload_id, prefix, count))
            return [(row[0], row[1], decode_upload(row[2])) for row in rows]

        start = (after_key, after_upload_id or (LAST if after_key else ""))
        page = fold(fetch, prefix=prefix, delimiter=delimiter, after=start, beyond=LAST, limit=limit)
        key, upload_id = page.end or (None, None)
        return UploadPage(page.items, page.common_prefixes, key, upload_id)

    def complete(
        self,
        bucket: str,
        upload_id: str,
        new: NewObject,
        parts: Sequence[Part],
        operation: Operation,
        origin: Origin,
        condition: Condition = ALWAYS,
    ) -> StoredObject:
        """Commit the object made of these parts."""

        def job(transaction: Transaction) -> StoredObject:
            _find(transaction.execute, bucket, new.key, upload_id)
            rows = self._rows(transaction)
            unused = left_over({row[0] for row in _blobs(transaction, upload_id)}, parts)
            stored = mutations.put(rows, bucket, new, operation, origin, condition)
            rows.drop_blobs(unused)
            _forget(transaction, upload_id)
            return stored

        return self._writer.run(job)

    def abort(self, bucket: str, key: str, upload_id: str) -> None:
        """End the upload and drop its parts."""

        def job(transaction: Transaction) -> None:
            _find(transaction.execute, bucket, key, upload_id)
            self._rows(transaction).drop_blobs([row[0] for row in _blobs(transaction, upload_id)])
            _forget(transaction, upload_id)

        self._writer.run(job)

    def _rows(self, transaction: Transaction) -> SqliteRows:
        return SqliteRows(transaction, self._rules)


def _find(execute: Execute, bucket: str, key: str, upload_id: str) -> Upload:
    find_bucket(execute, bucket)
    return found_upload(execute(_FIND, (upload_id, key, bucket)).fetchone(), upload_id)


def _blobs(transaction: Transaction, upload_id: str) -> list[tuple[str]]:
    return transaction.execute("SELECT blob FROM parts WHERE upload_id = ?", (upload_id,)).fetchall()


def _forget(transaction: Transaction, upload_id: str) -> None:
    transaction.execute("DELETE FROM parts WHERE upload_id = ?", (upload_id,))
    transaction.execute("DELETE FROM uploads WHERE id = ?", (upload_id,))
