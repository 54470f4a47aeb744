"""Topics. A deleted one stays as a row, so that what was committed before still finds its way."""

from collections.abc import Callable

import msgspec

from bucketwire.event.topic import Topic
from bucketwire.metabase.postgres.connection import Database, Transaction

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Topic).decode

_LOCK = "topics"
"""Held by who changes one: the number that it gives the change must not be passed by a greater one."""
_PUT = """
INSERT INTO topics (arn, owner_id, topic, version, deleted_at_ns)
VALUES (%s, %s, %s, (SELECT coalesce(max(version), 0) + 1 FROM topics), %s)
ON CONFLICT (arn) DO UPDATE SET owner_id = excluded.owner_id, topic = excluded.topic,
    version = excluded.version, deleted_at_ns = excluded.deleted_at_ns
"""
_ALL = "SELECT topic FROM topics WHERE arn > %s AND deleted_at_ns IS NULL ORDER BY arn LIMIT %s"
_OWNED_BY = """
SELECT topic FROM topics WHERE owner_id = %s AND arn > %s AND deleted_at_ns IS NULL ORDER BY arn LIMIT %s
"""
_PRESENT = "SELECT topic FROM topics WHERE arn = %s AND deleted_at_ns IS NULL"


class PostgresTopics:
    """Implements `Topics`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, topic: Topic) -> None:
        """Create the topic, or set the one of that ARN anew."""
        self.edit(topic.arn, lambda _: topic)

    def edit(self, arn: str, change: Callable[[Topic | None], Topic | None]) -> None:
        """Apply `change` to the topic and store what it gives."""

        def job(work: Transaction) -> None:
            work.lock(_LOCK)
            row = work.row("SELECT topic FROM topics WHERE arn = %s", (arn,))
            topic = change(_decode(row[0]) if row else None)
            if topic is not None:
                _store(work, msgspec.structs.replace(topic, changed_at_ns=work.stamp_ns()))

        self._database.run(job)

    def get(self, arn: str) -> Topic | None:
        """The topic, a deleted one too."""
        row = self._database.row("SELECT topic FROM topics WHERE arn = %s", (arn,))
        return _decode(row[0]) if row else None

    def owned_by(self, owner_id: str | None, *, after: str, limit: int) -> list[Topic]:
        """The topics of an owner or of all, by ARN."""
        if owner_id is None:
            rows = self._database.rows(_ALL, (after, limit))
        else:
            rows = self._database.rows(_OWNED_BY, (owner_id, after, limit))
        return [_decode(row[0]) for row in rows]

    def delete(self, arn: str) -> None:
        """Mark the topic deleted, at a time on the clock of the changes."""

        def job(work: Transaction) -> None:
            work.lock(_LOCK)
            row = work.row(_PRESENT, (arn,))
            if row is not None:
                _store(work, msgspec.structs.replace(_decode(row[0]), deleted_at_ns=work.stamp_ns()))

        self._database.run(job)

    def version(self) -> int:
        """Grows with every put and delete."""
        return self._database.number("SELECT coalesce(max(version), 0) FROM topics")

    def changed(self, after: int, limit: int) -> list[tuple[int, Topic]]:
        """The topics put or deleted behind that version, by their own."""
        rows = self._database.rows(
            "SELECT version, topic FROM topics WHERE version > %s ORDER BY version LIMIT %s", (after, limit)
        )
        return [(version, _decode(topic)) for version, topic in rows]


def _store(work: Transaction, topic: Topic) -> None:
    work.write(_PUT, (topic.arn, topic.owner_id, _encode(topic).decode(), topic.deleted_at_ns))
