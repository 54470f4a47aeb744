"""Rules with their history: retired, never overwritten.

A revision is a time on the clock of the metabase, given once and never again, so the rules in force
then are cached for good. A write reads its bucket's revision while it holds the bucket's lock, shared; an
edit holds it alone: there is no window in which a write sees old rules.
"""

from collections.abc import Callable

import msgspec

from bucketwire.event.rule import Rule
from bucketwire.metabase.postgres.buckets import RETIRE_RULES, lock_bucket, read_bucket
from bucketwire.metabase.postgres.connection import Database, Row, Transaction

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Rule).decode

# All rules in force were added at once, by the last edit: those that were retired before are not looked at.
_AT = """
SELECT rule FROM rules
WHERE bucket_id = %s AND added_at_ns = (
    SELECT added_at_ns FROM rules WHERE bucket_id = %s AND added_at_ns <= %s ORDER BY added_at_ns DESC LIMIT 1
) AND (retired_at_ns IS NULL OR retired_at_ns > %s)
ORDER BY place
"""
_ADD = "INSERT INTO rules (bucket_id, added_at_ns, place, rule) VALUES (%s, %s, %s, %s)"
_CACHED_REVISIONS = 4096

Rows = Callable[[str, tuple[object, ...]], list[Row]]
"""How a query is run: in a transaction, or by itself."""


class PostgresRules:
    """Implements `Rules`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._cached: dict[tuple[str, int], list[Rule]] = {}

    def edit(self, bucket: str, change: Callable[[list[Rule]], list[Rule]]) -> int:
        """Make the rules a new revision, if they have changed."""

        def job(work: Transaction) -> int:
            found, revision = lock_bucket(work, bucket)
            present = self.seen_by(work.rows, found.id, revision)
            rules = change(list(present))
            if rules == present:
                return revision
            added_at_ns = work.stamp_ns()
            work.write(RETIRE_RULES, (added_at_ns, found.id, revision))
            for place, rule in enumerate(rules):
                work.write(_ADD, (found.id, added_at_ns, place, _encode(rule).decode()))
            work.write("UPDATE buckets SET revision = %s WHERE id = %s", (added_at_ns, found.id))
            return added_at_ns

        return self._database.run(job)

    def current(self, bucket: str) -> list[Rule]:
        """The rules in force now."""
        found, revision = read_bucket(self._database, bucket)
        return self.at(found.id, revision)

    def at(self, bucket_id: str, revision: int) -> list[Rule]:
        """The rules in force at that time."""
        return list(self.seen_by(self._database.rows, bucket_id, revision))

    def seen_by(self, rows: Rows, bucket_id: str, revision: int) -> list[Rule]:
        """The rules of a revision that `rows` can see; do not change the list."""
        known = self._cached.get((bucket_id, revision))
        if known is None:
            known = [_decode(row[0]) for row in rows(_AT, (bucket_id, bucket_id, revision, revision))]
            if len(self._cached) >= _CACHED_REVISIONS:
                self._cached.clear()
            self._cached[bucket_id, revision] = known
        return known
