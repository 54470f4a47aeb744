"""Rules with their history: retired, never overwritten.

A revision is a time on the clock of the metabase, given once and never again, so the rules in force
then are cached for good. A write reads its bucket's revision in its own transaction: there is no
window in which it sees old rules.
"""

from collections.abc import Callable

from bucketwire.event.rule import Rule
from bucketwire.metabase.sqlite.buckets import RETIRE_RULES, find_bucket
from bucketwire.metabase.sqlite.connection import Execute, Readers
from bucketwire.metabase.sqlite.writer import Transaction, Writer
from bucketwire.metabase.stored import SeenRules, encode_text

# All rules in force were added at once, by the last edit: those that were retired before are not looked at.
_AT = """
SELECT rule FROM rules
WHERE bucket_id = ?1 AND added_at_ns = (
    SELECT max(added_at_ns) FROM rules WHERE bucket_id = ?1 AND added_at_ns <= ?2
) AND (retired_at_ns IS NULL OR retired_at_ns > ?2)
ORDER BY place
"""
_ADD = "INSERT INTO rules (bucket_id, added_at_ns, place, rule) VALUES (?, ?, ?, ?)"


class SqliteRules:
    """Implements `Rules`."""

    def __init__(self, readers: Readers, writer: Writer) -> None:
        self._readers = readers
        self._writer = writer
        self._seen = SeenRules()

    def edit(self, bucket: str, change: Callable[[list[Rule]], list[Rule]]) -> int:
        """Make the rules a new revision, if they have changed."""

        def job(transaction: Transaction) -> int:
            found, revision = find_bucket(transaction.execute, bucket)
            present = self.seen_by(transaction.execute, found.id, revision)
            rules = change(list(present))
            if rules == present:
                return revision
            added_at_ns = transaction.stamp_ns()
            transaction.execute(RETIRE_RULES, (added_at_ns, found.id, revision))
            transaction.executemany(
                _ADD,
                [(found.id, added_at_ns, place, encode_text(rule)) for place, rule in enumerate(rules)],
            )
            transaction.execute("UPDATE buckets SET revision = ? WHERE id = ?", (added_at_ns, found.id))
            return added_at_ns

        return self._writer.run(job)

    def current(self, bucket: str) -> list[Rule]:
        """The rules in force now."""
        found, revision = find_bucket(self._readers.execute, bucket)
        return self.at(found.id, revision)

    def at(self, bucket_id: str, revision: int) -> list[Rule]:
        """The rules in force at that time."""
        return list(self.seen_by(self._readers.execute, bucket_id, revision))

    def seen_by(self, execute: Execute, bucket_id: str, revision: int) -> list[Rule]:
        """The rules of a revision that `execute` can see; do not change the list."""
        return self._seen.of(bucket_id, revision, lambda: execute(_AT, (bucket_id, revision)).fetchall())
