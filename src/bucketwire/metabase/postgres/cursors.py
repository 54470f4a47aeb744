"""How far each consumer of the change stream has come, and who may say so, by the clock of the server."""

from bucketwire.metabase.postgres.connection import Database
from bucketwire.metabase.values import Offset

# A lease that ends more than a minute from now was made when the clock was ahead: it counts for nothing.
_SAVE = """
INSERT INTO cursors (consumer, position, alive_at_ns)
SELECT %(consumer)s, %(position)s, %(alive)s WHERE NOT EXISTS (
    SELECT 1 FROM leases WHERE consumer = %(consumer)s AND holder <> %(holder)s
        AND (%(holder)s <> '' OR until_ns BETWEEN server_ns() + 1 AND server_ns() + 60000000000)
)
ON CONFLICT (consumer) DO UPDATE SET position = excluded.position, alive_at_ns = excluded.alive_at_ns
RETURNING true
"""
_LEASE = """
INSERT INTO leases (consumer, holder, until_ns) VALUES (%(consumer)s, %(holder)s, server_ns() + %(ns)s)
ON CONFLICT (consumer) DO UPDATE SET holder = excluded.holder, until_ns = excluded.until_ns
WHERE leases.holder = excluded.holder
    OR leases.until_ns NOT BETWEEN server_ns() + 1 AND server_ns() + 60000000000
RETURNING true
"""
_KEEP = """
UPDATE leases SET until_ns = server_ns() + %(ns)s WHERE consumer = %(consumer)s AND holder = %(holder)s
RETURNING true
"""
_NOT_ALIVE = """
UPDATE cursors SET alive_at_ns = 0 WHERE consumer = %(consumer)s AND NOT EXISTS (
    SELECT 1 FROM leases WHERE consumer = %(consumer)s
        AND until_ns BETWEEN server_ns() + 1 AND server_ns() + 60000000000
)
"""


class PostgresCursors:
    """Implements `Cursors`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def load(self, consumer: str) -> Offset | None:
        """The last offset saved."""
        row = self._database.row("SELECT position FROM cursors WHERE consumer = %s", (consumer,))
        return str(row[0]) if row else None

    def lease(self, consumer: str, holder: str, seconds: float) -> bool:
        """Take or keep the lease."""
        values = {"consumer": consumer, "holder": holder, "ns": int(seconds * 1e9)}
        return self._database.run(lambda work: work.row(_LEASE, values)) is not None

    def keep(self, consumer: str, holder: str, seconds: float) -> bool:
        """Prolong the lease."""
        values = {"consumer": consumer, "holder": holder, "ns": int(seconds * 1e9)}
        return self._database.run(lambda work: work.row(_KEEP, values)) is not None

    def holder(self, consumer: str) -> str | None:
        """Who has the lease now."""
        row = self._database.row(
            "SELECT holder FROM leases WHERE consumer = %s AND until_ns > server_ns()", (consumer,)
        )
        return str(row[0]) if row else None

    def save(self, consumer: str, offset: Offset, alive_at_ns: int, holder: str = "") -> bool:
        """Keep the offset, unless somebody else has the lease."""
        values = {"consumer": consumer, "position": offset, "alive": alive_at_ns, "holder": holder}
        return self._database.run(lambda work: work.row(_SAVE, values)) is not None

    def not_alive(self, consumer: str) -> None:
        """The consumer is not at work."""
        self._database.run(lambda work: work.write(_NOT_ALIVE, {"consumer": consumer}))

    def alive_at_ns(self, consumer: str) -> int | None:
        """When the consumer last saved."""
        row = self._database.row("SELECT alive_at_ns FROM cursors WHERE consumer = %s", (consumer,))
        return int(row[0]) if row else None
