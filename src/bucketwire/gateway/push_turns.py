"""Who may push to a topic now. For one event loop.

A topic that hangs must not use up all threads, nor an owner with many such topics, nor many owners whose
topics hang together:

    a topic      has so many pushes under way at once      others wait for their turn, without a thread,
    an owner     a quarter of the threads                  until their deadline
    what hangs   a quarter, all topics together, of        others are refused at once
                 which one owner has half
    what fails   one push at a time, which finds out       others are refused at once
                 whether it still does

Topics come and go: now and then those are forgotten of which no more is known than of a new one.
"""

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import AsyncExitStack

from bucketwire.event.topic import Topic

Gate = tuple[asyncio.Semaphore, str]
"""What a push must pass, and why it cannot when it is shut."""

UNDER_WAY = 16
"""Pushes to one topic at once."""
FAILING_SECONDS = 5.0
"""How long a failed push speaks for the next ones."""
HANGING_SECONDS = 1.0
"""A topic that has answered no push for so long hangs, until it takes one in less."""
HUNG_KEPT_SECONDS = 600.0
"""How long it is remembered at least that a topic hangs, after the last push to it."""
KEPT = 1_024
"""Up to so many topics are all remembered."""
TOO_MANY = "too many pushes to this topic are under way"
TOO_MANY_OF_OWNER = "too many pushes to topics of this owner are under way"
TOO_MANY_OF_ALL = "too many pushes are under way"
TOO_MANY_HANG = "the topic hangs, and too many pushes to topics that hang are under way"
NOT_TAKEN = "the topic did not take the last push"


class Shares:
    """The threads for pushes, and who has how many of them."""

    def __init__(self, threads: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._free = asyncio.Semaphore(threads)
        self._free_of_owner: defaultdict[str, asyncio.Semaphore] = defaultdict(
            lambda: asyncio.Semaphore(threads // 4)
        )
        self._most_hanging = threads // 4
        self._most_hanging_of_owner = threads // 8
        self._turns: dict[str, Turns] = {}
        self._most_turns = KEPT
        self.busy: set[Turns] = set()
        """Those that have pushes under way."""

    def turns(self, topic: Topic) -> "Turns":
        """The turns of the topic. Take one at once, or ask again: they are forgotten while nobody does."""
        if topic.arn not in self._turns:
            if len(self._turns) >= self._most_turns:
                self._forget_idle()
            gates = (
                (asyncio.Semaphore(UNDER_WAY), TOO_MANY),
                (self._free_of_owner[topic.owner_id], TOO_MANY_OF_OWNER),
                (self._free, TOO_MANY_OF_ALL),
            )
            self._turns[topic.arn] = Turns(self, topic.owner_id, gates, self._clock)
        return self._turns[topic.arn]

    def has_room_to_hang(self, owner_id: str) -> bool:
        """Whether a topic of the owner that hangs may have one more push under way.

        What an owner has beyond its part takes no room from the others.
        """
        most = self._most_hanging_of_owner
        hanging: Counter[str] = Counter()
        for turns in self.busy:
            if turns.hangs:
                hanging[turns.owner_id] += turns.under_way
        together = sum(min(count, most) for count in hanging.values())
        return hanging[owner_id] < most and together < self._most_hanging

    def _forget_idle(self) -> None:
        """Forget, and do so again when there are twice as many: a new topic costs little on average."""
        self._turns = {arn: turns for arn, turns in self._turns.items() if not turns.is_idle}
        for owner_id in self._free_of_owner.keys() - {turns.owner_id for turns in self._turns.values()}:
            del self._free_of_owner[owner_id]
        self._most_turns = max(KEPT, 2 * len(self._turns))


class Turns:
    """The turns of one topic: each `take` that returns nothing is followed by a `give_back`."""

    def __init__(
        self, shares: Shares, owner_id: str, gates: tuple[Gate, ...], clock: Callable[[], float]
    ) -> None:
        self.owner_id = owner_id
        self.under_way = 0
        self._waiting = 0
        self._shares = shares
        self._gates = gates
        self._clock = clock
        self._heard_at = clock()
        """When a push ended, or the first of those under way began."""
        self._has_hung = False
        self._failing_until = clock()
        self._is_trying = False
        """Whether the one push that tries a failing topic is under way."""

    @property
    def hangs(self) -> bool:
        """Whether it has left a push without an answer for long, and has taken none in less since."""
        return self._has_hung or (self.under_way > 0 and self._is_silent())

    @property
    def is_idle(self) -> bool:
        """Whether nobody pushes or waits, and the topic does not fail, nor hang unless that is long ago."""
        if self.under_way or self._waiting or self._fails():
            return False
        return not self._has_hung or self._clock() - self._heard_at >= HUNG_KEPT_SECONDS

    async def take(self, seconds: float) -> str:
        """Wait for a turn, but no longer than that; why there is none, or nothing."""
        if refusal := self._refusal():
            return refusal
        async with AsyncExitStack() as held:
            if refusal := await self._wait(held, seconds) or self._refusal():  # it may fail by now
                return refusal
            held.pop_all()
        self._begin()
        return ""

    def give_back(self, *, failed: bool) -> None:
        """The push has ended."""
        if self._is_silent():
            self._has_hung = True
        elif not failed:
            self._has_hung = False
        self._heard_at = self._clock()
        self._failing_until = self._clock() + (FAILING_SECONDS if failed else 0.0)
        self._is_trying = False
        self.under_way -= 1
        if self.under_way == 0:
            self._shares.busy.discard(self)
        for gate, _ in self._gates:
            gate.release()

    async def _wait(self, held: AsyncExitStack, seconds: float) -> str:
        self._waiting += 1
        try:
            return await self._pass_gates(held, seconds)
        finally:
            self._waiting -= 1

    async def _pass_gates(self, held: AsyncExitStack, seconds: float) -> str:
        ends = asyncio.get_running_loop().time() + seconds
        for gate, reason in self._gates:
            try:
                async with asyncio.timeout_at(ends):
                    await held.enter_async_context(gate)
            except TimeoutError:
                return reason
        return ""

    def _begin(self) -> None:
        if self.under_way == 0:
            self._heard_at = self._clock()
            self._shares.busy.add(self)
        self.under_way += 1
        self._is_trying = self._fails()

    def _refusal(self) -> str:
        if self._is_trying or (self._fails() and self.under_way > 0):
            return NOT_TAKEN
        if self.hangs and not self._shares.has_room_to_hang(self.owner_id):
            return TOO_MANY_HANG
        return ""

    def _fails(self) -> bool:
        return self._clock() < self._failing_until

    def _is_silent(self) -> bool:
        return self._clock() - self._heard_at >= HANGING_SECONDS
