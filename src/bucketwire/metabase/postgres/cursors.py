"""How far each consumer of the change stream has come, and who may say so, by the clock of the server."""

from bucketwire.metabase.postgres.connection import TIMELINE, Database
from bucketwire.metabase.values import Offset


def _place(table: str) -> str:
    """What orders the positions `xid:stamp`."""
    xid, stamp = (f"split_part({table}.position, ':', {part})" for part in (1, 2))
    return f"({xid}::numeric, coalesce(nullif({stamp}, ''), '0')::numeric)"


# A lease that ends more than a minute from now was made when the clock was ahead: it counts for nothing.
# It is locked while a cursor is saved: whoever takes it next sees what was saved.
_SAVE = f"""
WITH lease AS (SELECT holder, until_ns FROM leases WHERE consumer = %(consumer)s FOR SHARE)
INSERT INTO cursors (consumer, position, alive_at_ns, last_alive_at_ns)
SELECT %(consumer)s, %(position)s, %(alive)s, %(alive)s
WHERE %(timeline)s IN ('', {TIMELINE}) AND NOT EXISTS (
    SELECT 1 FROM lease WHERE holder <> %(holder)s
        AND (%(holder)s <> '' OR until_ns BETWEEN server_ns() + 1 AND server_ns() + 60000000000)
)
ON CONFLICT (consumer) DO UPDATE SET alive_at_ns = excluded.alive_at_ns,
    last_alive_at_ns = coalesce(nullif(excluded.alive_at_ns, 0), cursors.last_alive_at_ns), position =
    CASE WHEN {_place("excluded")} > {_place("cursors")} THEN excluded.position ELSE cursors.position END
RETURNING true
"""  # noqa: S608 - constants
_LOAD = f"SELECT (SELECT position FROM cursors WHERE consumer = %s), {TIMELINE}"  # noqa: S608 - constants
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
        ((position, self._database.timeline),) = self._database.rows(_LOAD, (consumer,))
        return None if position is None else str(position)

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
        values = {
            "consumer": consumer,
            "position": offset,
            "alive": alive_at_ns,
            "holder": holder,
            "timeline": self._database.timeline,
        }
        saved = self._database.run(lambda work: work.row(_SAVE, values)) is not None
        if not saved:
            self._database.check_timeline(self._database.rows(f"SELECT {TIMELINE}")[0][0])
        return saved

    def not_alive(self, consumer: str) -> None:
        """The consumer is not at work."""
        self._database.run(lambda work: work.write(_NOT_ALIVE, {"consumer": consumer}))

    def alive_at_ns(self, consumer: str) -> int | None:
        """When the consumer last saved."""
        row = self._database.row("SELECT alive_at_ns FROM cursors WHERE consumer = %s", (consumer,))
        return int(row[0]) if row else None

    def last_alive_at_ns(self, consumer: str) -> int:
        """When the consumer was last alive."""
        row = self._database.row("SELECT last_alive_at_ns FROM cursors WHERE consumer = %s", (consumer,))
        return int(row[0]) if row else 0
