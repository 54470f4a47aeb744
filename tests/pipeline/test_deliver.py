"""Delivery of a slice and of parked messages, without Spark around it."""

import dataclasses
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest

from bucketwire.config import PipelineSettings
from bucketwire.errors import Unavailable
from bucketwire.event.message import Message
from bucketwire.metabase.base import Metabase
from bucketwire.metabase.values import Letters, Slice, TopicHealth
from bucketwire.pipeline.deliver import SliceDelivery
from bucketwire.pipeline.redeliver import redeliver_topics
from bucketwire.pipeline.worker import Worker, make_worker
from bucketwire.publish.base import Outcome, Rejected
from factories import policy_for, topic
from pipeline.conftest import Subscribe, Write
from services.http_endpoint import HttpEndpoint, Mode
from wire import until as wait_until

FAR_NS = 10**19 // 2


@pytest.fixture
def worker(settings: PipelineSettings, metabase: Metabase) -> Iterator[Worker]:
    made = make_worker(settings, metabase)
    yield made
    made.threads.shutdown()


def until(condition: Callable[[], object]) -> None:
    wait_until(lambda: bool(condition()), 30, lambda: "it did not happen in time")


def all_changes(metabase: Metabase) -> list[bytes]:
    start = metabase.changes.start()
    return list(metabase.changes.read(Slice(start, metabase.changes.head(start, 100_000))))


def test_a_slice_that_runs_twice_sends_the_same_bytes_and_ids(
    worker: Worker, metabase: Metabase, endpoint: HttpEndpoint, subscribe: Subscribe, write: Write
) -> None:
    subscribe(endpoint.url)
    write(5)
    for _ in range(2):
        assert SliceDelivery(worker).run(all_changes(metabase)).delivered == 5
    sent = [(event.headers["bucketwire-event-id"], event.body) for event in endpoint.events()]
    assert sorted(sent[:5]) == sorted(sent[5:])
    assert len(set(sent)) == 5


def test_a_slice_that_is_repeated_after_a_crash_sends_only_what_was_not_delivered(
    worker: Worker,
    settings: PipelineSettings,
    metabase: Metabase,
    endpoint: HttpEndpoint,
    subscribe: Subscribe,
    write: Write,
) -> None:
    subscribe(endpoint.url)
    write(3)
    SliceDelivery(worker).run(all_changes(metabase))
    write(2, first=3)
    fresh = make_worker(settings, metabase)
    fresh.receipts.read()
    assert SliceDelivery(fresh).run(all_changes(metabase)).delivered == 2
    fresh.threads.shutdown()
    assert len({event.headers["bucketwire-event-id"] for event in endpoint.events()}) == 5
    assert len(endpoint.events()) == 5


def test_what_was_only_parked_is_not_taken_for_delivered(
    worker: Worker,
    settings: PipelineSettings,
    metabase: Metabase,
    endpoint: HttpEndpoint,
    subscribe: Subscribe,
    write: Write,
) -> None:
    arn = subscribe(endpoint.url)
    endpoint.mode = Mode.REFUSE
    write(3)
    assert SliceDelivery(worker).run(all_changes(metabase)).parked == 3
    metabase.queue.report(TopicHealth(arn, 0, 0, ""))
    endpoint.mode = Mode.OK
    fresh = make_worker(settings, metabase)
    fresh.receipts.read()
    assert SliceDelivery(fresh).run(all_changes(metabase)).delivered == 3
    fresh.threads.shutdown()


def test_a_late_answer_still_counts_and_nothing_is_sent_twice(
    worker: Worker, metabase: Metabase, endpoint: HttpEndpoint, subscribe: Subscribe, write: Write
) -> None:
    arn = subscribe(endpoint.url)
    endpoint.mode, endpoint.delay_seconds = Mode.SLOW, 1.5
    write(3)
    tally = SliceDelivery(worker).run(all_changes(metabase))
    assert (tally.delivered, tally.parked) == (0, 3), "the batch has not waited"
    assert redeliver_topics(worker, metabase.queue.due_topics(time.time_ns())).messages == 0
    until(lambda: not worker.late)
    assert metabase.queue.pending(arn, after=0, limit=10) == []
    assert endpoint.attempts == 3
    assert metabase.queue.unhealthy()[arn].reason == "answers slowly"


def test_a_call_that_fails_late_leaves_its_messages_to_the_retries(
    worker: Worker, metabase: Metabase, endpoint: HttpEndpoint, subscribe: Subscribe, write: Write
) -> None:
    arn = subscribe(endpoint.url)
    endpoint.mode = Mode.HANG
    write(3)
    assert SliceDelivery(worker).run(all_changes(metabase)).parked == 3
    endpoint.mode = Mode.REFUSE  # ends the connections that hang
    until(lambda: not worker.late)
    assert len(metabase.queue.pending(arn, after=0, limit=10)) == 3
    assert metabase.queue.unhealthy()[arn].failures == 1


def test_of_late_messages_none_is_tried_again_while_its_call_goes_on(
    worker: Worker, metabase: Metabase, endpoint: HttpEndpoint, subscribe: Subscribe, write: Write
) -> None:
    arn = subscribe(endpoint.url)
    endpoint.mode = Mode.HANG
    write(2)
    SliceDelivery(worker).run(all_changes(metabase))
    metabase.queue.report(TopicHealth(arn, 1, 0, "another call has answered"))
    assert metabase.queue.due_topics(time.time_ns()) == []
    endpoint.mode = Mode.OK
    until(lambda: not worker.late)


def test_topics_that_hang_in_hundreds_leave_threads_for_others(
    worker: Worker,
    metabase: Metabase,
    endpoint: HttpEndpoint,
    subscribe: Subscribe,
    write: Write,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("bucketwire.pipeline.attempt.MOST_LATE", 0)
    subscribe(endpoint.url)
    endpoint.mode = Mode.HANG
    write(2)
    began = time.monotonic()
    assert SliceDelivery(worker).run(all_changes(metabase)).parked == 2
    until(lambda: not worker.late)
    assert time.monotonic() - began < worker.settings.retry_deadline_seconds, "it was given up early"


def test_a_call_that_never_began_is_no_fault_of_its_topic(
    settings: PipelineSettings, metabase: Metabase, endpoint: HttpEndpoint, subscribe: Subscribe, write: Write
) -> None:
    arn = subscribe(endpoint.url)
    release = threading.Event()
    worker = dataclasses.replace(make_worker(settings, metabase), attempts=ThreadPoolExecutor(1))
    worker.attempts.submit(release.wait, 30)
    write(2)
    assert SliceDelivery(worker).run(all_changes(metabase)).parked == 2
    release.set()
    assert metabase.queue.unhealthy() == {}
    assert len(metabase.queue.take(arn, time.time_ns(), 10)) == 2
    assert endpoint.attempts == 0


def test_what_is_refused_late_becomes_a_dead_letter(
    worker: Worker, metabase: Metabase, endpoint: HttpEndpoint, subscribe: Subscribe, write: Write
) -> None:
    arn = subscribe(endpoint.url)
    publisher = worker.publishers.get(worker.router.topic(arn) or topic())
    release = threading.Event()

    def refuse(messages: Sequence[Message], _: float) -> list[Outcome]:
        assert release.wait(30)
        return [Rejected("HTTP 410")] * len(messages)

    publisher.publish = refuse  # type: ignore[method-assign]
    write(2)
    assert SliceDelivery(worker).run(all_changes(metabase)).parked == 2
    release.set()
    until(lambda: not worker.late)
    assert metabase.queue.pending(arn, after=0, limit=10) == []
    assert [letter.reason for letter in metabase.queue.letters(Letters(), 10)] == ["HTTP 410"] * 2


def test_an_unhealthy_topic_is_not_called(
    worker: Worker, metabase: Metabase, endpoint: HttpEndpoint, subscribe: Subscribe, write: Write
) -> None:
    arn = subscribe(endpoint.url)
    metabase.queue.report(TopicHealth(arn, 3, FAR_NS, "HTTP 503"))
    write(4)
    tally = SliceDelivery(worker).run(all_changes(metabase))
    assert (tally.delivered, tally.parked) == (0, 4)
    assert endpoint.attempts == 0
    assert len(metabase.queue.take(arn, FAR_NS, 10)) == 4


def test_messages_for_a_topic_that_is_gone_are_buried(
    worker: Worker, metabase: Metabase, endpoint: HttpEndpoint, subscribe: Subscribe, write: Write
) -> None:
    arn = subscribe(endpoint.url)
    write(1)
    metabase.topics.delete(arn)
    write(1, first=1)
    tally = SliceDelivery(worker).run(all_changes(metabase))
    assert (tally.delivered, tally.buried) == (1, 1)
    assert metabase.queue.dead_letters() == 1


def test_a_topic_that_is_made_anew_gets_what_waits_and_what_was_written_meanwhile(
    worker: Worker,
    metabase: Metabase,
    endpoint: HttpEndpoint,
    other_endpoint: HttpEndpoint,
    subscribe: Subscribe,
    write: Write,
) -> None:
    arn = subscribe(endpoint.url)
    metabase.queue.report(TopicHealth(arn, 1, 0, "HTTP 503"))
    write(1)
    assert SliceDelivery(worker).run(all_changes(metabase)).parked == 1
    metabase.topics.delete(arn)
    write(1, first=1)
    metabase.topics.put(topic(other_endpoint.url))
    assert redeliver_topics(worker, [arn]).delivered == 1
    assert SliceDelivery(worker).run(all_changes(metabase)).delivered == 2
    assert (endpoint.attempts, metabase.queue.dead_letters()) == (0, 0)


def test_what_a_destination_will_never_take_is_buried(
    worker: Worker, metabase: Metabase, endpoint: HttpEndpoint, subscribe: Subscribe, write: Write
) -> None:
    arn = subscribe(endpoint.url)
    endpoint.mode, endpoint.status = Mode.REFUSE, 413
    write(2)
    assert SliceDelivery(worker).run(all_changes(metabase)).buried == 2
    assert arn not in metabase.queue.unhealthy()


def test_a_topic_that_takes_nothing_uses_its_deadline_once_in_a_slice(
    worker: Worker,
    metabase: Metabase,
    endpoint: HttpEndpoint,
    subscribe: Subscribe,
    write: Write,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    arn = subscribe(endpoint.url)
    endpoint.mode = Mode.HANG
    write(30)
    calls = count_calls(worker, metabase, arn, monkeypatch)
    monkeypatch.setattr("bucketwire.pipeline.deliver.MESSAGES_AT_ONCE", 10)
    monkeypatch.setattr("bucketwire.pipeline.deliver.MESSAGES_A_CALL", 5)
    assert SliceDelivery(worker).run(all_changes(metabase)).parked == 30
    assert calls == [5]


def count_calls(worker: Worker, metabase: Metabase, arn: str, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    found = metabase.topics.get(arn)
    assert found is not None
    publisher = worker.publishers.get(found)
    publish = publisher.publish
    calls: list[int] = []

    def counted(messages: Sequence[Message], deadline_seconds: float) -> list[object]:
        calls.append(len(messages))
        return list(publish(messages, deadline_seconds))

    monkeypatch.setattr(publisher, "publish", counted)
    return calls


def test_a_metabase_that_cannot_park_fails_the_slice(
    worker: Worker,
    metabase: Metabase,
    endpoint: HttpEndpoint,
    subscribe: Subscribe,
    write: Write,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    subscribe(endpoint.url)
    endpoint.mode = Mode.REFUSE
    write(1)

    def refuse(*_: object, **__: object) -> None:
        raise Unavailable("the disk is full")

    monkeypatch.setattr(metabase.queue, "park", refuse)
    with pytest.raises(Unavailable):
        SliceDelivery(worker).run(all_changes(metabase))


def test_an_unhealthy_topic_is_probed_with_one_message(
    worker: Worker, metabase: Metabase, endpoint: HttpEndpoint, subscribe: Subscribe, write: Write
) -> None:
    arn = subscribe(endpoint.url)
    metabase.queue.report(TopicHealth(arn, 1, 0, "HTTP 503"))
    write(9)
    SliceDelivery(worker).run(all_changes(metabase))
    endpoint.mode = Mode.REFUSE
    assert redeliver_topics(worker, [arn]).parked == 1
    assert endpoint.attempts == 1
    health = metabase.queue.unhealthy()[arn]
    assert health.failures == 2
    assert health.retry_at_ns > time.time_ns()


def test_a_probe_that_gets_through_is_followed_by_the_rest(
    worker: Worker, metabase: Metabase, endpoint: HttpEndpoint, subscribe: Subscribe, write: Write
) -> None:
    arn = subscribe(endpoint.url)
    metabase.queue.report(TopicHealth(arn, 1, 0, "HTTP 503"))
    write(9)
    SliceDelivery(worker).run(all_changes(metabase))
    assert redeliver_topics(worker, [arn]).delivered == 9
    assert not metabase.queue.unhealthy()
    assert not any(line.entries for line in metabase.queue.stats())


def test_parked_messages_of_an_unknown_topic_are_buried(
    worker: Worker, metabase: Metabase, endpoint: HttpEndpoint
) -> None:
    lost = Message("arn:aws:sns:us-east-1:000000000000:lost", "event-1", "key", b"{}")
    metabase.queue.park([lost], due_at_ns=0, attempts=1, reason="HTTP 503")
    assert redeliver_topics(worker, [lost.topic_arn]).buried == 1
    assert endpoint.attempts == 0
    assert metabase.queue.dead_letters() == 1


def test_a_topic_of_another_user_gets_nothing_unless_its_policy_opens_it(
    worker: Worker, metabase: Metabase, endpoint: HttpEndpoint, subscribe: Subscribe, write: Write
) -> None:
    """A rule may be older than the topic that it names, and than the policy."""
    found = metabase.topics.get(subscribe(endpoint.url))
    assert found is not None
    theirs = msgspec.structs.replace(found, owner_id="owner-2")
    metabase.topics.put(theirs)
    write(1)
    assert SliceDelivery(worker).run(all_changes(metabase)).buried == 1
    for principal, delivered in (("owner-1", 1), ("owner-3", 0)):
        policy = policy_for(f"arn:aws:iam:::user/{principal}")
        opened = {**theirs.attributes, "Policy": policy}
        metabase.topics.put(msgspec.structs.replace(theirs, attributes=opened))
        delivery = SliceDelivery(worker).run(all_changes(metabase))
        assert (delivery.delivered, delivery.buried) == (delivered, 1 - delivered)
    assert {letter.reason for letter in metabase.queue.letters(Letters(), 10)} == {
        "the topic is another user's, and no policy opens it to the owner of the bucket"
    }
