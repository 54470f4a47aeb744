"""When a destination counts as slow."""

import pytest

from bucketwire.metabase.values import TopicHealth
from bucketwire.pipeline import pace
from clock import Clock

DEADLINE_SECONDS = 0.25


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(pace, "time", made)
    return made


@pytest.mark.parametrize(
    ("seconds", "worked", "messages", "is_slow"),
    [
        (0.12, 0.0, 1, False),
        (0.2, 0.0, 1, True),
        (0.2, 0.0, 500, False),
        (0.4, 0.0, 500, True),
        (0.2, 0.1, 1, False),
        (0.2, 0.05, 1, True),
    ],
)
def test_slow_is_more_than_half_the_deadline_and_the_pace_without_our_own_work(
    clock: Clock, seconds: float, worked: float, messages: int, *, is_slow: bool
) -> None:
    waiting = pace.Wait()
    clock.now += seconds
    clock.worked += worked
    assert waiting.is_slow(messages, DEADLINE_SECONDS) is is_slow


def test_a_topic_is_quick_again_a_while_after_its_last_slow_answer(clock: Clock) -> None:
    slow_at_ns = pace.slow_at_ns(pace.slow_health("arn", clock.time_ns()))
    clock.now += pace.QUICK_SECONDS - 1
    assert not pace.is_quick_again(slow_at_ns)
    clock.now += 1
    assert pace.is_quick_again(slow_at_ns)


@pytest.mark.parametrize(
    "health", [TopicHealth("arn"), TopicHealth("arn", 1, 5, "HTTP 503"), pace.slow_health("arn")]
)
def test_others_need_not_wait(clock: Clock, health: TopicHealth) -> None:
    clock.now = pace.QUICK_SECONDS
    assert pace.is_quick_again(pace.slow_at_ns(health))


def test_a_claim_that_has_outlived_its_process_does_not_reach_into_the_future(clock: Clock) -> None:
    claimed = pace.slow_health("arn", clock.time_ns() + 10**12)
    assert pace.slow_at_ns(claimed) == clock.time_ns()
