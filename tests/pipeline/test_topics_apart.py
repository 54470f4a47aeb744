"""What is wrong with one topic is nothing to others: a publisher that raises, a destination that is slow."""

import dataclasses
import time
from collections.abc import Callable, Iterator, Sequence
from threading import Event

import pytest
import structlog

from bucketwire.config import PipelineSettings
from bucketwire.event.message import Message
from bucketwire.event.topic import Topic
from bucketwire.metabase.base import Metabase
from bucketwire.metabase.values import Slice, TopicHealth
from bucketwire.pipeline import pace
from bucketwire.pipeline.deliver import SliceDelivery
from bucketwire.pipeline.outcomes import Tally
from bucketwire.pipeline.redeliver import redeliver_topics
from bucketwire.pipeline.worker import Worker, make_worker
from bucketwire.publish import open_publisher
from bucketwire.publish.base import Outcome, Publisher
from bucketwire.publish.connections import Connections
from factories import topic
from pipeline.conftest import Subscribe, Write
from services.http_endpoint import HttpEndpoint, Mode
from wire import until

DEADLINE_SECONDS = 1.0
SLOW_SECONDS = 0.6
"""Within the deadline, but more than half of it."""

SECRET = "hunter2"
WRITES = 60
PROMPT_SECONDS = 10.0
PATIENCE_SECONDS = 60.0

Deliver = Callable[[], Tally]


@pytest.fixture
def worker(settings: PipelineSettings, metabase: Metabase) -> Iterator[Worker]:
    made = make_worker(dataclasses.replace(settings, deadline_seconds=DEADLINE_SECONDS), metabase)
    yield made
    made.threads.shutdown()


@pytest.fixture
def deliver(worker: Worker, metabase: Metabase) -> Deliver:
    """Deliver what was written since the last time."""
    start = metabase.changes.start()

    def act() -> Tally:
        nonlocal start
        end = metabase.changes.head(start, 100_000)
        changes = list(metabase.changes.read(Slice(start, end)))
        start = end
        return SliceDelivery(worker).run(changes)

    return act


def reasons(metabase: Metabase, arn: str) -> list[str]:
    return [each.reason for each in metabase.queue.pending(arn, after=0, limit=100)]


def end_pause(metabase: Metabase, arn: str) -> None:
    """Let the topic be tried again now."""
    health = metabase.queue.unhealthy()[arn]
    metabase.queue.report(TopicHealth(arn, health.failures, 0, health.reason))


class Raising:
    """A publisher with a mistake, in an error whose text nobody may see."""

    def publish(self, _: Sequence[Message], __: float) -> list[Outcome]:
        raise RuntimeError(SECRET)

    def close(self) -> None:
        """There is no connection."""


def open_or_fail(found: Topic, connections: Connections) -> Publisher:
    """Topics have the mistake in their attributes, as those of a tenant would."""
    match found.attributes.get("OpaqueData"):
        case "cannot be opened":
            raise RuntimeError(SECRET)
        case "cannot publish":
            return Raising()
    return open_publisher(found, connections)


@pytest.mark.parametrize("mistake", ["cannot be opened", "cannot publish"])
def test_a_publisher_that_raises_stops_no_other_and_its_messages_go_out_when_it_is_mended(
    worker: Worker,
    metabase: Metabase,
    endpoint: HttpEndpoint,
    subscribe: Subscribe,
    write: Write,
    deliver: Deliver,
    monkeypatch: pytest.MonkeyPatch,
    mistake: str,
) -> None:
    for publishers in (worker.publishers, worker.drain_publishers):
        monkeypatch.setattr(publishers, "_open", open_or_fail)
    bad = subscribe(endpoint.url, "bad", OpaqueData=mistake, retry_sleep_duration="0")
    subscribe(endpoint.url, "good")
    write(1, "bad")
    write(1, "good")
    with structlog.testing.capture_logs() as lines:
        assert deliver() == Tally(delivered=1, parked=1)
        end_pause(metabase, bad)
        assert redeliver_topics(worker, [bad]) == Tally(parked=1)
    assert reasons(metabase, bad) == ["unexpected RuntimeError"]
    assert metabase.queue.unhealthy()[bad].failures == 2
    told = [line for line in lines if line["event"] == "publisher_raised"]
    assert [(line["topic"], "raise RuntimeError" in line["traceback"]) for line in told] == [(bad, True)] * 2
    assert SECRET not in str(lines)
    metabase.topics.put(topic(endpoint.url, "bad"))
    end_pause(metabase, bad)
    time.sleep(0.2)  # the pause of the message
    assert redeliver_topics(worker, [bad]) == Tally(delivered=1)
    assert bad not in metabase.queue.unhealthy()


def test_a_call_that_raises_late_leaves_its_messages_to_the_retries(
    worker: Worker,
    metabase: Metabase,
    endpoint: HttpEndpoint,
    subscribe: Subscribe,
    write: Write,
    deliver: Deliver,
) -> None:
    arn = subscribe(endpoint.url)
    publisher = worker.publishers.get(topic(endpoint.url))
    release = Event()

    def publish(_: Sequence[Message], __: float) -> list[Outcome]:
        assert release.wait(30)
        raise RuntimeError(SECRET)

    publisher.publish = publish  # type: ignore[method-assign]
    write(2)
    assert deliver() == Tally(parked=2)
    release.set()
    until(lambda: not worker.late, 30, lambda: "it did not end")
    assert metabase.queue.unhealthy()[arn].reason == "unexpected RuntimeError"
    assert len(reasons(metabase, arn)) == 2


def test_a_path_that_no_file_can_have_stops_no_other_topic(
    worker: Worker,
    metabase: Metabase,
    endpoint: HttpEndpoint,
    subscribe: Subscribe,
    write: Write,
    deliver: Deliver,
) -> None:
    subscribe(endpoint.url, "good")
    reason = "the certificate or key files cannot be used"
    bad = subscribe("https://127.0.0.1:1/", "bad", **{"ca-location": "/" + "a" * 300})
    write(1, "bad")
    write(1, "good")
    assert deliver() == Tally(delivered=1, parked=1)
    assert reasons(metabase, bad) == [reason]
    assert metabase.queue.unhealthy()[bad].reason == reason
    metabase.topics.put(topic(endpoint.url, "bad"))
    end_pause(metabase, bad)
    assert redeliver_topics(worker, [bad]).delivered == 1


def write_and_deliver(write: Write, deliver: Deliver, numbers: Sequence[int]) -> list[Tally]:
    """One batch for each."""
    tallies = []
    for number in numbers:
        write(1, first=number)
        tallies.append(deliver())
    return tallies


def test_a_destination_that_is_slow_three_times_in_a_row_is_left_to_the_retries_until_it_is_quick(
    worker: Worker,
    metabase: Metabase,
    endpoint: HttpEndpoint,
    subscribe: Subscribe,
    write: Write,
    deliver: Deliver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    arn = subscribe(endpoint.url)
    endpoint.mode, endpoint.delay_seconds = Mode.SLOW, SLOW_SECONDS
    delivered, parked = Tally(delivered=1), Tally(parked=1)
    assert write_and_deliver(write, deliver, range(4)) == [delivered, delivered, delivered, parked]
    assert metabase.queue.unhealthy()[arn].reason == "answers slowly"

    assert drained(worker, metabase) == [arn], "it is due at once"
    assert metabase.queue.unhealthy()[arn].reason == "answers slowly", "the retries have found it slow too"
    endpoint.mode = Mode.OK
    assert write_and_deliver(write, deliver, [4]) == [parked]
    assert drained(worker, metabase) == [arn]
    assert arn in metabase.queue.unhealthy(), "one quick answer is not enough"
    monkeypatch.setattr(pace, "QUICK_SECONDS", 0.0)
    assert write_and_deliver(write, deliver, [5]) == [parked]
    assert drained(worker, metabase) == [arn]
    assert arn not in metabase.queue.unhealthy()
    assert write_and_deliver(write, deliver, [6]) == [delivered]
    assert (len(endpoint.events()), endpoint.attempts) == (7, 7)


def drained(worker: Worker, metabase: Metabase) -> list[str]:
    """The topics that were due, after they were served."""
    arns = metabase.queue.due_topics(time.time_ns())
    redeliver_topics(worker, arns)
    until(lambda: not worker.drains, 30, lambda: "it did not end")
    return arns


def test_a_slow_answer_now_and_then_changes_nothing(
    metabase: Metabase, endpoint: HttpEndpoint, subscribe: Subscribe, write: Write, deliver: Deliver
) -> None:
    subscribe(endpoint.url)
    for number, mode in enumerate([Mode.SLOW, Mode.SLOW, Mode.OK, Mode.SLOW, Mode.SLOW]):
        endpoint.mode, endpoint.delay_seconds = mode, SLOW_SECONDS
        assert write_and_deliver(write, deliver, [number]) == [Tally(delivered=1)]
    assert metabase.queue.unhealthy() == {}


def test_a_destination_that_is_always_slow_gets_everything_promptly_by_the_retries(
    run_pipeline: Callable[..., object],
    metabase: Metabase,
    endpoint: HttpEndpoint,
    other_endpoint: HttpEndpoint,
    subscribe: Subscribe,
    write: Write,
) -> None:
    """At five writes a second. It would be in time for a batch, but each would wait for it."""
    slow = subscribe(endpoint.url, "slow")
    subscribe(other_endpoint.url, "good")
    endpoint.mode, endpoint.delay_seconds = Mode.SLOW, SLOW_SECONDS
    run_pipeline(deadline_seconds=DEADLINE_SECONDS)
    write(1, "good")
    other_endpoint.wait_for(1, PATIENCE_SECONDS)
    parted = []
    for number in range(1, WRITES + 1):
        write(1, "slow", first=number)
        write(1, "good", first=number)
        time.sleep(0.2)
        parted.append(slow in metabase.queue.unhealthy())
    endpoint.wait_for(WRITES, PROMPT_SECONDS)
    other_endpoint.wait_for(1 + WRITES, PROMPT_SECONDS)
    assert endpoint.attempts == WRITES, "each message comes once"
    assert parted[-1]
    assert parted == sorted(parted), "while it is slow it does not come back"
