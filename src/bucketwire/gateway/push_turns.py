"""Who may push to a topic now. For one event loop.

A topic that hangs must not use up all threads: it has so many pushes under way at once, and others wait for
their turn, without a thread, until their deadline. While it fails, one push at a time finds out whether it
still does, and the others are refused at once.
"""

import asyncio
import time
from collections.abc import Callable

UNDER_WAY = 16
"""Pushes to one topic at once."""
FAILING_SECONDS = 5.0
"""How long a failed push speaks for the next ones."""
TOO_MANY = "too many pushes to this topic are under way"
NOT_TAKEN = "the topic did not take the last push"


class Turns:
    """The turns of one topic: each `take` that returns nothing is followed by a `give_back`."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._free = asyncio.Semaphore(UNDER_WAY)
        self._under_way = 0
        self._failing_until = clock()
        self._is_trying = False
        """Whether the one push that tries a failing topic is under way."""

    async def take(self, seconds: float) -> str:
        """Wait for a turn, but no longer than that; why there is none, or nothing."""
        if self._refuses():
            return NOT_TAKEN
        try:
            async with asyncio.timeout(max(0.0, seconds)):
                await self._free.acquire()
        except TimeoutError:
            return TOO_MANY
        if self._refuses():  # it has failed meanwhile
            self._free.release()
            return NOT_TAKEN
        self._under_way += 1
        self._is_trying = self._fails()
        return ""

    def give_back(self, *, failed: bool) -> None:
        """The push has ended."""
        self._under_way -= 1
        self._is_trying = False
        self._failing_until = self._clock() + (FAILING_SECONDS if failed else 0.0)
        self._free.release()

    def _refuses(self) -> bool:
        return self._is_trying or (self._fails() and self._under_way > 0)

    def _fails(self) -> bool:
        return self._clock() < self._failing_until
