"""When a destination is left alone, after a call with outcomes of many kinds."""

import dataclasses
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from bucketwire.config import PipelineSettings
from bucketwire.event.message import Message
from bucketwire.metabase.base import Metabase
from bucketwire.metabase.values import TopicHealth
from bucketwire.pipeline.deliver import SliceDelivery
from bucketwire.pipeline.outcomes import Tally, sort_outcomes
from bucketwire.pipeline.redeliver import TopicDrain
from bucketwire.pipeline.worker import Worker, make_worker
from bucketwire.publish.base import Delivered, Outcome, Rejected, Retry
from bucketwire.publish.connections import Connections
from bucketwire.publish.publishers import Publishers
from factories import TOPIC_ARN, message, topic
from written import written_changes

OK, REFUSED = Delivered(), Rejected("HTTP 413")
FAILED, OTHER = Retry("HTTP 500"), Retry("HTTP 404")
PAUSE, LONG_PAUSE = Retry("HTTP 429", 7), Retry("HTTP 503", 600)
CALL_SECONDS = 5.0


def failure(outcomes: list[Outcome], *, ordered: bool = False) -> Retry | None:
    messages = [message(f"event-{number}") for number, _ in enumerate(outcomes)]
    return sort_outcomes(messages, outcomes, 0).failure(ordered=ordered)


@pytest.mark.parametrize(
    ("outcomes", "found"),
    [
        ([OK], None),
        ([REFUSED], None),
        ([OK, FAILED], None),
        ([FAILED, OTHER], FAILED),
        ([REFUSED, OTHER], OTHER),
        ([OK, PAUSE], PAUSE),
        ([OK, FAILED, PAUSE, LONG_PAUSE], LONG_PAUSE),
        ([FAILED, PAUSE], PAUSE),
        ([LONG_PAUSE, PAUSE, FAILED], LONG_PAUSE),
    ],
)
def test_a_destination_is_left_alone_when_nothing_got_through_or_it_asked_for_it(
    outcomes: list[Outcome], found: Retry | None
) -> None:
    assert failure(outcomes) == found


@pytest.mark.parametrize(
    ("outcomes", "found"),
    [([OK], None), ([OK, FAILED, OTHER], FAILED), ([OK, FAILED, LONG_PAUSE, PAUSE], LONG_PAUSE)],
)
def test_where_order_matters_any_that_is_to_be_tried_again_is_reason_enough(
    outcomes: list[Outcome], found: Retry | None
) -> None:
    assert failure(outcomes, ordered=True) == found


def test_all_are_tallied_and_parked_though_the_destination_is_left_alone() -> None:
    outcomes = [OK, FAILED, PAUSE, REFUSED, PAUSE]
    messages = [message(f"event-{number}") for number, _ in enumerate(outcomes)]
    found = sort_outcomes(messages, outcomes, 0)
    assert found.together(ordered=False) == [(FAILED, messages[1:2]), (PAUSE, [messages[2], messages[4]])]
    assert found.tally() == Tally(delivered=1, parked=3, buried=1)


class Asking:
    """A destination that takes the first message of each call and asks for a pause."""

    def publish(self, messages: Sequence[Message], _: float) -> list[Outcome]:
        return [OK, *[LONG_PAUSE] * (len(messages) - 1)]

    def close(self) -> None:
        """There is no connection."""


@pytest.fixture
def worker(metabase: Metabase, tmp_path: Path) -> Iterator[Worker]:
    opener: Callable[..., Any] = lambda *_: Asking()  # noqa: E731
    publishers = Publishers(opener, Connections())
    made = make_worker(PipelineSettings(f"sqlite:///{tmp_path}/metabase.db", "aws", tmp_path), metabase)
    yield dataclasses.replace(made, publishers=publishers, drain_publishers=publishers)
    for threads in (made.threads, made.attempts, made.drain_threads):
        threads.shutdown()


def assert_pauses(metabase: Metabase, waiting: int) -> None:
    health = metabase.queue.unhealthy()[TOPIC_ARN]
    assert (health.failures, health.reason) == (1, LONG_PAUSE.reason)
    assert health.retry_at_ns > time.time_ns() + 500 * 10**9
    assert metabase.queue.due_topics(time.time_ns()) == []
    assert len(metabase.queue.pending(TOPIC_ARN, after=0, limit=100)) == waiting


def test_a_topic_that_asks_for_a_pause_gets_it_in_a_batch_though_it_took_a_message(
    worker: Worker, metabase: Metabase
) -> None:
    changes = written_changes(metabase, "abc")
    assert SliceDelivery(worker).run(changes) == Tally(delivered=1, parked=2)
    assert_pauses(metabase, 2)


def test_and_in_a_drain_that_goes_on_no_longer(worker: Worker, metabase: Metabase) -> None:
    metabase.topics.put(topic())
    metabase.queue.park([message(event_id) for event_id in "abc"], due_at_ns=0, attempts=1, reason="HTTP 503")
    worker.router.refresh()
    (health,) = worker.claims.take([TopicHealth(TOPIC_ARN)])
    assert TopicDrain(worker, health, CALL_SECONDS).run() == Tally(delivered=1, parked=2)
    worker.claims.drop(TOPIC_ARN)
    assert_pauses(metabase, 2)
