"""How far each consumer of the change stream has come."""

from bucketwire.metabase.postgres.connection import Database
from bucketwire.metabase.values import Offset

_SAVE = """
INSERT INTO cursors (consumer, position, alive_at_ns) VALUES (%s, %s, %s)
ON CONFLICT (consumer) DO UPDATE SET position = excluded.position, alive_at_ns = excluded.alive_at_ns
"""


class PostgresCursors:
    """Implements `Cursors`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def load(self, consumer: str) -> Offset | None:
        """The last offset saved."""
        row = self._database.row("SELECT position FROM cursors WHERE consumer = %s", (consumer,))
        return str(row[0]) if row else None

    def save(self, consumer: str, offset: Offset, alive_at_ns: int) -> None:
        """Keep the offset."""
        self._database.run(lambda work: work.write(_SAVE, (consumer, offset, alive_at_ns)))

    def alive_at_ns(self, consumer: str) -> int | None:
        """When the consumer last saved."""
        row = self._database.row("SELECT alive_at_ns FROM cursors WHERE consumer = %s", (consumer,))
        return int(row[0]) if row else None
