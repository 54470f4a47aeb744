"""Pages of a listing, with common prefixes folded by jumping over them on the index."""

from bucketwire.metabase.base import ListedObject, Page
from bucketwire.metabase.sqlite.connection import Readers

_LAST = chr(0x10FFFF)
_READ_ROWS = 1_000
_ROWS = """
SELECT object_key, size_bytes, etag, created_at_ns FROM objects
WHERE bucket_id = ? AND object_key > ? AND object_key >= ? ORDER BY object_key LIMIT ?
"""


def list_page(
    readers: Readers, bucket_id: str, *, prefix: str, delimiter: str, after: str, limit: int
) -> Page:
    """Up to `limit` keys and common prefixes behind `after`."""
    objects: list[ListedObject] = []
    folded: list[str] = []
    ended = _folded_by(after)
    while len(objects) + len(folded) <= limit:
        rows = readers.rows(_ROWS, (bucket_id, after, prefix, min(_READ_ROWS, limit + 1)))
        for row in rows:
            listed = ListedObject(row[0], row[1], row[2], row[3])
            if not listed.key.startswith(prefix):
                return Page(objects, folded, None)
            common = _common_prefix(listed.key, prefix, delimiter)
            if common is not None and common == ended:
                after = listed.key
                continue
            if len(objects) + len(folded) == limit:
                return Page(objects, folded, after)
            if common is None:
                objects.append(listed)
                after = listed.key
            else:
                folded.append(common)
                ended, after = common, common + _LAST
                break  # jump behind the prefix
        else:
            if len(rows) < min(_READ_ROWS, limit + 1):
                return Page(objects, folded, None)
    return Page(objects, folded, after)


def _common_prefix(key: str, prefix: str, delimiter: str) -> str | None:
    if not delimiter:
        return None
    at = key.find(delimiter, len(prefix))
    return key[: at + len(delimiter)] if at >= 0 else None


def _folded_by(after: str) -> str | None:
    """The common prefix that the page before ended with, if it did."""
    return after[: -len(_LAST)] if after.endswith(_LAST) else None
