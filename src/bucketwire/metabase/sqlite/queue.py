"""Parked messages, the health of topics, and dead letters."""

import time
from collections.abc import Sequence

import msgspec

from bucketwire.event.message import Message
from bucketwire.metabase.sqlite.connection import Readers
from bucketwire.metabase.sqlite.writer import Transaction, Writer
from bucketwire.metabase.values import Parked, QueueStats, Settlement, TopicHealth

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Message).decode

_PARK = """
INSERT INTO parked (topic_arn, event_id, attempts, parked_at_ns, due_at_ns, size_bytes, reason, message)
VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (topic_arn, event_id) DO NOTHING
"""
_BURY = """
INSERT INTO dead_letters (topic_arn, event_id, buried_at_ns, reason, message)
VALUES (?, ?, ?, ?, ?) ON CONFLICT (topic_arn, event_id) DO NOTHING
"""
_BURY_PARKED = """
INSERT INTO dead_letters (topic_arn, event_id, buried_at_ns, reason, message)
SELECT topic_arn, event_id, ?, ?, message FROM parked WHERE id = ?
ON CONFLICT (topic_arn, event_id) DO NOTHING
"""
_RETRY = "UPDATE parked SET attempts = attempts + 1, due_at_ns = ?, reason = ? WHERE id = ?"
_REPORT = """
INSERT INTO health (topic_arn, failures, retry_at_ns, reason) VALUES (?, ?, ?, ?)
ON CONFLICT (topic_arn) DO UPDATE SET failures = excluded.failures,
    retry_at_ns = excluded.retry_at_ns, reason = excluded.reason
"""
# Hops from topic to topic on the index: the cost grows with the topics, not with their messages.
_DUE_TOPICS = """
WITH RECURSIVE waiting (arn) AS (
    SELECT min(topic_arn) FROM parked
    UNION ALL
    SELECT (SELECT min(topic_arn) FROM parked WHERE topic_arn > arn) FROM waiting WHERE arn IS NOT NULL
)
SELECT arn FROM waiting
WHERE arn IS NOT NULL
  AND EXISTS (SELECT 1 FROM parked WHERE topic_arn = arn AND due_at_ns <= ?1)
  AND NOT EXISTS (SELECT 1 FROM health WHERE topic_arn = arn AND retry_at_ns > ?1)
"""
_TAKE = """
SELECT id, message, attempts, parked_at_ns, due_at_ns, reason FROM parked
WHERE topic_arn = ? AND due_at_ns <= ? ORDER BY due_at_ns, id LIMIT ?
"""
_STATS = """
SELECT topic_arn, count(*), sum(size_bytes), min(parked_at_ns),
    coalesce((SELECT failures FROM health WHERE health.topic_arn = parked.topic_arn), 0)
FROM parked GROUP BY topic_arn
"""


class SqliteQueue:
    """Implements `Queue`."""

    def __init__(self, readers: Readers, writer: Writer) -> None:
        self._readers = readers
        self._writer = writer

    def park(self, messages: Sequence[Message], *, due_at_ns: int, attempts: int, reason: str) -> None:
        """Keep the messages for a later attempt."""
        now_ns = time.time_ns()
        rows = [
            (m.topic_arn, m.event_id, attempts, now_ns, due_at_ns, len(m.body), reason, _encode(m))
            for m in messages
        ]
        self._writer.run(lambda transaction: _execute_many(transaction, _PARK, rows))

    def bury(self, messages: Sequence[Message], reason: str) -> None:
        """Keep the messages as dead letters."""
        now_ns = time.time_ns()
        rows = [(m.topic_arn, m.event_id, now_ns, reason, _encode(m)) for m in messages]
        self._writer.run(lambda transaction: _execute_many(transaction, _BURY, rows))

    def unhealthy(self) -> dict[str, TopicHealth]:
        """The topics with failures."""
        rows = self._readers.rows("SELECT topic_arn, failures, retry_at_ns, reason FROM health")
        return {
            arn: TopicHealth(arn, failures, retry_at_ns, reason)
            for arn, failures, retry_at_ns, reason in rows
        }

    def report(self, health: TopicHealth) -> None:
        """A healthy topic has no row."""

        def job(transaction: Transaction) -> None:
            if health.failures:
                transaction.execute(
                    _REPORT, (health.topic_arn, health.failures, health.retry_at_ns, health.reason)
                )
            else:
                transaction.execute("DELETE FROM health WHERE topic_arn = ?", (health.topic_arn,))

        self._writer.run(job)

    def due_topics(self, now_ns: int) -> list[str]:
        """Topics that have something to try now."""
        return [row[0] for row in self._readers.rows(_DUE_TOPICS, (now_ns,))]

    def take(self, topic_arn: str, now_ns: int, limit: int) -> list[Parked]:
        """The topic's messages that are due."""
        return [
            Parked(
                id=number,
                message=_decode(message),
                attempts=attempts,
                parked_at_ns=parked_at_ns,
                due_at_ns=due_at_ns,
                reason=reason,
            )
            for number, message, attempts, parked_at_ns, due_at_ns, reason in self._readers.rows(
                _TAKE, (topic_arn, now_ns, limit)
            )
        ]

    def settle(self, settlement: Settlement) -> None:
        """Write what became of messages that were taken."""
        now_ns = time.time_ns()
        gone = settlement.delivered + [number for number, _ in settlement.buried]
        buried = [(now_ns, reason, number) for number, reason in settlement.buried]
        retried = [(due_at_ns, reason, number) for number, due_at_ns, reason in settlement.retried]

        def job(transaction: Transaction) -> None:
            transaction.executemany(_BURY_PARKED, buried)
            transaction.executemany("DELETE FROM parked WHERE id = ?", [(number,) for number in gone])
            transaction.executemany(_RETRY, retried)

        self._writer.run(job)

    def stats(self) -> list[QueueStats]:
        """One line a topic."""
        return [
            QueueStats(arn, entries, size, oldest, failures)
            for arn, entries, size, oldest, failures in self._readers.rows(_STATS)
        ]

    def dead_letters(self) -> int:
        """How many there are."""
        return self._readers.number("SELECT count(*) FROM dead_letters")


def _execute_many(transaction: Transaction, sql: str, rows: Sequence[tuple[object, ...]]) -> None:
    transaction.executemany(sql, rows)
