"""Who may push to a topic now."""

import asyncio

import msgspec
import pytest

from bucketwire.gateway import push_turns
from bucketwire.gateway.push import THREADS
from bucketwire.gateway.push_turns import (
    FAILING_SECONDS,
    HANGING_SECONDS,
    HUNG_KEPT_SECONDS,
    NOT_TAKEN,
    TOO_MANY,
    TOO_MANY_HANG,
    TOO_MANY_OF_ALL,
    TOO_MANY_OF_OWNER,
    UNDER_WAY,
    Shares,
    Turns,
)
from factories import topic

KEPT = 64
MANY = 4 * KEPT


class Clock:
    """A time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def turns_of(shares: Shares, name: str = "videos", owner: str = "owner-1") -> Turns:
    return shares.turns(msgspec.structs.replace(topic(name=name), owner_id=owner))


async def failing(clock: Clock) -> Turns:
    turns = turns_of(Shares(THREADS, clock))
    assert await turns.take(60) == ""
    turns.give_back(failed=True)
    return turns


def test_a_topic_has_so_many_pushes_under_way_and_the_next_waits_until_its_deadline() -> None:
    async def scene() -> None:
        turns = turns_of(Shares(THREADS))
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
        turns = turns_of(Shares(THREADS, Clock()))
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


async def hung(shares: Shares, clock: Clock, name: str, owner: str) -> Turns:
    """A topic that has left its last push without an answer, and has not failed lately."""
    turns = turns_of(shares, name, owner)
    assert await turns.take(60) == ""
    clock.now += HANGING_SECONDS
    turns.give_back(failed=True)
    clock.now += FAILING_SECONDS
    return turns


def test_an_owner_has_a_quarter_of_the_threads_and_its_next_push_waits_for_one() -> None:
    async def scene() -> None:
        shares = Shares(THREADS)
        topics = [turns_of(shares, name) for name in "abcdef"]
        taken = [await topics[number % 6].take(60) for number in range(THREADS // 4)]
        assert taken == [""] * (THREADS // 4)
        assert await topics[0].take(0) == TOO_MANY_OF_OWNER
        assert await turns_of(shares, "other", "owner-2").take(0) == ""
        waiting = asyncio.ensure_future(topics[0].take(60))
        await asyncio.sleep(0)
        topics[1].give_back(failed=False)
        assert await waiting == ""

    asyncio.run(scene())


def test_when_all_threads_are_in_use_the_next_push_waits_and_a_refused_one_keeps_nothing() -> None:
    async def scene() -> None:
        shares = Shares(THREADS)
        busy = [turns_of(shares, f"{number}", f"owner-{number % 4}") for number in range(THREADS)]
        assert [await turns.take(60) for turns in busy] == [""] * THREADS
        for _ in range(2 * UNDER_WAY):
            assert await turns_of(shares, "other", "owner-5").take(0) == TOO_MANY_OF_ALL
        busy[0].give_back(failed=False)
        assert await turns_of(shares, "other", "owner-5").take(0) == ""

    asyncio.run(scene())


def test_topics_that_hang_have_a_quarter_of_the_threads_together_and_others_of_them_are_refused_at_once() -> (
    None
):
    async def scene() -> None:
        clock = Clock()
        shares = Shares(THREADS, clock)
        silent = [await hung(shares, clock, f"{number}", f"owner-{number}") for number in range(THREADS)]
        taken = [await turns.take(60) for turns in silent]
        most = THREADS // 4
        assert taken == [""] * most + [TOO_MANY_HANG] * (THREADS - most)
        assert await turns_of(shares, "well", "owner-1").take(0) == ""

    asyncio.run(scene())


def test_an_owner_has_half_of_that_and_leaves_the_rest_to_others() -> None:
    async def scene() -> None:
        clock = Clock()
        shares = Shares(THREADS, clock)
        silent = [await hung(shares, clock, f"{number}", "owner-1") for number in range(THREADS // 4)]
        other = await hung(shares, clock, "other", "owner-2")
        half = THREADS // 8
        assert [await turns.take(60) for turns in silent] == [""] * half + [TOO_MANY_HANG] * half
        assert await other.take(60) == ""
        assert await turns_of(shares, "well", "owner-1").take(0) == ""

    asyncio.run(scene())


def test_what_an_owners_new_topics_hang_with_takes_no_room_from_others() -> None:
    async def scene() -> None:
        clock = Clock()
        shares = Shares(THREADS, clock)
        other = await hung(shares, clock, "other", "owner-2")
        for number in range(THREADS // 4):
            assert await turns_of(shares, f"new-{number}").take(60) == ""
        clock.now += HANGING_SECONDS
        assert await turns_of(shares, "new-0").take(60) == TOO_MANY_HANG
        assert await other.take(60) == ""

    asyncio.run(scene())


def test_a_topic_that_takes_a_push_in_time_hangs_no_more() -> None:
    async def scene() -> None:
        clock = Clock()
        turns = await hung(Shares(THREADS, clock), clock, "videos", "owner-1")
        assert turns.hangs
        await turns.take(60)
        turns.give_back(failed=True)
        assert turns.hangs
        await turns.take(60)
        turns.give_back(failed=False)
        assert not turns.hangs

    asyncio.run(scene())


def test_who_stops_waiting_keeps_nothing() -> None:
    async def scene() -> None:
        shares = Shares(THREADS)
        topics = [turns_of(shares, f"{number}") for number in range(THREADS // 4)]
        for turns in topics:
            await turns.take(60)
        gone = asyncio.ensure_future(topics[0].take(60))
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.wait([gone])
        topics[1].give_back(failed=False)
        assert await topics[0].take(0) == ""

    asyncio.run(scene())


@pytest.fixture
def few_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """So few topics are all remembered that a test can have many more."""
    monkeypatch.setattr(push_turns, "KEPT", KEPT)


async def push_to_many(shares: Shares, *, failed: bool = False) -> None:
    """One push each to many new topics, each of an owner of its own."""
    for number in range(MANY):
        turns = turns_of(shares, f"new-{number}", f"new-{number}")
        assert await turns.take(60) == ""
        turns.give_back(failed=failed)


@pytest.mark.usefixtures("few_kept")
def test_topics_and_owners_that_come_and_go_are_forgotten() -> None:
    async def scene() -> None:
        shares = Shares(THREADS, Clock())
        await push_to_many(shares)
        assert len(shares._turns) <= KEPT
        assert len(shares._free_of_owner) <= KEPT

    asyncio.run(scene())


@pytest.mark.usefixtures("few_kept")
def test_a_topic_that_fails_or_hangs_is_remembered_until_that_is_long_ago() -> None:
    async def scene() -> None:
        clock = Clock()
        shares = Shares(THREADS, clock)
        hanging = await hung(shares, clock, "hanging", "owner-1")
        fails = turns_of(shares, "fails")
        await fails.take(60)
        fails.give_back(failed=True)
        await push_to_many(shares)
        assert turns_of(shares, "hanging") is hanging
        assert turns_of(shares, "fails") is fails
        clock.now += HUNG_KEPT_SECONDS
        await push_to_many(shares)
        assert turns_of(shares, "hanging") is not hanging
        assert turns_of(shares, "fails") is not fails

    asyncio.run(scene())


@pytest.mark.usefixtures("few_kept")
def test_many_topics_that_fail_are_forgotten_too_when_they_do_no_more() -> None:
    async def scene() -> None:
        clock = Clock()
        shares = Shares(THREADS, clock)
        await push_to_many(shares, failed=True)
        assert len(shares._turns) == MANY
        clock.now += FAILING_SECONDS
        for number in range(KEPT + 1):
            turns_of(shares, f"last-{number}")
        assert len(shares._turns) <= KEPT + 1

    asyncio.run(scene())


@pytest.mark.usefixtures("few_kept")
def test_a_topic_that_is_pushed_to_or_waited_for_is_not_forgotten_nor_is_its_owner() -> None:
    async def scene() -> None:
        shares = Shares(THREADS, Clock())
        busy = [turns_of(shares, f"{number}") for number in range(THREADS // 4)]
        for turns in busy:
            await turns.take(60)
        waited_for = turns_of(shares, "waited-for")
        waiting = asyncio.ensure_future(waited_for.take(60))
        await asyncio.sleep(0)
        await push_to_many(shares)
        assert turns_of(shares, "waited-for") is waited_for
        assert [turns_of(shares, f"{number}") for number in range(THREADS // 4)] == busy
        assert await turns_of(shares, "one-more").take(0) == TOO_MANY_OF_OWNER
        busy[0].give_back(failed=False)
        assert await waiting == ""

    asyncio.run(scene())
