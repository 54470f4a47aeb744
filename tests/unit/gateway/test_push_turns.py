"""Who may push to a topic now."""

import asyncio

from bucketwire.gateway.push_turns import FAILING_SECONDS, NOT_TAKEN, TOO_MANY, UNDER_WAY, Turns


class Clock:
    """A time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


async def failing(clock: Clock) -> Turns:
    turns = Turns(clock)
    assert await turns.take(60) == ""
    turns.give_back(failed=True)
    return turns


def test_a_topic_has_so_many_pushes_under_way_and_the_next_waits_until_its_deadline() -> None:
    async def scene() -> None:
        turns = Turns()
        assert [await turns.take(60) for _ in range(UNDER_WAY)] == [""] * UNDER_WAY
        assert await turns.take(0) == TOO_MANY
        waiting = asyncio.ensure_future(turns.take(60))
        turns.give_back(failed=False)
        assert await waiting == ""

    asyncio.run(scene())


def test_a_topic_that_failed_is_tried_by_one_push_and_others_are_refused_at_once() -> None:
    async def scene() -> None:
        turns = await failing(Clock())
        assert await turns.take(60) == ""
        assert await turns.take(60) == NOT_TAKEN
        turns.give_back(failed=True)
        assert await turns.take(60) == ""

    asyncio.run(scene())


def test_a_failure_refuses_all_who_wait() -> None:
    async def scene() -> None:
        turns = Turns(Clock())
        for _ in range(UNDER_WAY):
            await turns.take(60)
        waiting = [asyncio.ensure_future(turns.take(60)) for _ in range(5)]
        await asyncio.sleep(0)
        turns.give_back(failed=True)
        assert await asyncio.gather(*waiting) == [NOT_TAKEN] * 5

    asyncio.run(scene())


def test_a_push_that_is_taken_opens_the_topic_again() -> None:
    async def scene() -> None:
        turns = await failing(Clock())
        await turns.take(60)
        turns.give_back(failed=False)
        assert [await turns.take(60) for _ in range(UNDER_WAY)] == [""] * UNDER_WAY

    asyncio.run(scene())


def test_a_failure_is_forgotten_but_not_while_a_push_still_tries() -> None:
    async def scene() -> None:
        clock = Clock()
        turns = await failing(clock)
        await turns.take(60)
        clock.now += FAILING_SECONDS
        assert await turns.take(60) == NOT_TAKEN
        turns.give_back(failed=True)
        clock.now += FAILING_SECONDS
        assert [await turns.take(60) for _ in range(UNDER_WAY)] == [""] * UNDER_WAY

    asyncio.run(scene())
