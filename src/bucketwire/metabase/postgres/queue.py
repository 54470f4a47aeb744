"""Parked messages, the health of topics, and dead letters."""

import time
from collections.abc import Callable, Sequence

from bucketwire.event.message import Message
from bucketwire.metabase.postgres.connection import Database, Transaction
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
from bucketwire.metabase.values import DeadLetter, Letters, Parked, QueueStats, Settlement, TopicHealth

_PARK = """
INSERT INTO parked (topic_arn, event_id, attempts, parked_at_ns, due_at_ns, size_bytes, reason, message,
    failures_when_parked)
SELECT arn, event, attempts, parked_at, due_at, size, why, encoded,
    coalesce((SELECT failures FROM health WHERE topic_arn = arn), 0)
FROM unnest(%s::text[], %s::text[], %s::integer[], %s::bigint[], %s::bigint[], %s::bigint[], %s::text[],
    %s::bytea[]) WITH ORDINALITY AS new (arn, event, attempts, parked_at, due_at, size, why, encoded, place)
ORDER BY place
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
_FIND = "SELECT event_id, id FROM parked WHERE topic_arn = %s AND event_id = ANY(%s::text[])"
_RETRY = "UPDATE parked SET attempts = attempts + 1, due_at_ns = %s, reason = %s WHERE id = %s"
_REPORT = """
INSERT INTO health (topic_arn, failures, retry_at_ns, reason) VALUES (%s, %s, %s, %s)
ON CONFLICT (topic_arn) DO UPDATE SET failures = excluded.failures,
    retry_at_ns = excluded.retry_at_ns, reason = excluded.reason
"""
_REPORT_FIRST = """
INSERT INTO health (topic_arn, failures, retry_at_ns, reason) VALUES (%s, %s, %s, %s)
ON CONFLICT DO NOTHING RETURNING topic_arn
"""
_REPORT_SEEN = """
UPDATE health SET failures = %s, retry_at_ns = %s, reason = %s
WHERE topic_arn = %s AND retry_at_ns = %s RETURNING topic_arn
"""
_CLAIM = """
UPDATE health SET retry_at_ns = %(until)s, claimed_until_ns = %(until)s
FROM unnest(%(arns)s::text[], %(seen)s::bigint[]) AS as_seen (arn, seen_ns)
WHERE topic_arn = arn AND retry_at_ns = seen_ns RETURNING arn
"""
_CLAIM_HEALTHY = """
INSERT INTO health (topic_arn, failures, retry_at_ns, reason, claimed_until_ns)
SELECT arn, 1, %(until)s, '', %(until)s FROM unnest(%(arns)s::text[]) AS healthy (arn)
ON CONFLICT DO NOTHING RETURNING topic_arn
"""
# Hops from topic to topic on the index: the cost grows with the topics, not with their messages.
_DUE_TOPICS = f"""
WITH RECURSIVE waiting (arn) AS (
    (SELECT topic_arn FROM parked ORDER BY topic_arn LIMIT 1)
    UNION ALL
    SELECT (SELECT topic_arn FROM parked WHERE topic_arn > arn ORDER BY topic_arn LIMIT 1)
    FROM waiting WHERE arn IS NOT NULL
)
SELECT arn FROM waiting
WHERE arn IS NOT NULL
  AND ((SELECT min(due_at_ns) FROM parked WHERE topic_arn = arn) <= %(now)s
      OR (SELECT max(due_at_ns) FROM parked WHERE topic_arn = arn) >= %(now)s + {AHEAD_NS})
  AND NOT EXISTS (SELECT 1 FROM health WHERE topic_arn = arn AND retry_at_ns > %(now)s
      AND retry_at_ns < %(now)s + {AHEAD_NS})
"""  # noqa: S608 - a constant
# What others have locked gets a time of their own.
_HASTEN = (
    """
    UPDATE health SET retry_at_ns = 0 WHERE topic_arn IN (
        SELECT topic_arn FROM health WHERE retry_at_ns > %s FOR UPDATE SKIP LOCKED
    )
    """,
    """
    UPDATE parked SET due_at_ns = 0 WHERE id IN (
        SELECT id FROM parked WHERE due_at_ns > %s FOR UPDATE SKIP LOCKED
    )
    """,
)
# Two ranges of the index: a filter would pass over everything that is due in between.
_TAKE = f"""
(
    SELECT id, message, attempts, parked_at_ns, due_at_ns, reason FROM parked
    WHERE topic_arn = %(arn)s AND due_at_ns <= %(now)s ORDER BY due_at_ns, id LIMIT %(limit)s
)
UNION ALL
(
    SELECT id, message, attempts, parked_at_ns, due_at_ns, reason FROM parked
    WHERE topic_arn = %(arn)s AND due_at_ns >= %(now)s + {AHEAD_NS}
    ORDER BY due_at_ns, id LIMIT %(limit)s
)
ORDER BY due_at_ns, id LIMIT %(limit)s
"""  # noqa: S608 - a constant
_STATS = """
SELECT topic_arn, count(*), sum(size_bytes)::bigint, min(parked_at_ns), max(attempts)
FROM parked GROUP BY topic_arn
"""
_PAUSES = """
SELECT topic_arn, failures, CASE WHEN retry_at_ns = claimed_until_ns THEN 0 ELSE retry_at_ns END, reason
FROM health
"""
# Not EXISTS: for that the planner may take the whole table, when most of it is of one topic.
_HAS_PARKED = "SELECT min(due_at_ns) IS NOT NULL FROM parked WHERE topic_arn = %s"
_BACKLOGS = """
SELECT topic_arn, sum(entries)::bigint, sum(size_bytes)::bigint, count(*) FROM backlogs GROUP BY topic_arn
"""
_FOLD_BACKLOGS = """
WITH folded AS (
    DELETE FROM backlogs WHERE id IN (
        SELECT id FROM backlogs ORDER BY id LIMIT 10000 FOR UPDATE SKIP LOCKED
    ) RETURNING topic_arn, entries, size_bytes
)
INSERT INTO backlogs (topic_arn, entries, size_bytes)
SELECT topic_arn, sum(entries), sum(size_bytes) FROM folded GROUP BY topic_arn
HAVING sum(entries) <> 0 OR sum(size_bytes) <> 0
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
_DEAD_LETTERS = """
SELECT coalesce(sum(CASE what WHEN 'buried' THEN messages ELSE -messages END), 0) FROM counts
"""
_COUNT = """
INSERT INTO counts (what, topic_arn, messages) VALUES (%s, %s, 1)
ON CONFLICT (what, topic_arn) DO UPDATE SET messages = counts.messages + 1
"""

_LOOSE_ROWS = 1_000
"""Of backlogs, before they are made one a topic."""


class PostgresQueue:
    """Implements `Queue`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def park(self, messages: Sequence[Message], *, due_at_ns: int, attempts: int, reason: str) -> None:
        """Keep the messages for a later attempt."""
        now_ns = time.time_ns()
        rows = [parked_row(m, attempts, now_ns, due_at_ns, reason) for m in messages]
        if rows:
            self._database.run(lambda work: work.write(_PARK, _columns(rows)))

    def bury(self, messages: Sequence[Message], reason: str) -> None:
        """Keep the messages as dead letters."""
        now_ns = time.time_ns()
        self._write_all(
            _BURY, [(m.topic_arn, m.event_id, now_ns, reason, encode_message(m)) for m in messages]
        )

    def unhealthy(self) -> dict[str, TopicHealth]:
        """The topics with failures."""
        return health_from_rows(
            self._database.rows("SELECT topic_arn, failures, retry_at_ns, reason FROM health")
        )

    def report(self, health: TopicHealth, seen: TopicHealth | None = None) -> bool:
        """A healthy topic has no row."""
        told = (health.topic_arn, health.failures, health.retry_at_ns, health.reason)
        if not health.failures:
            self._write_all("DELETE FROM health WHERE topic_arn = %s", [told[:1]])
        elif seen is None:
            self._write_all(_REPORT, [told])
        elif not seen.failures:
            return bool(self._database.run(lambda work: work.rows(_REPORT_FIRST, told)))
        else:
            values = (*told[1:], health.topic_arn, seen.retry_at_ns)
            return bool(self._database.run(lambda work: work.rows(_REPORT_SEEN, values)))
        return True

    def claim(self, topics: Sequence[TopicHealth], until_ns: int) -> set[str]:
        """Keep others off the topics."""
        as_seen = {
            "until": until_ns,
            "arns": [each.topic_arn for each in topics if each.failures],
            "seen": [each.retry_at_ns for each in topics if each.failures],
        }
        unknown = {"until": until_ns, "arns": [each.topic_arn for each in topics if not each.failures]}

        def job(work: Transaction) -> set[str]:
            return {arn for (arn,) in work.rows(_CLAIM, as_seen) + work.rows(_CLAIM_HEALTHY, unknown)}

        return self._database.run(job)

    def due_topics(self, now_ns: int) -> list[str]:
        """Topics that have something to try now."""
        return [row[0] for row in self._database.rows(_DUE_TOPICS, {"now": now_ns})]

    def hasten(self, after_ns: int) -> None:
        """End the waits that are long."""

        def job(work: Transaction) -> None:
            for sql in _HASTEN:
                work.write(sql, (after_ns,))

        self._database.run(job)

    def take(self, topic_arn: str, now_ns: int, limit: int) -> list[Parked]:
        """The topic's messages that are due."""
        values = {"arn": topic_arn, "now": now_ns, "limit": limit}
        return [parked_from_row(row) for row in self._database.rows(_TAKE, values)]

    def has_parked(self, topic_arn: str) -> bool:
        """Whether anything waits for the topic."""
        ((found,),) = self._database.rows(_HAS_PARKED, (topic_arn,))
        return bool(found)

    def backlogs(self) -> dict[str, int]:
        """Bytes by topic: the sum of what was added and taken away; now and then, one row for many."""
        rows = self._database.rows(_BACKLOGS)
        if sum(count for *_, count in rows) > len(rows) + _LOOSE_ROWS:
            self._database.run(lambda work: work.write(_FOLD_BACKLOGS))
        return {arn: size_bytes for arn, entries, size_bytes, _ in rows if entries}

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

    def find(self, topic_arn: str, event_ids: Sequence[str]) -> dict[str, int]:
        """Where they are in the queue."""
        return {row[0]: row[1] for row in self._database.rows(_FIND, (topic_arn, list(event_ids)))}

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
        return queue_stats(self._database.rows(_STATS), health_from_rows(self._database.rows(_PAUSES)))

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
            work.write(_PARK, _columns([parked_row(decode_message(stored), 0, now_ns, 0, REDRIVEN)]))

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
        """How many there are, as the counts tell."""
        return self._database.number(_DEAD_LETTERS)

    def _write_all(self, sql: str, rows: Sequence[tuple[object, ...]]) -> None:
        def job(work: Transaction) -> None:
            for row in rows:
                work.write(sql, row)

        self._database.run(job)


def _columns(rows: Sequence[tuple[object, ...]]) -> list[list[object]]:
    """One array a column, so that all are parked by one statement; the ARN is needed only once."""
    return [list(column) for column in zip(*rows, strict=True)][:-1]
