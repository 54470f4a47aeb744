"""Whether a destination keeps up with the batches, which wait for it, or is left to the retries.

    in a batch       slow in some calls in a row: from then on its messages are parked, and drained
    in the drain     not slow for a while: its messages go out with the batches again

So one slow call changes nothing, and a destination near the bound does not change sides each second. That a
topic is slow is part of its health, for all workers; `retry_at_ns` is the time of its last slow answer, which
has come, so that it is drained at once. One that has taken longer than the first
retries wait is very slow, until it is quick again.
"""

import time

from bucketwire.metabase.values import TopicHealth

PACE_SECONDS = 0.0005
"""A message's share of time, in a large batch: a destination that takes longer is served by the retries."""
SLOW_CALLS = 3
"""In a row, of one worker's batches."""
QUICK_SECONDS = 2.0
"""For so long no call of a slow topic may be slow before batches wait for it again."""

_SLOW = "answers slowly"
_VERY_SLOW = "answers very slowly"


class Wait:
    """Measures, from now on, how long a destination keeps this process waiting.

    What the process works meanwhile, for other topics too, is not the destination's fault.
    """

    def __init__(self) -> None:
        self._began, self._worked = time.monotonic(), time.process_time()

    def seconds(self) -> float:
        """From then until now, by the clock on the wall."""
        return time.monotonic() - self._began

    def is_slow(self, messages: int, deadline_seconds: float) -> bool:
        """Whether a call with so many messages took more than half of what a batch would wait for it."""
        waited = self.seconds() - (time.process_time() - self._worked)
        return waited > deadline_seconds / 2 + messages * PACE_SECONDS


def slow_health(topic_arn: str, slow_at_ns: int = 0, *, very: bool = False) -> TopicHealth:
    """The health of a topic that answers, but slowly; 0 if it may be let back at the next quick answers."""
    return TopicHealth(topic_arn, 1, slow_at_ns, _VERY_SLOW if very else _SLOW)


def answers(health: TopicHealth) -> bool:
    """Whether the topic took its last messages, however slowly: a failure would have a reason."""
    return health.reason in {"", _SLOW, _VERY_SLOW}


def is_very_slow(health: TopicHealth) -> bool:
    """Whether the topic is known to answer, later than the first retries wait."""
    return health.reason == _VERY_SLOW


def slow_at_ns(health: TopicHealth) -> int:
    """When the topic was slow, as its health says; 0 if it does not."""
    return min(health.retry_at_ns, time.time_ns()) if health.reason in {_SLOW, _VERY_SLOW} else 0


def is_quick_again(slow_at_ns: int) -> bool:
    """Whether that is long enough ago."""
    return time.time_ns() - slow_at_ns >= QUICK_SECONDS * 1e9
