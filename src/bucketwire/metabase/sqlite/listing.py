"""The queries behind the pages of objects, of versions and of uploads."""

import msgspec

from bucketwire.event.change import Versioning
from bucketwire.metabase.listing import fold
from bucketwire.metabase.sqlite.connection import Readers, Row
from bucketwire.metabase.values import MARKERS, NULL_VERSIONS, Bucket, ListedObject, Page, version_id

_COLUMNS = "object_key, version, status, size_bytes, etag, created_at_ns, owner_id, described -> 'checksums'"
_CURRENT = f"""
SELECT {_COLUMNS}, 1 FROM objects AS this
WHERE bucket_id = ? AND object_key > ? AND object_key >= ? AND status IN (3, 4)
  AND NOT EXISTS (SELECT 1 FROM objects AS newer WHERE newer.bucket_id = this.bucket_id
                  AND newer.object_key = this.object_key AND newer.version > this.version)
ORDER BY object_key LIMIT ?
"""  # noqa: S608 - constants
# Hops from key to key on the index: the cost grows with the keys, not with their versions.
_CURRENT_OF_MANY = f"""
WITH RECURSIVE keys (name) AS (
    SELECT min(object_key) FROM objects WHERE bucket_id = ?1 AND object_key > ?2 AND object_key >= ?3
    UNION ALL
    SELECT (SELECT min(object_key) FROM objects WHERE bucket_id = ?1 AND object_key > name)
    FROM keys WHERE name IS NOT NULL
)
SELECT {_COLUMNS}, 1 FROM keys CROSS JOIN objects ON objects.rowid = (
    SELECT rowid FROM objects WHERE bucket_id = ?1 AND object_key = name ORDER BY version DESC LIMIT 1
) WHERE status IN (3, 4) LIMIT ?4
"""  # noqa: S608 - constants
_VERSIONS = f"""
SELECT {_COLUMNS}, NOT EXISTS (SELECT 1 FROM objects AS newer WHERE newer.bucket_id = this.bucket_id
                  AND newer.object_key = this.object_key AND newer.version > this.version)
FROM objects AS this
WHERE bucket_id = ?1 AND object_key >= ?2 AND (object_key > ?2 OR version < ?3) AND object_key >= ?4
ORDER BY object_key, version DESC LIMIT ?5
"""  # noqa: S608 - constants
_NO_VERSION = -1
"""Behind every version of a key, since versions go from the greatest to the smallest."""


def list_page(
    readers: Readers, bucket: Bucket, *, prefix: str, delimiter: str, after: str, limit: int
) -> Page:
    """Current objects. Where each key has one version, a scan is faster than hops."""
    sql = _CURRENT if bucket.versioning is Versioning.UNVERSIONED else _CURRENT_OF_MANY

    def fetch(key: str, _: int, count: int) -> list[tuple[str, int, ListedObject]]:
        return [_listed(row) for row in readers.rows(sql, (bucket.id, key, prefix, count))]

    found = fold(fetch, prefix=prefix, delimiter=delimiter, after=(after, 0), beyond=_NO_VERSION, limit=limit)
    return Page(found.items, found.common_prefixes, found.end[0] if found.end else None)


def list_versions(
    readers: Readers,
    bucket_id: str,
    *,
    prefix: str,
    delimiter: str,
    after: str,
    after_version: int | None,
    limit: int,
) -> Page:
    """All versions and delete markers."""

    def fetch(key: str, version: int, count: int) -> list[tuple[str, int, ListedObject]]:
        return [_listed(row) for row in readers.rows(_VERSIONS, (bucket_id, key, version, prefix, count))]

    start = (after, _NO_VERSION if after_version is None else after_version)
    found = fold(fetch, prefix=prefix, delimiter=delimiter, after=start, beyond=_NO_VERSION, limit=limit)
    key, version = found.end or (None, None)
    return Page(found.items, found.common_prefixes, key, version)


def _listed(row: Row) -> tuple[str, int, ListedObject]:
    key, version, status, size_bytes, etag, created_at_ns, owner_id, checksums, is_latest = row
    listed = ListedObject(
        key=key,
        size_bytes=size_bytes,
        etag=etag,
        created_at_ns=created_at_ns,
        owner_id=owner_id,
        version_id=None if status in NULL_VERSIONS else version_id(version),
        is_latest=bool(is_latest),
        is_marker=status in MARKERS,
        checksum_algorithms=tuple(_names(checksums)) if checksums else (),
    )
    return key, version, listed


_names = msgspec.json.Decoder(dict[str, str]).decode
