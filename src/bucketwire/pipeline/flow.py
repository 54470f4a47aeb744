"""How many parked messages of a topic go out at once: as many as it answers in time.

    all got through, quickly       twice as many
    all got through, in much of    twice as many if it took no longer than with half of them: such a
    the time of a call             destination works on many at once; not more than a publisher has under way
    some did not                   as many as did; if the time was over, that is the most it takes

What is not answered in time is sent again, and may arrive twice: so a slow destination is not asked for more
than it has shown it can do. Pure.
"""

from dataclasses import dataclass

FIRST_MESSAGES = 100
MOST_MESSAGES = 500
UNDER_WAY = 64
"""Messages that a publisher has under way at once; it sends the others behind them."""
MUCH = 0.8
"""The part of the time of a call above which no more are asked for."""
FLAT = 1.25
"""Twice as many messages took as long as before if they took less than so many times that."""


@dataclass(frozen=True, slots=True)
class Flow:
    """To one topic, from one call to the next."""

    messages: int = FIRST_MESSAGES
    """In one call."""
    most: int = MOST_MESSAGES
    seconds: float | None = None
    """What a full call of half as many took; None if there was none."""

    def after(self, tried: int, delivered: int, seconds: float, deadline_seconds: float) -> "Flow":
        """For the next call, when one of so many messages took so long, and got so many through."""
        if delivered < tried:
            fewer = max(1, delivered)
            return Flow(fewer, fewer if seconds > MUCH * deadline_seconds else self.most)
        if tried < self.messages:  # it says nothing of a full one
            return self
        more = min(2 * tried, self.most)
        if more == tried or not self._takes_more(seconds, deadline_seconds):
            return self
        return Flow(more, self.most, seconds)

    def _takes_more(self, seconds: float, deadline_seconds: float) -> bool:
        if 2 * seconds <= deadline_seconds:
            return True
        is_flat = self.seconds is None or seconds <= FLAT * self.seconds
        return is_flat and seconds <= MUCH * deadline_seconds and 2 * self.messages <= UNDER_WAY
