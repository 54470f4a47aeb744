"""When a message is tried again, and when no more."""

import pytest

from bucketwire.publish.backoff import SHORTEST_SECONDS, SPREAD, RetryPolicy, is_critical, policy_of
from factories import topic

LADDER = RetryPolicy()


@pytest.mark.parametrize(
    ("attempts", "seconds"), [(0, 1), (1, 1), (2, 2), (3, 4), (4, 8), (5, 8), (1_000, 8)]
)
def test_delays_double_up_to_eight_seconds_and_stay_there(attempts: int, seconds: float) -> None:
    assert LADDER.delay_seconds(attempts) == seconds


@pytest.mark.parametrize("attempts", [1, 2, 3, 4, 9])
def test_luck_lengthens_a_delay_within_the_spread(attempts: int) -> None:
    shortest = LADDER.delay_seconds(attempts)
    assert shortest < LADDER.delay_seconds(attempts, 0.5) < LADDER.delay_seconds(attempts, 1.0)
    assert LADDER.delay_seconds(attempts, 1.0) == pytest.approx(shortest * (1 + SPREAD))


def test_only_the_failure_behind_the_ladder_is_critical() -> None:
    assert [failures for failures in range(1, 20) if is_critical(failures)] == [5]


def test_a_topic_has_its_own_policy_and_the_servers_where_it_says_nothing() -> None:
    default = RetryPolicy(3600, 10, 2.0)
    assert policy_of(topic(), default) == default
    own = topic(time_to_live="60", max_retries="3", retry_sleep_duration="5")
    assert policy_of(own, default) == RetryPolicy(60, 3, 5.0)
    assert policy_of(topic(time_to_live="None", max_retries="0"), default) == RetryPolicy(3600, 0, 2.0)


def test_a_pause_of_ones_own_takes_the_place_of_the_ladder() -> None:
    assert {RetryPolicy(sleep_seconds=3).delay_seconds(attempts) for attempts in (1, 2, 9)} == {3}


def test_no_pause_at_all_is_still_a_short_one() -> None:
    assert RetryPolicy(sleep_seconds=0).delay_seconds(1) == SHORTEST_SECONDS


@pytest.mark.parametrize("luck", [0.0, 0.7])
def test_the_time_that_an_attempt_took_is_part_of_the_pause(luck: float) -> None:
    assert LADDER.delay_seconds(5, luck, 5.0) == pytest.approx(LADDER.delay_seconds(5, luck) - 5)
    assert LADDER.delay_seconds(1, luck, 5.0) == pytest.approx(SHORTEST_SECONDS * (1 + SPREAD * luck))


def test_nothing_sleeps_past_its_time_to_live() -> None:
    assert RetryPolicy(time_to_live_seconds=4, sleep_seconds=600).delay_seconds(1) == 4


def test_there_is_an_end_to_retries_only_where_one_is_set() -> None:
    assert [RetryPolicy().ends, RetryPolicy(1).ends, RetryPolicy(0, 1).ends] == [False, True, True]
