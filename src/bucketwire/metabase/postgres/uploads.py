"""Multipart uploads and their parts. Whoever changes an upload holds its lock, behind that of the bucket."""

from collections.abc import Sequence

import msgspec

from bucketwire.event.change import Origin
from bucketwire.event.name import Operation
from bucketwire.metabase import mutations
from bucketwire.metabase.listing import LAST, fold
from bucketwire.metabase.postgres.buckets import enter_bucket, read_bucket
from bucketwire.metabase.postgres.connection import Database, Transaction
from bucketwire.metabase.postgres.rows import USE_BLOBS, Partitions, PostgresRows
from bucketwire.metabase.postgres.rules import PostgresRules
from bucketwire.metabase.stored import decode_part, decode_upload, encode_text, found_upload, left_over
from bucketwire.metabase.values import ALWAYS, Condition, NewObject, Part, StoredObject, Upload, UploadPage

_INSERT = "INSERT INTO uploads (id, bucket_id, object_key, upload) VALUES (%s, %s, %s, %s)"
_FIND = "SELECT upload FROM uploads WHERE id = %s AND object_key = %s AND bucket_id = %s"
_PAGE = """
SELECT object_key, id, upload FROM uploads
WHERE bucket_id = %s AND (object_key, id) > (%s, %s) AND object_key >= %s
ORDER BY object_key, id LIMIT %s
"""
_PUT_PART = """
INSERT INTO parts (upload_id, number, blob, part) VALUES (%s, %s, %s, %s)
ON CONFLICT (upload_id, number) DO UPDATE SET blob = excluded.blob, part = excluded.part
"""
_PARTS = "SELECT part FROM parts WHERE upload_id = %s AND number > %s ORDER BY number LIMIT %s"
_BLOBS = "SELECT blob FROM parts WHERE upload_id = %s"
_BLOB = "SELECT blob FROM parts WHERE upload_id = %s AND number = %s"


class PostgresUploads:
    """Implements `Uploads`."""

    def __init__(self, database: Database, rules: PostgresRules, partitions: Partitions) -> None:
        self._database = database
        self._rules = rules
        self._partitions = partitions

    def create(self, bucket: str, upload: Upload) -> Upload:
        """Start an upload."""

        def job(work: Transaction) -> Upload:
            found, _ = enter_bucket(work, bucket)
            stamp_ns = work.stamp_ns()
            made = msgspec.structs.replace(upload, id=f"{stamp_ns:016x}{upload.id}", created_at_ns=stamp_ns)
            work.write(_INSERT, (made.id, found.id, made.key.encode(), encode_text(made)))
            return made

        return self._database.run(job)

    def get(self, bucket: str, key: str, upload_id: str) -> Upload:
        """The upload."""
        found, _ = read_bucket(self._database, bucket)
        return found_upload(self._database.row(_FIND, (upload_id, key.encode(), found.id)), upload_id)

    def put_part(self, bucket: str, key: str, upload_id: str, part: Part) -> Part:
        """Add the part, in place of one of its number."""

        def job(work: Transaction) -> Part:
            _lock(work, bucket, key, upload_id)
            replaced = work.row(_BLOB, (upload_id, part.number))
            made = msgspec.structs.replace(part, created_at_ns=work.stamp_ns())
            if replaced is not None:
                self._rows(work).drop_blobs([replaced[0]])
            work.write(_PUT_PART, (upload_id, part.number, part.blob, encode_text(made)))
            work.write(USE_BLOBS, ([part.blob],))
            return made

        return self._database.run(job)

    def parts(self, bucket: str, key: str, upload_id: str, *, after: int, limit: int) -> list[Part]:
        """The parts, by number."""
        self.get(bucket, key, upload_id)
        return [decode_part(row[0]) for row in self._database.rows(_PARTS, (upload_id, after, limit))]

    def page(
        self, bucket: str, *, prefix: str, delimiter: str, after_key: str, after_upload_id: str, limit: int
    ) -> UploadPage:
        """A page of the uploads under way."""
        found, _ = read_bucket(self._database, bucket)

        def fetch(key: str, upload_id: str, count: int) -> list[tuple[str, str, Upload]]:
            values = (found.id, key.encode(), upload_id, prefix.encode(), count)
            return [
                (row[0].decode(), row[1], decode_upload(row[2])) for row in self._database.rows(_PAGE, values)
            ]

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

        def job(work: Transaction) -> StoredObject:
            _lock(work, bucket, new.key, upload_id)
            unused = left_over({row[0] for row in work.rows(_BLOBS, (upload_id,))}, parts)
            rows = self._rows(work)
            stored = mutations.put(rows, bucket, new, operation, origin, condition)
            rows.drop_blobs(unused)
            _forget(work, upload_id)
            return stored

        return self._database.run(job)

    def abort(self, bucket: str, key: str, upload_id: str) -> None:
        """End the upload and drop its parts."""

        def job(work: Transaction) -> None:
            _lock(work, bucket, key, upload_id)
            self._rows(work).drop_blobs([row[0] for row in work.rows(_BLOBS, (upload_id,))])
            _forget(work, upload_id)

        self._database.run(job)

    def _rows(self, work: Transaction) -> PostgresRows:
        return PostgresRows(work, self._rules, self._partitions)


def _lock(work: Transaction, bucket: str, key: str, upload_id: str) -> Upload:
    found, _ = enter_bucket(work, bucket)
    work.lock(upload_id)
    return found_upload(work.row(_FIND, (upload_id, key.encode(), found.id)), upload_id)


def _forget(work: Transaction, upload_id: str) -> None:
    work.write("DELETE FROM parts WHERE upload_id = %s", (upload_id,))
    work.write("DELETE FROM uploads WHERE id = %s", (upload_id,))
