"""When a message that failed is tried again, and when no more.

Without settings: after 1, 2, 4, 8 s, then every 8 s, for ever. A topic, or the server for all topics, may set
a pause of its own, a greatest age and a greatest number of retries. Pauses are spread a little, so that what
failed together does not return together.

A pause is from the beginning of one attempt to that of the next: who has waited for an answer in vain has
waited, and an endpoint that swallows requests is tried as often as any other, unless a call may take longer.

Pure: the caller brings the randomness, so that a test can say what the answer is.
"""

from dataclasses import dataclass

from bucketwire.event.topic import Topic

LADDER_SECONDS = (1.0, 2.0, 4.0, 8.0)
SPREAD = 0.2
"""The part of a step by which it may grow."""
SHORTEST_SECONDS = 0.1
"""Who asks for no pause at all gets this one: a dead topic must not cost a core."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """What happens to a message that is not acknowledged. 0 is no limit."""

    time_to_live_seconds: int = 0
    max_retries: int = 0
    sleep_seconds: float | None = None
    """None climbs the ladder."""

    def delay_seconds(self, attempts: int, luck: float = 0.0, spent_seconds: float = 0.0) -> float:
        """Seconds to wait after that many failed attempts, of which the last has taken `spent_seconds`.

        `luck`, from 0 to 1, places it in the spread.
        """
        step = self.sleep_seconds
        if step is None:
            step = LADDER_SECONDS[min(max(attempts, 1), len(LADDER_SECONDS)) - 1]
        if self.time_to_live_seconds:
            step = min(step, float(self.time_to_live_seconds))
        spread = 1.0 + SPREAD * luck
        return max(step * spread - spent_seconds, SHORTEST_SECONDS * spread)

    @property
    def ends(self) -> bool:
        """Whether there is an end to the retries."""
        return bool(self.time_to_live_seconds or self.max_retries)


def is_critical(failures: int) -> bool:
    """Whether this failure in a row is the one behind the end of the ladder."""
    return failures == len(LADDER_SECONDS) + 1


def policy_of(topic: Topic, default: RetryPolicy) -> RetryPolicy:
    """The topic's policy: its own settings, and the server's where it has none."""
    sleep = _number(topic, "retry_sleep_duration")
    return RetryPolicy(
        _number(topic, "time_to_live", default.time_to_live_seconds) or 0,
        _number(topic, "max_retries", default.max_retries) or 0,
        default.sleep_seconds if sleep is None else float(sleep),
    )


def _number(topic: Topic, name: str, default: int | None = None) -> int | None:
    """The attribute's value. Ceph's clients write `None` for a default."""
    text = topic.attributes.get(name, "")
    return int(text) if text.isdecimal() else default
