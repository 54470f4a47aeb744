"""What has happened in a run: the writes as clients saw them, the rules over time, the messages that came.

Times are seconds of the one clock of this machine. Only `check` judges.
"""

import json
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import blake2b
from math import inf
from typing import Any
from urllib.parse import unquote_plus

from chaos.plan import Kind, Rule


class Outcome(StrEnum):
    """What a client knows of its write."""

    ACKNOWLEDGED = "acknowledged"
    REFUSED = "refused"
    """It was told that nothing was written, or could not even ask."""
    UNKNOWN = "unknown"
    """The answer was lost, or said that something went wrong inside: it may or may not have happened."""


@dataclass(frozen=True, slots=True)
class Write:
    """What was asked for one key. A multi-delete is one of these for each key, with one request id."""

    bucket: str
    key: str
    event_name: str
    """What its event must be called: `ObjectCreated:Put`."""
    began: float
    ended: float
    outcome: Outcome
    request_id: str | None
    """None when there was no answer to read it from."""


@dataclass(frozen=True, slots=True)
class Edit:
    """A set of rules that was given to a bucket; in flight from `began` to `ended`."""

    bucket: str
    rules: tuple[Rule, ...]
    began: float
    ended: float = inf


@dataclass(frozen=True, slots=True)
class Event:
    """A message that a destination has taken."""

    topic: str
    event_id: str
    digest: bytes
    """Of the body: a long run would not fit into memory with the bodies."""
    received_at: float
    bucket: str
    key: str
    name: str
    rule: str
    request_id: str
    sequencer: str | None
    """Not every event has one."""


@dataclass(frozen=True, slots=True)
class Injury:
    """A fault as it happened."""

    kind: Kind
    began: float
    ended: float


@dataclass(slots=True)
class History:
    """All of it. The lists only grow, each by one thread."""

    writes: list[Write] = field(default_factory=list)
    edits: list[Edit] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    strange: list[str] = field(default_factory=list)
    """Messages that are not events, with their beginning."""


def event_from_message(topic: str, event_id: str, body: bytes, received_at: float) -> Event:
    """Reads a message in the `s3` format, with keys as AWS writes them; `ValueError` if it is none."""
    try:
        record: dict[str, Any] = json.loads(body)["Records"][0]
        s3 = record["s3"]
        return Event(
            topic,
            event_id,
            blake2b(body, digest_size=16).digest(),
            received_at,
            s3["bucket"]["name"],
            unquote_plus(s3["object"]["key"]),
            record["eventName"],
            s3["configurationId"],
            record["responseElements"]["x-amz-request-id"],
            s3["object"].get("sequencer"),
        )
    except (KeyError, IndexError, TypeError, ValueError) as problem:
        raise ValueError(f"no event: {problem}") from problem
