"""The rows that `mutations` works with, in one transaction.

    lock the bucket, shared  ->  lock the key  ->  read what is current  ->  stamp  ->  write and commit

The order matters. A stamp is taken when all locks are held, so that the stamps of a key are in commit order;
the transaction's id comes with it, so that the stream, which is read by ids, is in that order too. Nothing
is written before: a write would give the transaction its id too early.
"""

from collections.abc import Sequence

from bucketwire.event.change import ObjectChange, encode_change
from bucketwire.event.rule import Rule
from bucketwire.metabase.postgres.buckets import enter_bucket
from bucketwire.metabase.postgres.connection import STAMPS_RESERVED, Database, Row, Transaction, lock_number
from bucketwire.metabase.postgres.rules import PostgresRules
from bucketwire.metabase.stored import COLUMNS, encode_described, row_from_stored, stored_from_row
from bucketwire.metabase.values import Bucket, StoredObject

_OF_KEY = f"SELECT {COLUMNS} FROM objects WHERE bucket_id = %s AND object_key = %s"  # noqa: S608 - constants
_LATEST = _OF_KEY + " ORDER BY version DESC LIMIT 1"
_LATEST_COLUMNS = ", ".join(f"(latest).{column}" for column in COLUMNS.split(", "))
_ENTER_KEY = f"SELECT stamp, {_LATEST_COLUMNS} FROM enter_key(%s, %s, %s, %s)"  # noqa: S608 - constants
_NULL_VERSION = _OF_KEY + " AND status IN (3, 6)"
_EXACT = _OF_KEY + " AND version = %s AND status NOT IN (3, 6)"
_INSERT = f"""
INSERT INTO objects (bucket_id, {COLUMNS}) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
"""  # noqa: S608 - constants
_DELETE = "DELETE FROM objects WHERE bucket_id = %s AND object_key = %s AND version = %s"
_DESCRIBE = """
UPDATE objects SET described = %s, acl = %s WHERE bucket_id = %s AND object_key = %s AND version = %s
"""
USE_BLOBS = "INSERT INTO used_blobs (name) SELECT unnest(%s::text[]) ON CONFLICT DO NOTHING"
_DROP_BLOBS = "INSERT INTO dropped_blobs (name) SELECT unnest(%s::text[]) ON CONFLICT DO NOTHING"
_DISUSE_BLOBS = "DELETE FROM used_blobs WHERE name = ANY(%s::text[])"
_CHANGE = "INSERT INTO changes (committed_at_ns, change) VALUES (%s, %s)"
_MAKE_PARTITIONS = "SELECT make_changes_partition(%s), make_changes_partition(%s)"

HOUR_NS = 3_600_000_000_000


class Partitions:
    """The hours whose partition of the change stream this process has seen or made."""

    def __init__(self) -> None:
        self._known: set[int] = set()

    def prepare(self, work: Transaction, committed_at_ns: int) -> None:
        """Make the partition for that time and the one behind it, unless they are there."""
        hour = committed_at_ns // HOUR_NS
        if work.attempt or hour not in self._known:
            work.write(_MAKE_PARTITIONS, (hour, hour + 1))
            self._known = {hour}


class PostgresRows:
    """Implements `mutations.Rows`. `keys` says how many the mutation locks before it takes a stamp."""

    def __init__(
        self, work: Transaction, rules: PostgresRules, partitions: Partitions, *, keys: int = 1
    ) -> None:
        self._work = work
        self._rules = rules
        self._partitions = partitions
        self._keys = keys
        self._latest: dict[tuple[str, str], StoredObject | None] = {}
        self.stamp_ns = work.stamp_ns

    def bucket(self, name: str) -> tuple[Bucket, int]:
        """The bucket and the revision of its rules, which now stay as they are."""
        return enter_bucket(self._work, name)

    def rules(self, bucket_id: str, revision: int) -> Sequence[Rule]:
        """The rules of that revision."""
        return self._rules.seen_by(self._work.rows, bucket_id, revision)

    def lock(self, bucket_id: str, *keys: str) -> None:
        """Wait for other mutations of the keys; of one key, `latest` and a stamp come in the same trip."""
        names = [f"{bucket_id}/{key}" for key in keys]
        if self._keys == len(keys) == 1:
            values = (lock_number(names[0]), bucket_id, keys[0].encode(), STAMPS_RESERVED)
            self._latest[bucket_id, keys[0]] = self._enter(values)
        else:
            self._work.lock(*names)

    def latest(self, bucket_id: str, key: str) -> StoredObject | None:
        """The row with the greatest version."""
        if (bucket_id, key) in self._latest:
            return self._latest[bucket_id, key]
        return _first(self._work.row(_LATEST, (bucket_id, key.encode())))

    def null_version(self, bucket_id: str, key: str) -> StoredObject | None:
        """The null version."""
        return _first(self._work.row(_NULL_VERSION, (bucket_id, key.encode())))

    def exact(self, bucket_id: str, key: str, version: int) -> StoredObject | None:
        """The row of that version."""
        return _first(self._work.row(_EXACT, (bucket_id, key.encode(), version)))

    def insert(self, bucket_id: str, stored: StoredObject) -> None:
        """Add a row, and note which blobs it uses."""
        self._work.write(_INSERT, (bucket_id, *row_from_stored(stored, stored.key.encode())))
        if stored.segments:
            self._work.write(USE_BLOBS, ([segment.blob for segment in stored.segments],))

    def remove(self, bucket_id: str, key: str, version: int) -> None:
        """Take a row away."""
        self._work.write(_DELETE, (bucket_id, key.encode(), version))

    def describe(self, bucket_id: str, stored: StoredObject) -> None:
        """Write tags and ACL anew."""
        described = encode_described(stored)
        self._work.write(_DESCRIBE, (described, stored.acl, bucket_id, stored.key.encode(), stored.version))

    def drop_blobs(self, names: Sequence[str]) -> None:
        """Nothing uses these blobs any more."""
        if names:
            self._work.write(_DROP_BLOBS, (list(names),))
            self._work.write(_DISUSE_BLOBS, (list(names),))

    def append(self, change: ObjectChange) -> None:
        """Add the change to the stream."""
        self._partitions.prepare(self._work, change.committed_at_ns)
        self._work.write(_CHANGE, (change.committed_at_ns, encode_change(change)))

    def _enter(self, values: tuple[object, ...]) -> StoredObject | None:
        ((stamp_ns, *latest),) = self._work.rows(_ENTER_KEY, values)
        self._work.give_stamps(stamp_ns)
        return stored_from_row(tuple(latest)) if latest[0] is not None else None


class Reading:
    """The part of `mutations.Rows` that finds a version, outside of a transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def latest(self, bucket_id: str, key: str) -> StoredObject | None:
        """The row with the greatest version."""
        return _first(self._database.row(_LATEST, (bucket_id, key.encode())))

    def null_version(self, bucket_id: str, key: str) -> StoredObject | None:
        """The null version."""
        return _first(self._database.row(_NULL_VERSION, (bucket_id, key.encode())))

    def exact(self, bucket_id: str, key: str, version: int) -> StoredObject | None:
        """The row of that version."""
        return _first(self._database.row(_EXACT, (bucket_id, key.encode(), version)))


def _first(row: Row | None) -> StoredObject | None:
    return stored_from_row(row) if row else None
