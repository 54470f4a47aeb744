"""A clock that is set back holds up no topic and no message."""

import time
from collections.abc import Callable

import pytest

from bucketwire.errors import Unavailable
from bucketwire.metabase.base import Metabase, Queue
from bucketwire.metabase.values import TopicHealth
from bucketwire.pipeline import claims
from bucketwire.pipeline import clock as clock_module
from bucketwire.pipeline.claims import Claims
from bucketwire.pipeline.clock import FAR_SECONDS, SETTLE_SECONDS, ClockWatch
from clock import Clock
from factories import TOPIC_ARN, message

HOUR_AND_A_HALF = 5_400.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock(now=time.time())
    for module in (clock_module, claims):
        monkeypatch.setattr(module, "time", made)
    return made


@pytest.fixture
def watch(metabase: Metabase, clock: Clock) -> ClockWatch:  # noqa: ARG001 - it goes by that clock
    return ClockWatch(metabase.queue)


def later_ns(clock: Clock, seconds: float) -> int:
    return clock.time_ns() + int(seconds * 1e9)


def park(queue: Queue, due_at_ns: int = 0) -> None:
    queue.park([message("event-1", TOPIC_ARN)], due_at_ns=due_at_ns, attempts=1, reason="HTTP 503")


def is_due(queue: Queue, clock: Clock) -> bool:
    return bool(queue.due_topics(clock.time_ns()) and queue.take(TOPIC_ARN, clock.time_ns(), 1))


def look_for(watch: ClockWatch, clock: Clock, seconds: float, between: Callable[[], object] = list) -> None:
    """A look a second, with something in between."""
    for _ in range(int(seconds)):
        clock.pass_by(1)
        between()
        watch.look()


def test_a_topic_that_fails_is_tried_soon_after_the_clock_was_set_back(
    metabase: Metabase, watch: ClockWatch, clock: Clock
) -> None:
    park(metabase.queue)
    metabase.queue.report(TopicHealth(TOPIC_ARN, 4, later_ns(clock, 8), "HTTP 503"))
    clock.set_back(HOUR_AND_A_HALF)
    look_for(watch, clock, 8)
    assert is_due(metabase.queue, clock)
    assert metabase.queue.unhealthy()[TOPIC_ARN].failures == 4


def test_a_message_that_is_put_off_is_tried_soon_after_the_clock_was_set_back(
    metabase: Metabase, watch: ClockWatch, clock: Clock
) -> None:
    park(metabase.queue, later_ns(clock, 8))
    clock.set_back(HOUR_AND_A_HALF)
    look_for(watch, clock, 8)
    assert is_due(metabase.queue, clock)


def test_a_topic_whose_time_had_come_long_ago_is_tried_soon_after_the_clock_was_set_back(
    metabase: Metabase, watch: ClockWatch, clock: Clock
) -> None:
    park(metabase.queue)
    metabase.queue.report(TopicHealth(TOPIC_ARN, 4, later_ns(clock, -600), "HTTP 503"))
    clock.set_back(HOUR_AND_A_HALF)
    look_for(watch, clock, 8)
    assert is_due(metabase.queue, clock)


def test_a_topic_that_a_dead_worker_had_in_hand_is_tried_soon_after_the_clock_was_set_back(
    metabase: Metabase, watch: ClockWatch, clock: Clock
) -> None:
    park(metabase.queue)
    Claims(metabase.queue, 5.0).take([TopicHealth(TOPIC_ARN)])
    clock.set_back(HOUR_AND_A_HALF)
    look_for(watch, clock, 8)
    assert is_due(metabase.queue, clock)


def test_a_claim_that_is_kept_outlives_it_that_the_clock_is_set_back(
    metabase: Metabase, watch: ClockWatch, clock: Clock
) -> None:
    park(metabase.queue)
    kept = Claims(metabase.queue, 60.0)
    kept.take([TopicHealth(TOPIC_ARN)])
    clock.set_back(HOUR_AND_A_HALF)
    look_for(watch, clock, 20, kept.keep)
    kept.check(TOPIC_ARN)
    assert not is_due(metabase.queue, clock)


def test_waits_begun_after_that_are_kept(metabase: Metabase, watch: ClockWatch, clock: Clock) -> None:
    clock.set_back(HOUR_AND_A_HALF)
    look_for(watch, clock, SETTLE_SECONDS + 2)
    park(metabase.queue)
    metabase.queue.report(TopicHealth(TOPIC_ARN, 1, later_ns(clock, 3_600), "HTTP 429"))
    look_for(watch, clock, 60)
    assert not is_due(metabase.queue, clock)


@pytest.mark.parametrize("seconds", [0.0, -86_400.0, FAR_SECONDS - 1], ids=["none", "ahead", "a little back"])
def test_long_waits_are_kept_while_the_clock_is_not_set_back_far(
    metabase: Metabase, watch: ClockWatch, clock: Clock, seconds: float
) -> None:
    clock.set_back(seconds)
    watch.look()
    park(metabase.queue)
    metabase.queue.report(TopicHealth(TOPIC_ARN, 1, later_ns(clock, 3_600), "HTTP 429"))
    look_for(watch, clock, 60)
    assert not is_due(metabase.queue, clock)


def test_waits_are_ended_when_the_metabase_is_there_again(
    metabase: Metabase, watch: ClockWatch, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(_after_ns: int) -> None:
        raise Unavailable("away")

    park(metabase.queue)
    metabase.queue.report(TopicHealth(TOPIC_ARN, 4, later_ns(clock, 8), "HTTP 503"))
    clock.set_back(HOUR_AND_A_HALF)
    with monkeypatch.context() as broken:
        broken.setattr(metabase.queue, "hasten", away)
        look_for(watch, clock, 20)
    assert not is_due(metabase.queue, clock)
    look_for(watch, clock, SETTLE_SECONDS + 1)
    assert is_due(metabase.queue, clock)
