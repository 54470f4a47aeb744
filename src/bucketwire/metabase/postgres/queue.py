"""Parked messages, the health of topics, and dead letters."""

import time
from collections.abc import Callable, Sequence

from bucketwire.event.message import Message
from bucketwire.metabase.postgres.connection import Database, Transaction
from bucketwire.metabase.queued import (
    EXPIRED,
    NO_LIMIT,
    REDRIVEN,
    decode_message,
    encode_message,
    letter_from_row,
    parked_from_row,
    parked_row,
    queue_stats,
)
from bucketwire.metabase.values import DeadLetter, Letters, Parked, QueueStats, Settlement, TopicHealth

_PARK = """
INSERT INTO parked (topic_arn, event_id, attempts, parked_at_ns, due_at_ns, size_bytes, reason, message,
    failures_when_parked)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s,
    coalesce((SELECT failures FROM health WHERE topic_arn = %s), 0))
ON CONFLICT (topic_arn, event_id) DO NOTHING
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
_WITHDRAW = "DELETE FROM parked WHERE topic_arn = %s AND event_id = ANY(%s::text[])"
_RETRY = "UPDATE parked SET attempts = attempts + 1, due_at_ns = %s, reason = %s WHERE id = %s"
_REPORT = """
INSERT INTO health (topic_arn, failures, retry_at_ns, reason) VALUES (%s, %s, %s, %s)
ON CONFLICT (topic_arn) DO UPDATE SET failures = excluded.failures,
    retry_at_ns = excluded.retry_at_ns, reason = excluded.reason
"""
# A topic that is to be left alone for hours was put off when the clock was ahead: nobody waits that long.
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
  AND NOT EXISTS (SELECT 1 FROM health WHERE topic_arn = arn AND retry_at_ns > %s
      AND retry_at_ns < %s + 7200000000000)
"""
_TAKE = """
SELECT id, message, attempts, parked_at_ns, due_at_ns, reason FROM parked
WHERE topic_arn = %s AND due_at_ns <= %s ORDER BY due_at_ns, id LIMIT %s
"""
_STATS = """
SELECT topic_arn, count(*), sum(size_bytes)::bigint, min(parked_at_ns), max(attempts)
FROM parked GROUP BY topic_arn
"""
_EXPIRE = """
WITH overdue AS (
    DELETE FROM parked WHERE id IN (
        SELECT id FROM parked WHERE topic_arn = %(arn)s AND (
            parked_at_ns < %(before)s
            OR greatest(attempts, coalesce((SELECT failures FROM health WHERE topic_arn = %(arn)s), 0)
                - failures_when_parked) > %(most)s
        ) LIMIT %(limit)s FOR UPDATE SKIP LOCKED
    ) RETURNING topic_arn, event_id, attempts, reason, message, parked_at_ns < %(before)s AS too_old
), buried AS (
    INSERT INTO dead_letters (topic_arn, event_id, buried_at_ns, reason, message)
    SELECT topic_arn, event_id, %(now)s,
        (CASE WHEN too_old THEN %(old)s ELSE %(tried)s END) || coalesce(
            (SELECT nullif(health.reason, '') FROM health
             WHERE health.topic_arn = overdue.topic_arn AND overdue.attempts = 0),
            overdue.reason), message FROM overdue
    ON CONFLICT (topic_arn, event_id) DO NOTHING
)
SELECT message FROM overdue
"""
_PENDING = """
SELECT id, message, attempts, parked_at_ns, due_at_ns, reason FROM parked
WHERE topic_arn = %s AND id > %s ORDER BY id LIMIT %s
"""
_LETTERS = """
SELECT id, message, reason, buried_at_ns FROM dead_letters
WHERE id > %(after)s AND (%(arn)s::text IS NULL OR topic_arn = %(arn)s) AND buried_at_ns >= %(since)s
    AND (%(until)s::bigint IS NULL OR buried_at_ns < %(until)s)
ORDER BY id LIMIT %(limit)s
"""
_REMOVE_LETTERS = "DELETE FROM dead_letters WHERE id = ANY(%s::bigint[]) RETURNING topic_arn, message"
_COUNT = """
INSERT INTO counts (what, topic_arn, messages) VALUES (%s, %s, 1)
ON CONFLICT (what, topic_arn) DO UPDATE SET messages = counts.messages + 1
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
            [parked_row(m, attempts, now_ns, due_at_ns, reason) for m in messages],
        )

    def bury(self, messages: Sequence[Message], reason: str) -> None:
        """Keep the messages as dead letters."""
        now_ns = time.time_ns()
        self._write_all(
            _BURY, [(m.topic_arn, m.event_id, now_ns, reason, encode_message(m)) for m in messages]
        )

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
        return [row[0] for row in self._database.rows(_DUE_TOPICS, (now_ns, now_ns, now_ns))]

    def take(self, topic_arn: str, now_ns: int, limit: int) -> list[Parked]:
        """The topic's messages that are due."""
        return [parked_from_row(row) for row in self._database.rows(_TAKE, (topic_arn, now_ns, limit))]

    def pending(self, topic_arn: str, *, after: int, limit: int) -> list[Parked]:
        """The topic's messages, due or not."""
        return [parked_from_row(row) for row in self._database.rows(_PENDING, (topic_arn, after, limit))]

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

    def withdraw(self, topic_arn: str, event_ids: Sequence[str]) -> None:
        """Take these out of the queue."""
        self._database.run(lambda work: work.write(_WITHDRAW, (topic_arn, list(event_ids))))

    def expire(
        self, topic_arn: str, *, parked_before_ns: int, more_attempts_than: int | None, limit: int
    ) -> list[Message]:
        """Bury what has waited too long or was tried too often."""
        values = {
            "arn": topic_arn,
            "before": parked_before_ns,
            "most": NO_LIMIT if more_attempts_than is None else more_attempts_than,
            "limit": limit,
            "now": time.time_ns(),
            "old": EXPIRED[True],
            "tried": EXPIRED[False],
        }
        return [decode_message(row[0]) for row in self._database.run(lambda work: work.rows(_EXPIRE, values))]

    def stats(self) -> list[QueueStats]:
        """One line a topic."""
        return queue_stats(self._database.rows(_STATS), self.unhealthy())

    def letters(self, which: Letters, limit: int) -> list[DeadLetter]:
        """Dead letters, by id."""
        values = {
            "after": which.after,
            "arn": which.topic_arn,
            "since": which.since_ns,
            "until": which.until_ns,
            "limit": limit,
        }
        rows = self._database.rows(_LETTERS, values)
        return [letter_from_row(row) for row in rows]

    def redrive(self, ids: Sequence[int]) -> int:
        """Park dead letters again."""
        now_ns = time.time_ns()

        def park(work: Transaction, stored: bytes) -> None:
            work.write(_PARK, parked_row(decode_message(stored), 0, now_ns, 0, REDRIVEN))

        return self._remove_letters("redriven", ids, park)

    def purge(self, ids: Sequence[int]) -> int:
        """Remove dead letters for good."""
        return self._remove_letters("purged", ids, lambda _work, _stored: None)

    def counts(self) -> dict[tuple[str, str], int]:
        """How many were ever buried, redriven or purged."""
        rows = self._database.rows("SELECT what, topic_arn, messages FROM counts")
        return {(what, arn): messages for what, arn, messages in rows}

    def _remove_letters(
        self, what: str, ids: Sequence[int], first: Callable[[Transaction, bytes], None]
    ) -> int:
        def job(work: Transaction) -> int:
            removed = work.rows(_REMOVE_LETTERS, (list(ids),))
            for arn, stored in removed:
                first(work, stored)
                work.write(_COUNT, (what, arn))
            return len(removed)

        return self._database.run(job)

    def dead_letters(self) -> int:
        """How many there are."""
        return self._database.number("SELECT count(*) FROM dead_letters")

    def _write_all(self, sql: str, rows: Sequence[tuple[object, ...]]) -> None:
        def job(work: Transaction) -> None:
            for row in rows:
                work.write(sql, row)

        self._database.run(job)
