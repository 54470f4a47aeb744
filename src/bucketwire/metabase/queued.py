"""How messages stand in the tables of the queue, once for all backends."""

from collections.abc import Iterable
from typing import Any

import msgspec

from bucketwire.event.message import Message
from bucketwire.metabase.values import DeadLetter, Parked, QueueStats, TopicHealth

encode_message = msgspec.msgpack.Encoder().encode
decode_message = msgspec.msgpack.Decoder(Message).decode

EXPIRED = {True: "time_to_live is over: ", False: "max_retries reached: "}
"""Why a message was buried, by whether it was too old; its last failure follows, or the topic's if it was
never tried itself."""
REDRIVEN = "taken from the dead letters"
NO_LIMIT = 2**31 - 1
AHEAD_NS = 7_200 * 1_000_000_000
"""What is to wait for so long was put off when the clock was ahead: nobody waits that long."""


def parked_row(
    message: Message, attempts: int, parked_at_ns: int, due_at_ns: int, reason: str
) -> tuple[object, ...]:
    """The row of a message to park; the ARN stands twice, for the look at its topic's health."""
    arn, size = message.topic_arn, len(message.body)
    encoded = encode_message(message)
    return (arn, message.event_id, attempts, parked_at_ns, due_at_ns, size, reason, encoded, arn)


def parked_from_row(row: Any) -> Parked:
    """From (id, message, attempts, parked_at_ns, due_at_ns, reason)."""
    return Parked(row[0], decode_message(row[1]), *row[2:])


def letter_from_row(row: Any) -> DeadLetter:
    """From (id, message, reason, buried_at_ns)."""
    return DeadLetter(row[0], decode_message(row[1]), *row[2:])


def health_from_rows(rows: Iterable[Any]) -> dict[str, TopicHealth]:
    """By ARN, from rows (ARN, failures, retry_at_ns, reason)."""
    return {row[0]: TopicHealth(*row) for row in rows}


def queue_stats(waiting: Iterable[Any], unhealthy: dict[str, TopicHealth]) -> list[QueueStats]:
    """One line a topic, from rows (ARN, entries, bytes, oldest, attempts) and the health of topics.

    A topic that somebody has in hand has 0 in there for the time of its next attempt: that is under way.
    """
    lines = {row[0]: row for row in waiting}
    return [
        _line(lines.get(arn, (arn, 0, 0, 0, 0)), unhealthy.get(arn, TopicHealth(arn)))
        for arn in sorted({*lines, *unhealthy})
    ]


def breaker(line: QueueStats, now_ns: int) -> str:
    """`closed`, `open` or `probing`. When nothing waits, nothing is probed: the next one is tried at once."""
    if not line.failures or not (line.entries or line.retry_at_ns > now_ns):
        return "closed"
    return "open" if line.retry_at_ns > now_ns else "probing"


def _line(row: Any, health: TopicHealth) -> QueueStats:
    arn, entries, size_bytes, oldest_at_ns, attempts = row
    return QueueStats(
        arn,
        entries,
        size_bytes,
        oldest_at_ns,
        health.failures,
        attempts,
        health.retry_at_ns,
        health.reason,
    )
