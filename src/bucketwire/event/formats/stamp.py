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

Time = Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3,6}Z$", description="UTC")]
Sequencer = Annotated[
    str, Meta(pattern="^[0-9A-F]{16,}$", description="Orders the changes of one key: compare as text")
]
EventId = Annotated[
    str, Meta(pattern="^[0-9a-f]{32}$", description="One change for one rule; the same on every retry")
]
_SECOND = 1_000_000_000
_THREE_DIGITS = tuple(f"{number:03d}" for number in range(1000))


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


def event_time(nanoseconds: int, digits: int) -> str:
    """With 3 or 6 digits behind the second: cut and not rounded, so that no event lies in the future."""
    return TIMES[digits](nanoseconds)


def time_in_milliseconds(nanoseconds: int) -> str:
    """`2026-11-15T20:24:40.123Z`."""
    start, whole = _latest[0]
    rest = nanoseconds - start
    if not 0 <= rest < _SECOND:
        rest, whole = _turned(nanoseconds)
    return f"{whole}{_THREE_DIGITS[rest // 1_000_000]}Z"


def time_in_microseconds(nanoseconds: int) -> str:
    """`2026-11-15T20:24:40.123456Z`."""
    start, whole = _latest[0]
    rest = nanoseconds - start
    if not 0 <= rest < _SECOND:
        rest, whole = _turned(nanoseconds)
    return f"{whole}{_THREE_DIGITS[rest // 1_000_000]}{_THREE_DIGITS[rest // 1000 % 1000]}Z"


TIMES = {3: time_in_milliseconds, 6: time_in_microseconds}
"""What writes a time, by its digits behind the second."""
_latest = [(0, "1970-01-01T00:00:00.")]
"""The second of the change before: when it began, and how it is written. Most often it is this one's, too."""


def _turned(nanoseconds: int) -> tuple[int, str]:
    seconds, rest = divmod(nanoseconds, _SECOND)
    whole = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.")
    _latest[0] = (nanoseconds - rest, whole)
    return rest, whole
