"""Parked messages, the health of topics, and dead letters."""

import time
from collections.abc import Sequence

import msgspec

from bucketwire.event.message import Message
from bucketwire.metabase.postgres.connection import Database, Transaction
from bucketwire.metabase.values import Parked, QueueStats, Settlement, TopicHealth

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Message).decode

_PARK = """
INSERT INTO parked (topic_arn, event_id, attempts, parked_at_ns, due_at_ns, size_bytes, reason, message)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT (topic_arn, event_id) DO NOTHING
"""
_BURY = """
INSERT INTO dead_letters (topic_arn, event_id, buried_at_ns, reason, message)
VALUES (%s, %s, %s, %s, %s) ON CONFLICT (topic_arn, event_id) DO NOTHING
"""
_BURY_PARKED = """
INSERT INTO dead_letters (topic_arn, event_id, buried_at_ns, reason, message)
SELECT topic_arn, event_id, %s, %s, message FROM parked WHERE id = %s
ON CONFLICT (topic_arn, event_id) DO NOTHING
"""
_RETRY = "UPDATE parked SET attempts = attempts + 1, due_at_ns = %s, reason = %s WHERE id = %s"
_REPORT = """
INSERT INTO health (topic_arn, failures, retry_at_ns, reason) VALUES (%s, %s, %s, %s)
ON CONFLICT (topic_arn) DO UPDATE SET failures = excluded.failures,
    retry_at_ns = excluded.retry_at_ns, reason = excluded.reason
"""
# Hops from topic to topic on the index: the cost grows with the topics, not with their messages.
_DUE_TOPICS = """
WITH RECURSIVE waiting (arn) AS (
    (SELECT topic_arn FROM parked ORDER BY topic_arn LIMIT 1)
    UNION ALL
    SELECT (SELECT topic_arn FROM parked WHERE topic_arn > arn ORDER BY topic_arn LIMIT 1)
    FROM waiting WHERE arn IS NOT NULL
)
SELECT arn FROM waiting
WHERE arn IS NOT NULL
  AND EXISTS (SELECT 1 FROM parked WHERE topic_arn = arn AND due_at_ns <= %s)
  AND NOT EXISTS (SELECT 1 FROM health WHERE topic_arn = arn AND retry_at_ns > %s)
"""
_TAKE = """
SELECT id, message, attempts, parked_at_ns, due_at_ns, reason FROM parked
WHERE topic_arn = %s AND due_at_ns <= %s ORDER BY due_at_ns, id LIMIT %s
"""
_STATS = """
SELECT topic_arn, count(*), sum(size_bytes)::bigint, min(parked_at_ns),
    coalesce((SELECT failures FROM health WHERE health.topic_arn = parked.topic_arn), 0)
FROM parked GROUP BY topic_arn
"""


class PostgresQueue:
    """Implements `Queue`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def park(self, messages: Sequence[Message], *, due_at_ns: int, attempts: int, reason: str) -> None:
        """Keep the messages for a later attempt."""
        now_ns = time.time_ns()
        self._write_all(
            _PARK,
            [
                (m.topic_arn, m.event_id, attempts, now_ns, due_at_ns, len(m.body), reason, _encode(m))
                for m in messages
            ],
        )

    def bury(self, messages: Sequence[Message], reason: str) -> None:
        """Keep the messages as dead letters."""
        now_ns = time.time_ns()
        self._write_all(_BURY, [(m.topic_arn, m.event_id, now_ns, reason, _encode(m)) for m in messages])

    def unhealthy(self) -> dict[str, TopicHealth]:
        """The topics with failures."""
        rows = self._database.rows("SELECT topic_arn, failures, retry_at_ns, reason FROM health")
        return {row[0]: TopicHealth(*row) for row in rows}

    def report(self, health: TopicHealth) -> None:
        """A healthy topic has no row."""
        if health.failures:
            values = (health.topic_arn, health.failures, health.retry_at_ns, health.reason)
            self._write_all(_REPORT, [values])
        else:
            self._write_all("DELETE FROM health WHERE topic_arn = %s", [(health.topic_arn,)])

    def due_topics(self, now_ns: int) -> list[str]:
        """Topics that have something to try now."""
        return [row[0] for row in self._database.rows(_DUE_TOPICS, (now_ns, now_ns))]

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
            for number, message, attempts, parked_at_ns, due_at_ns, reason in self._database.rows(
                _TAKE, (topic_arn, now_ns, limit)
            )
        ]

    def settle(self, settlement: Settlement) -> None:
        """Write what became of messages that were taken."""
        now_ns = time.time_ns()
        gone = settlement.delivered + [number for number, _ in settlement.buried]

        def job(work: Transaction) -> None:
            for number, reason in settlement.buried:
                work.write(_BURY_PARKED, (now_ns, reason, number))
            work.write("DELETE FROM parked WHERE id = ANY(%s::bigint[])", (gone,))
            for number, due_at_ns, reason in settlement.retried:
                work.write(_RETRY, (due_at_ns, reason, number))

        self._database.run(job)

    def stats(self) -> list[QueueStats]:
        """One line a topic."""
        return [QueueStats(*row) for row in self._database.rows(_STATS)]

    def dead_letters(self) -> int:
        """How many there are."""
        return self._database.number("SELECT count(*) FROM dead_letters")

    def _write_all(self, sql: str, rows: Sequence[tuple[object, ...]]) -> None:
        def job(work: Transaction) -> None:
            for row in rows:
                work.write(sql, row)

        self._database.run(job)
