"""Rules with their history: retired, never overwritten.

A revision is a time on the clock of the metabase, given once and never again, so the rules in force
then are cached for good. A write reads its bucket's revision while it holds the bucket's lock, shared; an
edit holds it alone: there is no window in which a write sees old rules.
"""

from collections.abc import Callable

from bucketwire.event.rule import Rule
from bucketwire.metabase.postgres.buckets import RETIRE_RULES, lock_bucket, read_bucket
from bucketwire.metabase.postgres.connection import Database, Row, Transaction
from bucketwire.metabase.stored import SeenRules, encode_text

# All rules in force were added at once, by the last edit: those that were retired before are not looked at.
_AT = """
SELECT rule FROM rules
WHERE bucket_id = %s AND added_at_ns = (
    SELECT added_at_ns FROM rules WHERE bucket_id = %s AND added_at_ns <= %s ORDER BY added_at_ns DESC LIMIT 1
) AND (retired_at_ns IS NULL OR retired_at_ns > %s)
ORDER BY place
"""
_ADD = "INSERT INTO rules (bucket_id, added_at_ns, place, rule) VALUES (%s, %s, %s, %s)"

Rows = Callable[[str, tuple[object, ...]], list[Row]]
"""How a query is run: in a transaction, or by itself."""


class PostgresRules:
    """Implements `Rules`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._seen = SeenRules()

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
                work.write(_ADD, (found.id, added_at_ns, place, encode_text(rule)))
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
        return self._seen.of(
            bucket_id, revision, lambda: rows(_AT, (bucket_id, bucket_id, revision, revision))
        )
