"""The ladder of delays between attempts."""

import pytest

from bucketwire.publish.backoff import SPREAD, delay_seconds


@pytest.mark.parametrize(
    ("attempts", "seconds"), [(0, 1), (1, 1), (2, 2), (3, 4), (4, 8), (5, 8), (1_000, 8)]
)
def test_delays_double_up_to_eight_seconds_and_stay_there(attempts: int, seconds: float) -> None:
    assert delay_seconds(attempts) == seconds


@pytest.mark.parametrize("attempts", [1, 2, 3, 4, 9])
def test_luck_lengthens_a_delay_within_the_spread(attempts: int) -> None:
    shortest = delay_seconds(attempts)
    assert shortest < delay_seconds(attempts, 0.5) < delay_seconds(attempts, 1.0)
    assert delay_seconds(attempts, 1.0) == pytest.approx(shortest * (1 + SPREAD))
