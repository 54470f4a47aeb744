"""Topics. A deleted one stays as a row, so that what was committed before still finds its way."""

from collections.abc import Callable

import msgspec

from bucketwire.event.topic import Topic
from bucketwire.metabase.sqlite.connection import Readers
from bucketwire.metabase.sqlite.writer import Transaction, Writer

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Topic).decode

_PUT = """
INSERT INTO topics (arn, owner_id, topic, version, deleted_at_ns)
VALUES (?, ?, ?, (SELECT coalesce(max(version), 0) + 1 FROM topics), ?)
ON CONFLICT (arn) DO UPDATE SET owner_id = excluded.owner_id, topic = excluded.topic,
    version = excluded.version, deleted_at_ns = excluded.deleted_at_ns
"""
_ALL = "SELECT topic FROM topics WHERE arn > ? AND deleted_at_ns IS NULL ORDER BY arn LIMIT ?"
_OWNED_BY = """
SELECT topic FROM topics WHERE owner_id = ? AND arn > ? AND deleted_at_ns IS NULL ORDER BY arn LIMIT ?
"""


class SqliteTopics:
    """Implements `Topics`."""

    def __init__(self, readers: Readers, writer: Writer) -> None:
        self._readers = readers
        self._writer = writer

    def put(self, topic: Topic) -> None:
        """Create the topic, or set the one of that ARN anew."""
        self.edit(topic.arn, lambda _: topic)

    def edit(self, arn: str, change: Callable[[Topic | None], Topic | None]) -> None:
        """Apply `change` to the topic and store what it gives."""

        def job(transaction: Transaction) -> None:
            row = transaction.execute("SELECT topic FROM topics WHERE arn = ?", (arn,)).fetchone()
            topic = change(_decode(row[0]) if row else None)
            if topic is not None:
                _store(transaction, msgspec.structs.replace(topic, changed_at_ns=transaction.stamp_ns()))

        self._writer.run(job)

    def get(self, arn: str) -> Topic | None:
        """The topic, a deleted one too."""
        row = self._readers.row("SELECT topic FROM topics WHERE arn = ?", (arn,))
        return _decode(row[0]) if row else None

    def owned_by(self, owner_id: str | None, *, after: str, limit: int) -> list[Topic]:
        """The topics of an owner or of all, by ARN."""
        if owner_id is None:
            rows = self._readers.rows(_ALL, (after, limit))
        else:
            rows = self._readers.rows(_OWNED_BY, (owner_id, after, limit))
        return [_decode(row[0]) for row in rows]

    def delete(self, arn: str) -> None:
        """Mark the topic deleted, at a time on the clock of the changes."""

        def job(transaction: Transaction) -> None:
            row = transaction.execute(
                "SELECT topic FROM topics WHERE arn = ? AND deleted_at_ns IS NULL", (arn,)
            ).fetchone()
            if row is not None:
                deleted = msgspec.structs.replace(_decode(row[0]), deleted_at_ns=transaction.stamp_ns())
                _store(transaction, deleted)

        self._writer.run(job)

    def version(self) -> int:
        """Grows with every put and delete."""
        return self._readers.number("SELECT coalesce(max(version), 0) FROM topics")

    def changed(self, after: int, limit: int) -> list[tuple[int, Topic]]:
        """The topics put or deleted behind that version, by their own."""
        rows = self._readers.rows(
            "SELECT version, topic FROM topics WHERE version > ? ORDER BY version LIMIT ?", (after, limit)
        )
        return [(version, _decode(topic)) for version, topic in rows]


def _store(transaction: Transaction, topic: Topic) -> None:
    transaction.execute(_PUT, (topic.arn, topic.owner_id, _encode(topic).decode(), topic.deleted_at_ns))
