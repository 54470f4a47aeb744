"""Parked messages, the health of topics, and dead letters."""

import json
import time
from collections.abc import Callable, Sequence

from bucketwire.event.message import Message
from bucketwire.metabase.queued import (
    AHEAD_NS,
    EXPIRED,
    NO_LIMIT,
    REDRIVEN,
    decode_message,
    encode_message,
    health_from_rows,
    letter_from_row,
    parked_from_row,
    parked_row,
    queue_stats,
)
from bucketwire.metabase.sqlite.connection import Readers
from bucketwire.metabase.sqlite.writer import Transaction, Writer
from bucketwire.metabase.values import DeadLetter, Letters, Parked, QueueStats, Settlement, TopicHealth

_PARK = """
INSERT INTO parked (topic_arn, event_id, attempts, parked_at_ns, due_at_ns, size_bytes, reason, message,
    failures_when_parked)
VALUES (?, ?, ?, ?, ?, ?, ?, ?,
    coalesce((SELECT failures FROM health WHERE topic_arn = ?), 0))
ON CONFLICT (topic_arn, event_id) DO NOTHING
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
_FIND = """
SELECT event_id, id FROM parked WHERE topic_arn = ? AND event_id IN (SELECT value FROM json_each(?))
"""
_RETRY = "UPDATE parked SET attempts = attempts + 1, due_at_ns = ?, reason = ? WHERE id = ?"
_REPORT = """
INSERT INTO health (topic_arn, failures, retry_at_ns, reason) VALUES (?, ?, ?, ?)
ON CONFLICT (topic_arn) DO UPDATE SET failures = excluded.failures,
    retry_at_ns = excluded.retry_at_ns, reason = excluded.reason
"""
_REPORT_FIRST = """
INSERT INTO health (topic_arn, failures, retry_at_ns, reason) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING
"""
_REPORT_SEEN = """
UPDATE health SET failures = ?2, retry_at_ns = ?3, reason = ?4 WHERE topic_arn = ?1 AND retry_at_ns = ?5
"""
_FORGET = "DELETE FROM health WHERE topic_arn = ?"
_CLAIM = """
UPDATE health SET retry_at_ns = ?1, claimed_until_ns = ?1 WHERE topic_arn = ?2 AND retry_at_ns = ?3
"""
_CLAIM_HEALTHY = """
INSERT INTO health (topic_arn, failures, retry_at_ns, reason, claimed_until_ns) VALUES (?2, 1, ?1, '', ?1)
ON CONFLICT DO NOTHING
"""
# Hops from topic to topic on the index: the cost grows with the topics, not with their messages.
_DUE_TOPICS = f"""
WITH RECURSIVE waiting (arn) AS (
    SELECT min(topic_arn) FROM parked
    UNION ALL
    SELECT (SELECT min(topic_arn) FROM parked WHERE topic_arn > arn) FROM waiting WHERE arn IS NOT NULL
)
SELECT arn FROM waiting
WHERE arn IS NOT NULL
  AND ((SELECT min(due_at_ns) FROM parked WHERE topic_arn = arn) <= ?1
      OR (SELECT max(due_at_ns) FROM parked WHERE topic_arn = arn) >= ?1 + {AHEAD_NS})
  AND NOT EXISTS (SELECT 1 FROM health WHERE topic_arn = arn AND retry_at_ns > ?1
      AND retry_at_ns < ?1 + {AHEAD_NS})
"""  # noqa: S608 - a constant
_HASTEN = (
    "UPDATE health SET retry_at_ns = 0 WHERE retry_at_ns > ?",
    "UPDATE parked SET due_at_ns = 0 WHERE due_at_ns > ?",
)
# Two ranges of the index: a filter would pass over everything that is due in between.
_TAKE = f"""
SELECT * FROM (
    SELECT id, message, attempts, parked_at_ns, due_at_ns, reason FROM parked
    WHERE topic_arn = ?1 AND due_at_ns <= ?2 ORDER BY due_at_ns, id LIMIT ?3
)
UNION ALL
SELECT * FROM (
    SELECT id, message, attempts, parked_at_ns, due_at_ns, reason FROM parked
    WHERE topic_arn = ?1 AND due_at_ns >= ?2 + {AHEAD_NS} ORDER BY due_at_ns, id LIMIT ?3
)
ORDER BY due_at_ns, id LIMIT ?3
"""  # noqa: S608 - a constant
_STATS = """
SELECT topic_arn, count(*), sum(size_bytes), min(parked_at_ns), max(attempts) FROM parked GROUP BY topic_arn
"""
_PAUSES = """
SELECT topic_arn, failures, CASE WHEN retry_at_ns = claimed_until_ns THEN 0 ELSE retry_at_ns END, reason
FROM health
"""
_HAS_PARKED = "SELECT EXISTS (SELECT 1 FROM parked WHERE topic_arn = ?)"
_FAILURES = "SELECT coalesce((SELECT failures FROM health WHERE topic_arn = ?), 0)"
_OVERDUE = """
SELECT id, parked_at_ns < ?2, message FROM parked
WHERE topic_arn = ?1 AND (parked_at_ns < ?2 OR max(attempts, ?3 - failures_when_parked) > ?4) LIMIT ?5
"""
_BURY_OVERDUE = """
INSERT INTO dead_letters (topic_arn, event_id, buried_at_ns, reason, message)
SELECT topic_arn, event_id, ?, ? || coalesce(
    (SELECT nullif(health.reason, '') FROM health
     WHERE health.topic_arn = parked.topic_arn AND parked.attempts = 0),
    parked.reason), message FROM parked WHERE id = ?
ON CONFLICT (topic_arn, event_id) DO NOTHING
"""
_PENDING = """
SELECT id, message, attempts, parked_at_ns, due_at_ns, reason FROM parked
WHERE +topic_arn = ? AND id > ? ORDER BY id LIMIT ?
"""
_LETTERS = """
SELECT id, message, reason, buried_at_ns FROM dead_letters
WHERE id > ?1 AND (?2 IS NULL OR topic_arn = ?2) AND buried_at_ns >= ?3 AND (?4 IS NULL OR buried_at_ns < ?4)
ORDER BY id LIMIT ?5
"""
_LETTER = "SELECT topic_arn, message FROM dead_letters WHERE id = ?"
_DEAD_LETTERS = """
SELECT coalesce(sum(CASE what WHEN 'buried' THEN messages ELSE -messages END), 0) FROM counts
"""
_COUNT = """
INSERT INTO counts (what, topic_arn, messages) VALUES (?, ?, 1)
ON CONFLICT (what, topic_arn) DO UPDATE SET messages = messages + 1
"""


class SqliteQueue:
    """Implements `Queue`."""

    def __init__(self, readers: Readers, writer: Writer) -> None:
        self._readers = readers
        self._writer = writer

    def park(self, messages: Sequence[Message], *, due_at_ns: int, attempts: int, reason: str) -> None:
        """Keep the messages for a later attempt."""
        now_ns = time.time_ns()
        rows = [parked_row(m, attempts, now_ns, due_at_ns, reason) for m in messages]
        self._writer.run(lambda transaction: _execute_many(transaction, _PARK, rows))

    def bury(self, messages: Sequence[Message], reason: str) -> None:
        """Keep the messages as dead letters."""
        now_ns = time.time_ns()
        rows = [(m.topic_arn, m.event_id, now_ns, reason, encode_message(m)) for m in messages]
        self._writer.run(lambda transaction: _execute_many(transaction, _BURY, rows))

    def unhealthy(self) -> dict[str, TopicHealth]:
        """The topics with failures."""
        return health_from_rows(
            self._readers.rows("SELECT topic_arn, failures, retry_at_ns, reason FROM health")
        )

    def report(self, health: TopicHealth, seen: TopicHealth | None = None) -> bool:
        """A healthy topic has no row."""
        told = (health.topic_arn, health.failures, health.retry_at_ns, health.reason)

        def job(transaction: Transaction) -> bool:
            if not health.failures:
                transaction.execute(_FORGET, told[:1])
            elif seen is None:
                transaction.execute(_REPORT, told)
            elif not seen.failures:
                return transaction.execute(_REPORT_FIRST, told).rowcount > 0
            else:
                return transaction.execute(_REPORT_SEEN, (*told, seen.retry_at_ns)).rowcount > 0
            return True

        return self._writer.run(job)

    def claim(self, topics: Sequence[TopicHealth], until_ns: int) -> set[str]:
        """Keep others off the topics."""

        def claimed(transaction: Transaction, health: TopicHealth) -> bool:
            if health.failures:
                values = (until_ns, health.topic_arn, health.retry_at_ns)
                return transaction.execute(_CLAIM, values).rowcount > 0
            return transaction.execute(_CLAIM_HEALTHY, (until_ns, health.topic_arn)).rowcount > 0

        return self._writer.run(
            lambda transaction: {each.topic_arn for each in topics if claimed(transaction, each)}
        )

    def due_topics(self, now_ns: int) -> list[str]:
        """Topics that have something to try now."""
        return [row[0] for row in self._readers.rows(_DUE_TOPICS, (now_ns,))]

    def hasten(self, after_ns: int) -> None:
        """End the waits that are long."""

        def job(transaction: Transaction) -> None:
            for sql in _HASTEN:
                transaction.execute(sql, (after_ns,))

        self._writer.run(job)

    def take(self, topic_arn: str, now_ns: int, limit: int) -> list[Parked]:
        """The topic's messages that are due."""
        return [parked_from_row(row) for row in self._readers.rows(_TAKE, (topic_arn, now_ns, limit))]

    def has_parked(self, topic_arn: str) -> bool:
        """Whether anything waits for the topic."""
        (row,) = self._readers.rows(_HAS_PARKED, (topic_arn,))
        return bool(row[0])

    def backlogs(self) -> dict[str, int]:
        """Bytes by topic, as the triggers of `parked` keep them."""
        return dict(self._readers.rows("SELECT topic_arn, size_bytes FROM backlogs"))

    def pending(self, topic_arn: str, *, after: int, limit: int) -> list[Parked]:
        """The topic's messages, due or not."""
        return [parked_from_row(row) for row in self._readers.rows(_PENDING, (topic_arn, after, limit))]

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

    def find(self, topic_arn: str, event_ids: Sequence[str]) -> dict[str, int]:
        """Where they are in the queue."""
        return dict(self._readers.rows(_FIND, (topic_arn, json.dumps(event_ids))))

    def expire(
        self, topic_arn: str, *, parked_before_ns: int, more_attempts_than: int | None, limit: int
    ) -> list[Message]:
        """Bury what has waited too long or was tried too often."""
        now_ns = time.time_ns()
        most = NO_LIMIT if more_attempts_than is None else more_attempts_than

        def job(transaction: Transaction) -> list[Message]:
            (failures,) = transaction.execute(_FAILURES, (topic_arn,)).fetchone()
            overdue = (topic_arn, parked_before_ns, failures, most, limit)
            rows = transaction.execute(_OVERDUE, overdue).fetchall()
            transaction.executemany(
                _BURY_OVERDUE, [(now_ns, EXPIRED[bool(too_old)], number) for number, too_old, _ in rows]
            )
            transaction.executemany("DELETE FROM parked WHERE id = ?", [(row[0],) for row in rows])
            return [decode_message(row[2]) for row in rows]

        return self._writer.run(job)

    def stats(self) -> list[QueueStats]:
        """One line a topic."""
        return queue_stats(self._readers.rows(_STATS), health_from_rows(self._readers.rows(_PAUSES)))

    def letters(self, which: Letters, limit: int) -> list[DeadLetter]:
        """Dead letters, by id."""
        rows = self._readers.rows(
            _LETTERS, (which.after, which.topic_arn, which.since_ns, which.until_ns, limit)
        )
        return [letter_from_row(row) for row in rows]

    def redrive(self, ids: Sequence[int]) -> int:
        """Park dead letters again."""
        now_ns = time.time_ns()

        def park(transaction: Transaction, stored: bytes) -> None:
            transaction.execute(_PARK, parked_row(decode_message(stored), 0, now_ns, 0, REDRIVEN))

        return self._remove_letters("redriven", ids, park)

    def purge(self, ids: Sequence[int]) -> int:
        """Remove dead letters for good."""
        return self._remove_letters("purged", ids, lambda _transaction, _stored: None)

    def counts(self) -> dict[tuple[str, str], int]:
        """How many were ever buried, redriven or purged."""
        rows = self._readers.rows("SELECT what, topic_arn, messages FROM counts")
        return {(what, arn): messages for what, arn, messages in rows}

    def _remove_letters(
        self, what: str, ids: Sequence[int], first: Callable[[Transaction, bytes], None]
    ) -> int:
        def job(transaction: Transaction) -> int:
            removed = 0
            for number in ids:
                row = transaction.execute(_LETTER, (number,)).fetchone()
                if row is not None:
                    first(transaction, row[1])
                    transaction.execute("DELETE FROM dead_letters WHERE id = ?", (number,))
                    transaction.execute(_COUNT, (what, row[0]))
                    removed += 1
            return removed

        return self._writer.run(job)

    def dead_letters(self) -> int:
        """How many there are, as the counts tell."""
        return self._readers.number(_DEAD_LETTERS)


def _execute_many(transaction: Transaction, sql: str, rows: Sequence[tuple[object, ...]]) -> None:
    transaction.executemany(sql, rows)
