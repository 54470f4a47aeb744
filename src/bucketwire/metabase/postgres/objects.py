"""Objects: each mutation in a transaction of its own, and the reads beside them."""

from collections.abc import Sequence

from bucketwire.event.change import Origin
from bucketwire.event.name import Operation
from bucketwire.metabase import mutations
from bucketwire.metabase.postgres.buckets import read_bucket
from bucketwire.metabase.postgres.connection import Database, Transaction
from bucketwire.metabase.postgres.listing import list_page, list_versions
from bucketwire.metabase.postgres.rows import Partitions, PostgresRows, Reading
from bucketwire.metabase.postgres.rules import PostgresRules
from bucketwire.metabase.stored import WITHOUT_BYTES, stored_from_row
from bucketwire.metabase.values import ALWAYS, Condition, Deleted, NewObject, Page, StoredObject

_KEY_FURTHER_ON = """
SELECT object_key FROM objects WHERE bucket_id = %s AND object_key > %s ORDER BY object_key LIMIT 1 OFFSET %s
"""
_OF_KEYS = f"""
SELECT {WITHOUT_BYTES} FROM objects WHERE bucket_id = %s AND object_key > %s AND object_key <= %s
ORDER BY object_key, version DESC
"""  # noqa: S608 - constants
_BEHIND_ALL_KEYS = b"\xff"
"""No key begins with it: keys are UTF-8."""
_UNKNOWN = """
SELECT name FROM unnest(%s::text[]) AS name
WHERE NOT EXISTS (SELECT 1 FROM used_blobs WHERE used_blobs.name = name.name)
  AND NOT EXISTS (SELECT 1 FROM dropped_blobs WHERE dropped_blobs.name = name.name)
"""


class PostgresObjects:
    """Implements `Objects`."""

    def __init__(self, database: Database, rules: PostgresRules, partitions: Partitions) -> None:
        self._database = database
        self._rules = rules
        self._partitions = partitions

    def put(
        self,
        bucket: str,
        new: NewObject,
        operation: Operation,
        origin: Origin,
        condition: Condition = ALWAYS,
    ) -> StoredObject:
        """Commit the object."""
        return self._database.run(
            lambda work: mutations.put(self._rows(work), bucket, new, operation, origin, condition)
        )

    def get(self, bucket: str, key: str, version: str | None = None) -> StoredObject:
        """The current object, or a version of it."""
        found, _ = read_bucket(self._database, bucket)
        return mutations.found_version(Reading(self._database), found, key, version)

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
        return self._database.run(
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
        return self._database.run(
            lambda work: mutations.move(
                self._rows(work, keys=2), bucket, key, to_bucket, to_key, origin, condition
            )
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
        return self._database.run(
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
        return self._database.run(
            lambda work: mutations.set_acl(self._rows(work), bucket, key, version, acl, origin, condition)
        )

    def page(self, bucket: str, *, prefix: str, delimiter: str, after: str, limit: int) -> Page:
        """A page of the current objects."""
        found, _ = read_bucket(self._database, bucket)
        return list_page(self._database, found, prefix=prefix, delimiter=delimiter, after=after, limit=limit)

    def versions_page(
        self, bucket: str, *, prefix: str, delimiter: str, after: str, after_version: int | None, limit: int
    ) -> Page:
        """A page of all versions."""
        found, _ = read_bucket(self._database, bucket)
        return list_versions(
            self._database,
            found.id,
            prefix=prefix,
            delimiter=delimiter,
            after=after,
            after_version=after_version,
            limit=limit,
        )

    def versions_of_keys(self, bucket: str, *, after: str, limit: int) -> list[StoredObject]:
        """All versions of the next keys."""
        found, _ = read_bucket(self._database, bucket)
        last = self._database.rows(_KEY_FURTHER_ON, (found.id, after.encode(), limit - 1))
        bounds = (found.id, after.encode(), last[0][0] if last else _BEHIND_ALL_KEYS)
        return [stored_from_row(row) for row in self._database.rows(_OF_KEYS, bounds)]

    def dropped_blobs(self, limit: int) -> list[str]:
        """Blobs that may be removed."""
        return [row[0] for row in self._database.rows("SELECT name FROM dropped_blobs LIMIT %s", (limit,))]

    def forget_blobs(self, names: Sequence[str]) -> None:
        """The bytes are gone."""
        self._database.run(
            lambda work: work.write("DELETE FROM dropped_blobs WHERE name = ANY(%s::text[])", (list(names),))
        )

    def unknown_blobs(self, names: Sequence[str]) -> list[str]:
        """Those that nothing uses and nothing dropped."""
        return [row[0] for row in self._database.rows(_UNKNOWN, (list(names),))]

    def _rows(self, work: Transaction, *, keys: int = 1) -> PostgresRows:
        return PostgresRows(work, self._rules, self._partitions, keys=keys)
