"""How far each consumer of the change stream has come, and who may say so."""

import time

from bucketwire.metabase.sqlite.connection import Readers
from bucketwire.metabase.sqlite.writer import Transaction, Writer
from bucketwire.metabase.values import Offset

# A lease that ends more than a minute from now was made when the clock was ahead: it counts for nothing.
_SAVE = """
INSERT INTO cursors (consumer, position, alive_at_ns, last_alive_at_ns)
SELECT ?1, ?2, ?3, ?3 WHERE NOT EXISTS (
    SELECT 1 FROM leases WHERE consumer = ?1 AND holder <> ?4
        AND (?4 <> '' OR until_ns BETWEEN ?5 + 1 AND ?5 + 60000000000)
)
ON CONFLICT (consumer) DO UPDATE SET alive_at_ns = excluded.alive_at_ns,
    last_alive_at_ns = coalesce(nullif(excluded.alive_at_ns, 0), last_alive_at_ns),
    position = CAST(max(CAST(position AS INTEGER), CAST(excluded.position AS INTEGER)) AS TEXT)
"""
_LEASE = """
INSERT INTO leases (consumer, holder, until_ns) VALUES (?1, ?2, ?3)
ON CONFLICT (consumer) DO UPDATE SET holder = excluded.holder, until_ns = excluded.until_ns
WHERE leases.holder = excluded.holder OR leases.until_ns NOT BETWEEN ?4 + 1 AND ?4 + 60000000000
"""
_KEEP = "UPDATE leases SET until_ns = ? WHERE consumer = ? AND holder = ?"
_NOT_ALIVE = """
UPDATE cursors SET alive_at_ns = 0 WHERE consumer = ?1 AND NOT EXISTS (
    SELECT 1 FROM leases WHERE consumer = ?1 AND until_ns BETWEEN ?2 + 1 AND ?2 + 60000000000
)
"""


class SqliteCursors:
    """Implements `Cursors`."""

    def __init__(self, readers: Readers, writer: Writer) -> None:
        self._readers = readers
        self._writer = writer

    def load(self, consumer: str) -> Offset | None:
        """The last offset saved."""
        row = self._readers.row("SELECT position FROM cursors WHERE consumer = ?", (consumer,))
        return str(row[0]) if row else None

    def furthest(self) -> int:
        """The position of the consumer who has come furthest."""
        return self._readers.number("SELECT coalesce(max(CAST(position AS INTEGER)), 0) FROM cursors")

    def lease(self, consumer: str, holder: str, seconds: float) -> bool:
        """Take or keep the lease."""
        now_ns = time.time_ns()
        until_ns = now_ns + int(seconds * 1e9)

        def job(transaction: Transaction) -> bool:
            return transaction.execute(_LEASE, (consumer, holder, until_ns, now_ns)).rowcount > 0

        return self._writer.run(job)

    def keep(self, consumer: str, holder: str, seconds: float) -> bool:
        """Prolong the lease."""
        until_ns = time.time_ns() + int(seconds * 1e9)

        def job(transaction: Transaction) -> bool:
            return transaction.execute(_KEEP, (until_ns, consumer, holder)).rowcount > 0

        return self._writer.run(job)

    def holder(self, consumer: str) -> str | None:
        """Who has the lease now."""
        row = self._readers.row(
            "SELECT holder FROM leases WHERE consumer = ? AND until_ns > ?", (consumer, time.time_ns())
        )
        return str(row[0]) if row else None

    def save(self, consumer: str, offset: Offset, alive_at_ns: int, holder: str = "") -> bool:
        """Keep the offset, unless somebody else has the lease."""

        def job(transaction: Transaction) -> bool:
            values = (consumer, offset, alive_at_ns, holder, time.time_ns())
            return transaction.execute(_SAVE, values).rowcount > 0

        return self._writer.run(job)

    def not_alive(self, consumer: str) -> None:
        """The consumer is not at work."""
        self._writer.run(lambda work: work.execute(_NOT_ALIVE, (consumer, time.time_ns())))

    def alive_at_ns(self, consumer: str) -> int | None:
        """When the consumer last saved."""
        row = self._readers.row("SELECT alive_at_ns FROM cursors WHERE consumer = ?", (consumer,))
        return int(str(row[0])) if row else None

    def last_alive_at_ns(self, consumer: str) -> int:
        """When the consumer was last alive."""
        row = self._readers.row("SELECT last_alive_at_ns FROM cursors WHERE consumer = ?", (consumer,))
        return int(str(row[0])) if row else 0
