"""The stamp: what a message tells of the moment of its change, and what it is known by.

All of it comes from `committed_at_ns`, which no two changes of a metabase share, and from the rule: composed
again, anywhere, a message has the same stamp.
"""

from datetime import UTC, datetime
from functools import lru_cache
from hashlib import blake2b
from typing import Annotated

import msgspec
from msgspec import Meta

_SECOND = 1_000_000_000
MILLISECONDS, MICROSECONDS = 3, 6
"""Digits behind the second."""
_DAY = "((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|[12][0-9]))"
_CLOCK = "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"


def _utc(*digits: int) -> Meta:
    """A time with so many digits behind the second."""
    behind = "|".join(f"[0-9]{{{each}}}" for each in digits)
    return Meta(
        pattern=rf"^[0-9]{{4}}-{_DAY}T{_CLOCK}\.({behind})Z$",
        description="UTC",
        extra_json_schema={"format": "date-time"},
    )


Time = Annotated[str, _utc(MILLISECONDS, MICROSECONDS)]
TimeInMilliseconds = Annotated[str, _utc(MILLISECONDS)]
Sequencer = Annotated[
    str, Meta(pattern="^[0-9A-F]{16}$", description="Orders the changes of one key: compare as text")
]
Uuid = Annotated[str, Meta(pattern="^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")]
EventId = Annotated[
    str, Meta(pattern="^[0-9a-f]{32}$", description="One change for one rule; the same on every retry")
]
THREE_DIGITS = tuple(f"{number:03d}" for number in range(1000))


class Stamp(msgspec.Struct, frozen=True, gc=False):
    """Times, ids and what orders them, as they are written."""

    time: str
    sequencer: str
    event_id: str


def stamp(nanoseconds: int, digits: int, rule_half: str) -> Stamp:
    """Of a change at that time, for the rule with that half of the event id."""
    half = moment_half(nanoseconds)
    return Stamp(event_time(nanoseconds, digits), half.upper(), half + rule_half)


def moment_half(nanoseconds: int) -> str:
    """The first half of the event id, which is the sequencer in lower case: it names the change."""
    return nanoseconds.to_bytes(8, "big").hex()


@lru_cache(maxsize=4096)
def rule_half(bucket_id: str, rule_id: str) -> str:
    """The second half of the event id: it names the rule."""
    return blake2b(f"{bucket_id}\0{rule_id}".encode(), digest_size=8).hexdigest()


def with_hyphens(digits: str) -> str:
    """32 digits, as a UUID."""
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def event_time(nanoseconds: int, digits: int) -> str:
    """With 3 or 6 digits behind the second: cut and not rounded, so that no event lies in the future."""
    seconds, rest = divmod(nanoseconds, _SECOND)
    finer = THREE_DIGITS[rest // 1000 % 1000] if digits == MICROSECONDS else ""
    return f"{_second(seconds)}{THREE_DIGITS[rest // 1_000_000]}{finer}Z"


@lru_cache(maxsize=16)
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.")


latest: list[tuple[int, str]] = [(-2 * _SECOND, "")]
"""For writers: the second of the change before, mostly this one's too: when it began, how it is written."""


def turned(nanoseconds: int) -> tuple[int, str]:
    """Makes the second of that moment the latest: the nanoseconds in it, and how it is written."""
    seconds, rest = divmod(nanoseconds, _SECOND)
    second = _second(seconds)
    latest[0] = (nanoseconds - rest, second)
    return rest, second
