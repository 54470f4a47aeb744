"""The contract of a publisher: bytes in, one outcome a message out."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from bucketwire.event.message import Message


@dataclass(frozen=True, slots=True)
class Delivered:
    """The destination has acknowledged the message."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """The destination will never take it: the owner's mistake. It becomes a dead letter."""

    reason: str


@dataclass(frozen=True, slots=True)
class Retry:
    """Not acknowledged, for a cause that may pass. It is parked and tried again."""

    reason: str
    after_seconds: float | None = None
    """The earliest time the destination asked for, if it did."""
    of_message: bool = False
    """Whether the destination may well take others: it has looked at this one, and does not want it."""


Outcome = Delivered | Rejected | Retry

_NO_ANSWER = re.compile(r"no answer within ([0-9.e+-]+) s")


def no_answer(deadline_seconds: float) -> Retry:
    """The outcome of a message that had no answer by the deadline of the call."""
    return Retry(f"no answer within {deadline_seconds:g} s")


def no_answer_seconds(reason: str) -> float | None:
    """How long an answer was waited for in vain, if that is the reason."""
    found = _NO_ANSWER.fullmatch(reason)
    return float(found[1]) if found else None


class Publisher(Protocol):
    """A connection to one destination. Publishers never format: a message goes out as it is."""

    def publish(self, messages: Sequence[Message], deadline_seconds: float) -> list[Outcome]:
        """Send the messages and block until each has its outcome, or the deadline has passed.

        Outcomes stand in the order of the messages. What is unanswered at the deadline is `no_answer`.
        Never raises for what a destination does: unreachable, hanging or lying is an outcome.
        Calling it twice sends twice. Threads may call it at once.
        """
        ...

    def close(self) -> None:
        """Give up the connections, but for those of calls under way. Calling it twice is harmless."""
        ...
