"""When messages are tried no more, and what happens when a topic keeps failing."""

import dataclasses
import time
from collections.abc import Iterator
from concurrent.futures import wait

import msgspec
import pytest

from bucketwire.config import PipelineSettings
from bucketwire.metabase.base import Metabase
from bucketwire.metabase.values import Letters, Slice, TopicHealth
from bucketwire.metrics import PUBLISH_CRITICAL
from bucketwire.pipeline.deliver import SliceDelivery
from bucketwire.pipeline.redeliver import redeliver_topics
from bucketwire.pipeline.worker import Worker, make_worker
from bucketwire.publish.base import Delivered, Retry
from pipeline.conftest import Subscribe, Write
from services.http_endpoint import HttpEndpoint, Mode


@pytest.fixture
def worker(settings: PipelineSettings, metabase: Metabase) -> Iterator[Worker]:
    made = make_worker(settings, metabase)
    yield made
    made.threads.shutdown()


def deliver(worker: Worker, metabase: Metabase) -> None:
    start = metabase.changes.start()
    changes = list(metabase.changes.read(Slice(start, metabase.changes.head(start, 100_000))))
    SliceDelivery(worker).run(changes)


def fail_once_more(worker: Worker, metabase: Metabase, arn: str) -> None:
    """Let the topic's pause be over, and try."""
    health = metabase.queue.unhealthy()[arn]
    metabase.queue.report(TopicHealth(arn, health.failures, 0, health.reason))
    redeliver_topics(worker, [arn])


def reasons(metabase: Metabase) -> list[str]:
    return [letter.reason for letter in metabase.queue.letters(Letters(), 100)]


def test_everything_behind_a_dead_topic_ends_after_max_retries(
    worker: Worker, metabase: Metabase, endpoint: HttpEndpoint, subscribe: Subscribe, write: Write
) -> None:
    arn = subscribe(endpoint.url, max_retries="2", retry_sleep_duration="0")
    endpoint.mode = Mode.REFUSE
    write(20)
    deliver(worker, metabase)
    for _ in range(2):
        assert reasons(metabase) == []
        time.sleep(0.2)  # the pause of a message that was tried
        fail_once_more(worker, metabase, arn)
    assert len(reasons(metabase)) == 20
    assert set(reasons(metabase)) == {"max_retries reached: HTTP 503"}
    assert metabase.queue.pending(arn, after=0, limit=10) == []


def test_what_waits_longer_than_its_time_to_live_is_a_dead_letter_though_it_was_never_tried(
    worker: Worker, metabase: Metabase, endpoint: HttpEndpoint, subscribe: Subscribe, write: Write
) -> None:
    arn = subscribe(endpoint.url, time_to_live="1")
    metabase.queue.report(TopicHealth(arn, 1, 0, "HTTP 503"))
    write(3)
    deliver(worker, metabase)
    time.sleep(1.1)
    assert redeliver_topics(worker, [arn]).buried == 3
    assert endpoint.attempts == 0
    assert all(reason.startswith("time_to_live is over") for reason in reasons(metabase))


def test_the_servers_policy_is_for_topics_that_have_none(
    settings: PipelineSettings, metabase: Metabase, endpoint: HttpEndpoint, subscribe: Subscribe, write: Write
) -> None:
    worker = make_worker(dataclasses.replace(settings, time_to_live_seconds=1), metabase)
    arn, patient = subscribe(endpoint.url), subscribe(endpoint.url, "patient", time_to_live="3600")
    for each in (arn, patient):
        metabase.queue.report(TopicHealth(each, 1, 0, "HTTP 503"))
    endpoint.mode = Mode.REFUSE
    write(1)
    write(1, "patient")
    deliver(worker, metabase)
    time.sleep(1.1)
    redeliver_topics(worker, [arn, patient])
    assert len(reasons(metabase)) == 1
    assert len(metabase.queue.pending(patient, after=0, limit=10)) == 1


def test_a_topic_without_an_endpoint_keeps_its_messages_until_it_has_one(
    worker: Worker, metabase: Metabase, endpoint: HttpEndpoint, subscribe: Subscribe, write: Write
) -> None:
    arn = subscribe("")
    write(3)
    deliver(worker, metabase)
    assert len(metabase.queue.pending(arn, after=0, limit=10)) == 3
    assert metabase.queue.unhealthy()[arn].reason == "topic videos has no push-endpoint"
    found = metabase.topics.get(arn)
    assert found is not None
    metabase.topics.put(msgspec.structs.replace(found, attributes={"push-endpoint": endpoint.url}))
    metabase.queue.report(TopicHealth(arn, 1, 0, ""))
    assert redeliver_topics(worker, [arn]).delivered == 3


def test_a_full_queue_turns_what_comes_into_dead_letters(
    settings: PipelineSettings, metabase: Metabase, endpoint: HttpEndpoint, subscribe: Subscribe, write: Write
) -> None:
    worker = make_worker(dataclasses.replace(settings, queue_limit_bytes=1000), metabase)
    arn = subscribe(endpoint.url)
    metabase.queue.report(TopicHealth(arn, 1, 10**19 // 2, "HTTP 503"))
    write(3)
    deliver(worker, metabase)
    assert (len(metabase.queue.pending(arn, after=0, limit=10)), reasons(metabase)) == (3, [])
    worker.full._looked_at = float("-inf")
    write(2, first=3)
    deliver(worker, metabase)
    assert set(reasons(metabase)) == {"the queue of the topic is full"}
    assert {letter.message.key for letter in metabase.queue.letters(Letters(), 10)} >= {
        "videos/3",
        "videos/4",
    }


def test_an_alarm_is_raised_once_behind_the_ladder_and_the_retries_go_on(
    settings: PipelineSettings,
    metabase: Metabase,
    endpoint: HttpEndpoint,
    other_endpoint: HttpEndpoint,
    subscribe: Subscribe,
    write: Write,
) -> None:
    worker = make_worker(dataclasses.replace(settings, alert_url=other_endpoint.url), metabase)
    arn = subscribe(endpoint.url, retry_sleep_duration="0")
    endpoint.mode = Mode.REFUSE
    write(1)
    deliver(worker, metabase)
    counter = PUBLISH_CRITICAL.labels(arn)._value
    raised = counter.get()
    for _ in range(6):
        time.sleep(0.2)  # the pause of the message
        fail_once_more(worker, metabase, arn)
    assert counter.get() == raised + 1
    (alert,) = other_endpoint.events()
    assert alert.decoded == {
        "event": "bucket_eventing_publish_critical",
        "topic": arn,
        "failures": 5,
        "reason": "HTTP 503",
    }
    assert endpoint.attempts == 7


def test_the_last_failure_can_be_read_while_the_topic_is_tried_again(
    worker: Worker, metabase: Metabase, endpoint: HttpEndpoint, subscribe: Subscribe, write: Write
) -> None:
    arn = subscribe(endpoint.url)
    endpoint.mode = Mode.REFUSE
    write(1)
    deliver(worker, metabase)
    failed = metabase.queue.unhealthy()[arn]
    time.sleep(max(0.0, failed.retry_at_ns - time.time_ns()) / 1e9)
    worker.claims.take([failed])
    claimed = metabase.queue.unhealthy()[arn]
    assert (claimed.reason, claimed.failures) == ("HTTP 503", failed.failures)
    assert claimed.retry_at_ns > failed.retry_at_ns


def test_what_came_behind_a_dead_topic_dies_of_what_the_topic_died_of(
    worker: Worker, metabase: Metabase, endpoint: HttpEndpoint, subscribe: Subscribe, write: Write
) -> None:
    arn = subscribe(endpoint.url, max_retries="1", retry_sleep_duration="0")
    endpoint.mode = Mode.REFUSE
    write(1)
    deliver(worker, metabase)
    write(3, first=1)
    deliver(worker, metabase)
    for _ in range(3):
        if arn in metabase.queue.due_topics(2**62):
            time.sleep(0.2)  # the pause of a message that was tried
            fail_once_more(worker, metabase, arn)
    assert reasons(metabase) == ["max_retries reached: HTTP 503"] * 4


def test_an_ordered_topic_gets_its_messages_in_the_order_of_their_commits_through_an_outage(
    worker: Worker, metabase: Metabase, endpoint: HttpEndpoint, subscribe: Subscribe, write: Write
) -> None:
    arn = subscribe(endpoint.url, ordering="key", retry_sleep_duration="0")
    endpoint.mode = Mode.REFUSE
    write(3)
    deliver(worker, metabase)
    fail_once_more(worker, metabase, arn)
    write(3, first=3)
    metabase.queue.report(TopicHealth(arn))  # as if it had recovered: what waits must go first all the same
    start = metabase.changes.start()
    changes = list(metabase.changes.read(Slice(start, metabase.changes.head(start, 100))))
    SliceDelivery(worker).run(changes[3:])
    endpoint.mode = Mode.OK
    redeliver_topics(worker, [arn])
    waiting = [parked.message.key for parked in metabase.queue.pending(arn, after=0, limit=10)]
    keys = [event.decoded["Records"][0]["s3"]["object"]["key"] for event in endpoint.events()]
    assert (keys, waiting) == ([f"videos/{number}" for number in range(6)], [])


def test_what_fails_of_an_ordered_topic_for_several_reasons_waits_in_the_order_of_the_commits(
    worker: Worker,
    metabase: Metabase,
    endpoint: HttpEndpoint,
    subscribe: Subscribe,
    write: Write,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    arn = subscribe(endpoint.url, ordering="key")
    found = metabase.topics.get(arn)
    assert found is not None
    behind = Retry("an earlier message about the same key was not taken")
    outcomes = [Retry("HTTP 503"), behind, Delivered(), Retry("HTTP 429"), behind]
    monkeypatch.setattr(worker.publishers.get(found), "publish", lambda *_: outcomes)
    write(5)
    deliver(worker, metabase)
    waiting = metabase.queue.take(arn, time.time_ns(), 10)
    assert [parked.message.key for parked in waiting] == [f"videos/{number}" for number in (0, 1, 3, 4)]
    assert {parked.reason for parked in waiting} == {"HTTP 503"}
    assert metabase.queue.unhealthy()[arn].reason == "HTTP 503"


def test_no_topic_is_drained_twice_at_once_and_none_is_claimed_without_a_thread(
    worker: Worker, metabase: Metabase, endpoint: HttpEndpoint, subscribe: Subscribe, write: Write
) -> None:
    arns = [subscribe(endpoint.url, f"topic{number}") for number in range(3)]
    endpoint.mode = Mode.HANG
    for number in range(3):
        metabase.queue.report(TopicHealth(arns[number], 1, 0, "HTTP 503"))
        write(1, f"topic{number}")
    deliver(worker, metabase)
    redeliver_topics(worker, arns[:2])
    assert sorted(worker.drains.values()) == sorted(arns[:2])
    redeliver_topics(worker, arns)
    assert sorted(worker.drains.values()) == sorted(arns)
    endpoint.mode = Mode.DOWN
    wait(list(worker.drains))
