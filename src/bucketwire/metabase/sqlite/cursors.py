"""How far each consumer of the change stream has come."""

from bucketwire.metabase.sqlite.connection import Readers
from bucketwire.metabase.sqlite.writer import Transaction, Writer
from bucketwire.metabase.values import Offset

_SAVE = """
INSERT INTO cursors (consumer, position, alive_at_ns) VALUES (?, ?, ?)
ON CONFLICT (consumer) DO UPDATE SET position = excluded.position, alive_at_ns = excluded.alive_at_ns
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

    def save(self, consumer: str, offset: Offset, alive_at_ns: int) -> None:
        """Keep the offset."""

        def job(transaction: Transaction) -> None:
            transaction.execute(_SAVE, (consumer, offset, alive_at_ns))

        self._writer.run(job)

    def alive_at_ns(self, consumer: str) -> int | None:
        """When the consumer last saved."""
        row = self._readers.row("SELECT alive_at_ns FROM cursors WHERE consumer = ?", (consumer,))
        return int(str(row[0])) if row else None
