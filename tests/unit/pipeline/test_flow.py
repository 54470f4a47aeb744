"""How many messages go out at once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bucketwire.pipeline.flow import FIRST_MESSAGES, MOST_MESSAGES, UNDER_WAY, Flow

DEADLINE = 5.0


def calls(one_after_the_other: float, at_once: float, count: int = 12, flow: Flow | None = None) -> list[int]:
    """The messages of the next calls, to a destination that takes so long for each and for a call."""
    flow = flow or Flow(1)
    found = []
    for _ in range(count):
        tried = flow.messages
        found.append(tried)
        seconds = at_once * -(-tried // UNDER_WAY) + one_after_the_other * tried
        in_time = tried if seconds <= DEADLINE else int(tried * DEADLINE / seconds)
        flow = flow.after(tried, in_time, min(seconds, DEADLINE), DEADLINE)
    return found


def test_a_quick_destination_soon_gets_as_many_as_there_may_be() -> None:
    assert calls(0.0001, 0.01)[:10] == [1, 2, 4, 8, 16, 32, 64, 128, 256, 500]
    assert calls(0.0001, 0.01, flow=Flow())[:4] == [FIRST_MESSAGES, 200, 400, MOST_MESSAGES]


@pytest.mark.parametrize("seconds", [2.2, 2.6, 3.2, 3.9])
def test_a_slow_one_that_works_on_many_at_once_gets_many(seconds: float) -> None:
    found = calls(0.0, seconds)
    assert found[:7] == [1, 2, 4, 8, 16, 32, UNDER_WAY]
    assert max(found) <= 2 * UNDER_WAY, "none is sent again"


@pytest.mark.parametrize("seconds", [0.1, 0.3, 0.5, 1.2])
def test_one_that_works_on_them_in_turn_gets_no_more_than_it_can_answer(seconds: float) -> None:
    found = calls(seconds, 0.0)
    assert max(found) * seconds <= DEADLINE, "none is sent again"
    assert max(found) * seconds >= DEADLINE / 4


def test_one_that_needs_much_of_the_time_for_each_is_asked_for_two_once() -> None:
    assert calls(3.2, 0.0) == [1, 2, *[1] * 10]


def test_one_that_needs_almost_all_of_the_time_gets_one_at_a_time() -> None:
    assert calls(4.5, 0.0) == calls(0.0, 4.5) == [1] * 12


def test_what_is_refused_at_once_says_nothing_of_how_many_there_may_be() -> None:
    flow = Flow(400).after(400, 3, 0.1, DEADLINE)
    assert flow.messages == 3
    assert calls(0.0001, 0.01, flow=flow)[-1] == MOST_MESSAGES


def test_a_call_that_was_not_full_says_nothing() -> None:
    flow = Flow(4)
    assert flow.after(3, 3, 0.1, DEADLINE) is flow


@given(
    st.lists(st.tuples(st.integers(0, 600), st.floats(0, 1), st.floats(0, 6)), max_size=30),
    st.integers(1, MOST_MESSAGES),
)
def test_there_is_always_one_and_never_too_many(history: list[tuple[int, float, float]], first: int) -> None:
    flow = Flow(first)
    for there, part, seconds in history:
        tried = min(there, flow.messages)
        if tried:
            flow = flow.after(tried, int(tried * part), seconds, DEADLINE)
        assert 1 <= flow.messages <= flow.most <= MOST_MESSAGES
