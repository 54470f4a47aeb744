"""That there was no answer is said once, and can be read again."""

import pytest

from bucketwire.publish.base import Retry, no_answer, no_answer_seconds


@pytest.mark.parametrize(("seconds", "reason"), [(0.25, "0.25 s"), (5.0, "5 s"), (30.0, "30 s"), (0, "0 s")])
def test_the_reason_says_how_long_an_answer_was_waited_for(seconds: float, reason: str) -> None:
    assert no_answer(seconds) == Retry(f"no answer within {reason}")
    assert no_answer_seconds(no_answer(seconds).reason) == seconds


@pytest.mark.parametrize("reason", ["", "HTTP 503", "no connection in time", "no answer within a day"])
def test_other_reasons_say_nothing_of_it(reason: str) -> None:
    assert no_answer_seconds(reason) is None
