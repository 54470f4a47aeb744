"""What became of messages, counted: for a log line, for the metrics, for Spark."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from bucketwire.event.message import Message
from bucketwire.log import get_logger
from bucketwire.metabase.values import Settlement
from bucketwire.metrics import count_messages, observe_deliveries
from bucketwire.publish.base import Delivered, Outcome, Rejected, Retry

log = get_logger("pipeline")


@dataclass(slots=True)
class Tally:
    """Numbers of messages."""

    delivered: int = 0
    parked: int = 0
    buried: int = 0

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(self.delivered + other.delivered, self.parked + other.parked, self.buried + other.buried)

    @property
    def messages(self) -> int:
        """All of them."""
        return self.delivered + self.parked + self.buried

    def count(self) -> None:
        """Add the numbers to the metrics."""
        count_messages("delivered", self.delivered)
        count_messages("parked", self.parked)
        count_messages("buried", self.buried)


@dataclass(frozen=True, slots=True)
class Sorted:
    """The messages of one call of a publisher, by outcome."""

    delivered: list[Message]
    retries: dict[Retry, list[Message]]
    rejected: dict[str, list[Message]]
    waiting: list[Message]
    """Those of `retries`, in the order of the call."""

    def failure(self, *, ordered: bool) -> Retry | None:
        """Why the destination is left alone for a while: nothing got through, or it asked for a pause.

        Of several pauses the longest holds. Where order matters, one that is to be tried again holds up all
        behind it.
        """
        longest = max(self.retries, key=lambda retry: retry.after_seconds or 0.0, default=None)
        if longest is None or longest.after_seconds or ordered or not self.delivered:
            return longest
        return None

    def together(self, *, ordered: bool) -> list[tuple[Retry, list[Message]]]:
        """What is parked at once: by reason, or in the order of the call, where it matters, for the first."""
        groups = list(self.retries.items())
        return [(groups[0][0], self.waiting)] if ordered and groups else groups

    def tally(self) -> Tally:
        """Their numbers."""
        return Tally(len(self.delivered), len(self.waiting), sum(map(len, self.rejected.values())))


def sort_outcomes(messages: Sequence[Message], outcomes: Sequence[Outcome], now_ns: int) -> Sorted:
    """Messages by outcome; those delivered are observed, those rejected are logged."""
    found = Sorted([], defaultdict(list), defaultdict(list), [])
    for message, outcome in zip(messages, outcomes, strict=True):
        match outcome:
            case Delivered():
                found.delivered.append(message)
            case Retry():
                found.retries[outcome].append(message)
                found.waiting.append(message)
            case Rejected(reason):
                found.rejected[reason].append(message)
                log_burial(message, reason)
    observe_deliveries((message.committed_at_ns for message in found.delivered), now_ns)
    return found


def settlement(
    tried: Iterable[tuple[int, int, Outcome]], due_at_ns: Callable[[int, Retry], int]
) -> Settlement:
    """Of parked messages, by id, with their attempts before this one; when to try those again that failed."""
    found = Settlement([], [], [])
    for number, attempts, outcome in tried:
        match outcome:
            case Delivered():
                found.delivered.append(number)
            case Retry():
                found.retried.append((number, due_at_ns(attempts + 1, outcome), outcome.reason))
            case Rejected(reason):
                found.buried.append((number, reason))
    return found


def log_burial(message: Message, reason: str) -> None:
    """One line for a message that became a dead letter."""
    log.warning("message_rejected", topic=message.topic_arn, event_id=message.event_id, reason=reason)
