"""The queries behind the pages of objects and of versions."""

from bucketwire.event.change import Versioning
from bucketwire.metabase.listing import fold
from bucketwire.metabase.postgres.connection import Database, Row
from bucketwire.metabase.stored import decode_described
from bucketwire.metabase.values import MARKERS, NULL_VERSIONS, Bucket, ListedObject, Page, version_id

_COLUMNS = "object_key, version, status, size_bytes, etag, created_at_ns, owner_id, described"
# The sub-select keeps the planner on the index, key by key: pages are small and buckets are large.
_CURRENT = f"""
SELECT {_COLUMNS}, true FROM objects AS this
WHERE bucket_id = %(bucket)s AND object_key > %(after)s AND object_key >= %(prefix)s AND status IN (3, 4)
  AND version = (SELECT newest.version FROM objects AS newest WHERE newest.bucket_id = this.bucket_id
                 AND newest.object_key = this.object_key ORDER BY newest.version DESC LIMIT 1)
ORDER BY object_key LIMIT %(limit)s
"""  # noqa: S608 - constants
# Hops from key to key on the index: the cost grows with the keys, not with their versions.
_CURRENT_OF_MANY = f"""
WITH RECURSIVE keys (name) AS (
    (SELECT object_key FROM objects WHERE bucket_id = %(bucket)s AND object_key > %(after)s
        AND object_key >= %(prefix)s ORDER BY object_key LIMIT 1)
    UNION ALL
    SELECT (SELECT object_key FROM objects WHERE bucket_id = %(bucket)s AND object_key > name
        ORDER BY object_key LIMIT 1)
    FROM keys WHERE name IS NOT NULL
)
SELECT {_COLUMNS}, true FROM keys CROSS JOIN LATERAL (
    SELECT {_COLUMNS} FROM objects
    WHERE bucket_id = %(bucket)s AND object_key = name ORDER BY version DESC LIMIT 1
) AS newest WHERE status IN (3, 4) LIMIT %(limit)s
"""  # noqa: S608 - constants
_VERSIONS = f"""
SELECT {_COLUMNS}, version = (
    SELECT newest.version FROM objects AS newest WHERE newest.bucket_id = this.bucket_id
    AND newest.object_key = this.object_key ORDER BY newest.version DESC LIMIT 1)
FROM objects AS this
WHERE bucket_id = %s AND object_key >= %s AND (object_key > %s OR version < %s) AND object_key >= %s
ORDER BY object_key, version DESC LIMIT %s
"""  # noqa: S608 - constants
_NO_VERSION = -1
"""Behind every version of a key, since versions go from the greatest to the smallest."""


def list_page(
    database: Database, bucket: Bucket, *, prefix: str, delimiter: str, after: str, limit: int
) -> Page:
    """Current objects. Where each key has one version, a scan is faster than hops."""
    sql = _CURRENT if bucket.versioning is Versioning.UNVERSIONED else _CURRENT_OF_MANY

    def fetch(key: str, _: int, count: int) -> list[tuple[str, int, ListedObject]]:
        values = {"bucket": bucket.id, "after": key.encode(), "prefix": prefix.encode(), "limit": count}
        return [_listed(row) for row in database.rows(sql, values)]

    found = fold(fetch, prefix=prefix, delimiter=delimiter, after=(after, 0), beyond=_NO_VERSION, limit=limit)
    return Page(found.items, found.common_prefixes, found.end[0] if found.end else None)


def list_versions(
    database: Database,
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
        place = key.encode()
        values = (bucket_id, place, place, version, prefix.encode(), count)
        return [_listed(row) for row in database.rows(_VERSIONS, values)]

    start = (after, _NO_VERSION if after_version is None else after_version)
    found = fold(fetch, prefix=prefix, delimiter=delimiter, after=start, beyond=_NO_VERSION, limit=limit)
    key, version = found.end or (None, None)
    return Page(found.items, found.common_prefixes, key, version)


def _listed(row: Row) -> tuple[str, int, ListedObject]:
    key, version, status, size_bytes, etag, created_at_ns, owner_id, described, is_latest = row
    listed = ListedObject(
        key=key.decode(),
        size_bytes=size_bytes,
        etag=etag,
        created_at_ns=created_at_ns,
        owner_id=owner_id,
        version_id=None if status in NULL_VERSIONS else version_id(version),
        is_latest=is_latest,
        is_marker=status in MARKERS,
        checksum_algorithms=tuple(decode_described(described).checksums),
    )
    return listed.key, version, listed
