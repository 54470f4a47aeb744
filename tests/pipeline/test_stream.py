"""The pipeline on a real local Spark: changes in, messages at an HTTP endpoint."""

import os
import shutil
import signal
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from bucketwire.config import CONSUMER, PipelineSettings
from bucketwire.errors import Unavailable
from bucketwire.metabase.base import Metabase
from bucketwire.metabase.values import TopicHealth
from bucketwire.pipeline.job import Query, stop_queries
from bucketwire.pipeline.pace import QUICK_SECONDS
from pipeline.conftest import Subscribe, Write
from services.http_endpoint import HttpEndpoint, Mode, Received
from wire import children, command_line, descendants, signal_all

Run = Callable[..., list[Query]]
PATIENCE_SECONDS = 60


def until(condition: Callable[[], object]) -> None:
    ends = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < ends, "it did not happen in time"
        time.sleep(0.02)


def keys(events: list[Received]) -> list[str]:
    return sorted(event.decoded["Records"][0]["s3"]["object"]["key"] for event in events)


def parked(metabase: Metabase) -> dict[str, int]:
    return {line.topic_arn: line.entries for line in metabase.queue.stats() if line.entries}


def names(count: int, topic: str = "videos") -> list[str]:
    return sorted(f"{topic}/{number}" for number in range(count))


def ids(events: list[Received]) -> list[str]:
    return [event.headers["bucketwire-event-id"] for event in events]


def test_a_change_arrives_and_the_cursor_passes_it(
    run_pipeline: Run, metabase: Metabase, endpoint: HttpEndpoint, subscribe: Subscribe, write: Write
) -> None:
    subscribe(endpoint.url)
    run_pipeline()
    write(1)
    (event,) = endpoint.wait_for(1, PATIENCE_SECONDS)
    assert event.decoded["Records"][0]["eventName"] == "ObjectCreated:Put"
    head = metabase.changes.head(metabase.cursors.load(CONSUMER) or metabase.changes.start(), 10)
    until(lambda: metabase.cursors.load(CONSUMER) == head)
    assert metabase.cursors.alive_at_ns(CONSUMER) is not None


def test_a_pipeline_that_stands_by_begins_where_the_other_has_left_off(
    run_pipeline: Run, metabase: Metabase, endpoint: HttpEndpoint, subscribe: Subscribe, write: Write
) -> None:
    subscribe(endpoint.url)
    metabase.cursors.lease(CONSUMER, "first", 600)
    run_pipeline(holder="second")
    write(5)
    done = metabase.changes.head(metabase.changes.start(), 3)
    metabase.cursors.save(CONSUMER, done, 0, "first")
    time.sleep(3)  # time enough for what must not happen
    assert endpoint.events() == []
    assert metabase.cursors.alive_at_ns(CONSUMER) == 0
    metabase.cursors.lease(CONSUMER, "first", 0)
    metabase.cursors.lease(CONSUMER, "second", 600)
    endpoint.wait_for(2, PATIENCE_SECONDS)
    until(lambda: metabase.cursors.load(CONSUMER) == metabase.changes.head(done, 10))
    assert keys(endpoint.events()) == names(5)[3:]


def test_slices_together_give_every_change_exactly_once(
    run_pipeline: Run, endpoint: HttpEndpoint, subscribe: Subscribe, write: Write
) -> None:
    subscribe(endpoint.url)
    write(230)
    run_pipeline(slice_rows=10, batch_rows=70)
    endpoint.wait_for(230, PATIENCE_SECONDS)
    assert keys(endpoint.events()) == names(230)


def test_a_hanging_topic_does_not_hold_up_another(
    run_pipeline: Run,
    metabase: Metabase,
    endpoint: HttpEndpoint,
    other_endpoint: HttpEndpoint,
    subscribe: Subscribe,
    write: Write,
) -> None:
    hanging = subscribe(endpoint.url, "hanging")
    subscribe(other_endpoint.url, "fine")
    run_pipeline()
    write(1, "fine")
    other_endpoint.wait_for(1, PATIENCE_SECONDS)
    endpoint.mode = Mode.HANG
    write(5, "hanging")
    until(lambda: hanging in metabase.queue.unhealthy())
    attempts = endpoint.attempts
    write(20, "hanging", first=5)
    write(20, "fine", first=1)
    other_endpoint.wait_for(21, PATIENCE_SECONDS)
    # The breaker is open: only probes of the second query, one message each, reach the endpoint.
    assert endpoint.attempts - attempts < 20
    until(lambda: [*parked(metabase).values()] == [25])
    endpoint.mode = Mode.OK
    endpoint.wait_for(25, PATIENCE_SECONDS)
    assert set(keys(endpoint.events())) == set(names(25, "hanging"))


def test_a_topic_that_was_down_gets_everything_when_it_is_back(
    run_pipeline: Run, metabase: Metabase, endpoint: HttpEndpoint, subscribe: Subscribe, write: Write
) -> None:
    arn = subscribe(endpoint.url)
    endpoint.mode = Mode.DOWN
    run_pipeline()
    write(150)
    until(lambda: [*parked(metabase).values()] == [150])
    endpoint.mode = Mode.OK
    endpoint.wait_for(150, PATIENCE_SECONDS)
    assert set(keys(endpoint.events())) == set(names(150))
    until(lambda: not parked(metabase))

    def is_healthy() -> bool:
        """One that has answered slowly, as on a busy machine, is taken for slow until the next message."""
        if arn not in metabase.queue.unhealthy():
            return True
        write(1)
        time.sleep(0.5)
        return False

    until(is_healthy)


def test_what_a_topic_refused_of_a_batch_follows_later(
    run_pipeline: Run, metabase: Metabase, endpoint: HttpEndpoint, subscribe: Subscribe, write: Write
) -> None:
    subscribe(endpoint.url)
    endpoint.mode = Mode.HALF
    write(40)
    run_pipeline()
    until(metabase.queue.stats)
    endpoint.mode = Mode.OK
    endpoint.wait_for(40, PATIENCE_SECONDS)
    assert keys(endpoint.events()) == names(40)


def test_a_failing_metabase_ends_the_query_and_loses_nothing(
    run_pipeline: Run,
    settings: PipelineSettings,
    metabase: Metabase,
    endpoint: HttpEndpoint,
    subscribe: Subscribe,
    write: Write,
) -> None:
    subscribe(endpoint.url)
    before = metabase.changes.start()
    endpoint.mode = Mode.REFUSE
    queue = Path(urlsplit(settings.metabase).path[1:]).with_name("metabase-queue.db")
    with sqlite3.connect(queue) as connection:
        connection.execute("ALTER TABLE parked RENAME TO parked_away")
    deliver, redeliver = run_pipeline()
    write(3)
    until(deliver.cause_of_death)
    assert metabase.cursors.load(CONSUMER) in {None, before}
    redeliver.running.stop()
    with sqlite3.connect(queue) as connection:
        connection.execute("ALTER TABLE parked_away RENAME TO parked")
    connection.close()
    endpoint.mode = Mode.OK
    run_pipeline()
    endpoint.wait_for(3, PATIENCE_SECONDS)
    assert set(keys(endpoint.events())) == set(names(3))


def test_without_its_checkpoint_a_restart_goes_on_where_it_was(
    run_pipeline: Run, settings: PipelineSettings, endpoint: HttpEndpoint, subscribe: Subscribe, write: Write
) -> None:
    subscribe(endpoint.url)
    write(2)
    queries = run_pipeline()
    endpoint.wait_for(2, PATIENCE_SECONDS)
    stop_queries(queries, settings)
    shutil.rmtree(settings.scratch / "spark")
    write(2, first=2)
    run_pipeline()
    endpoint.wait_for(4, PATIENCE_SECONDS)
    assert keys(endpoint.events()) == names(4)
    assert len(set(ids(endpoint.events()))) == 4


def test_a_query_whose_source_was_killed_is_started_anew_in_the_same_session(
    run_pipeline: Run, endpoint: HttpEndpoint, subscribe: Subscribe, write: Write
) -> None:
    subscribe(endpoint.url)
    queries = run_pipeline()
    write(2)
    endpoint.wait_for(2, PATIENCE_SECONDS)
    until(lambda: not any("Initializing" in query.running.status["message"] for query in queries))
    _kill_sources()
    until(lambda: all(query.running.exception() for query in queries))
    for query in queries:
        query.revive()
    write(2, first=2)
    endpoint.wait_for(4, PATIENCE_SECONDS)
    assert keys(endpoint.events()) == names(4)


def test_a_query_that_dies_again_soon_ends_the_pipeline(run_pipeline: Run) -> None:
    deliver, _ = run_pipeline()
    deliver.running.stop()
    deliver.revive()
    deliver.running.stop()
    with pytest.raises(Unavailable, match=r"deliver-\d+ has ended: without an error"):
        deliver.revive()


def _kill_sources() -> None:
    for pid in descendants(os.getpid()):
        if "python_streaming_source_runner" in command_line(pid):
            os.kill(pid, signal.SIGKILL)


def test_an_endpoint_that_answers_late_gets_each_message_once(
    run_pipeline: Run, metabase: Metabase, endpoint: HttpEndpoint, subscribe: Subscribe, write: Write
) -> None:
    arn = subscribe(endpoint.url)
    endpoint.mode = Mode.SLOW
    endpoint.delay_seconds = 0.6
    run_pipeline()
    write(1)
    until(lambda: metabase.queue.unhealthy().get(arn, TopicHealth("")).reason == "answers slowly")
    for number in range(1, 6):
        write(1, first=number)
        until(lambda number=number: f"videos/{number}" in keys(endpoint.events()))
    until(lambda: not parked(metabase))
    assert (len(endpoint.events()), endpoint.attempts) == (6, 6)
    endpoint.mode = Mode.OK
    time.sleep(QUICK_SECONDS)
    write(1, first=6)
    until(lambda: arn not in metabase.queue.unhealthy())


def test_a_retry_does_not_wait_for_a_topic_that_hangs(
    run_pipeline: Run,
    metabase: Metabase,
    endpoint: HttpEndpoint,
    other_endpoint: HttpEndpoint,
    subscribe: Subscribe,
    write: Write,
) -> None:
    """The hanging probe lasts longer than this test waits: a retry that waited for it would come too late."""
    hanging = subscribe(endpoint.url)
    subscribe(other_endpoint.url, "others")
    endpoint.mode = Mode.HANG
    run_pipeline(retry_deadline_seconds=PATIENCE_SECONDS)
    write(1)
    claimed_ns = time.time_ns() + PATIENCE_SECONDS * 1_000_000_000
    until(lambda: metabase.queue.unhealthy().get(hanging, TopicHealth("")).retry_at_ns > claimed_ns)
    other_endpoint.mode = Mode.REFUSE
    write(1, "others")
    until(lambda: len(parked(metabase)) == 2)
    other_endpoint.mode = Mode.OK
    other_endpoint.wait_for(1, PATIENCE_SECONDS / 2)
    assert endpoint.events() == []
    endpoint.mode = Mode.OK


def test_a_topic_that_a_dead_worker_had_in_hand_does_not_wait_for_the_deadline_of_its_call(
    run_pipeline: Run, metabase: Metabase, endpoint: HttpEndpoint, subscribe: Subscribe, write: Write
) -> None:
    arn = subscribe(endpoint.url)
    endpoint.mode = Mode.REFUSE
    run_pipeline(deadline_seconds=PATIENCE_SECONDS, retry_deadline_seconds=2 * PATIENCE_SECONDS)
    write(1)
    until(lambda: parked(metabase))
    endpoint.mode = Mode.HANG
    refused = endpoint.attempts
    until(lambda: endpoint.attempts > refused)
    claimed_ns = metabase.queue.unhealthy()[arn].retry_at_ns
    until(lambda: metabase.queue.unhealthy()[arn].retry_at_ns > claimed_ns)  # it is kept
    endpoint.mode = Mode.OK
    signal_all(_workers(), signal.SIGKILL)
    endpoint.wait_for(1, PATIENCE_SECONDS)
    assert keys(endpoint.events()) == names(1)


def _workers() -> list[int]:
    daemons = [pid for pid in descendants(os.getpid()) if "daemon pyspark" in command_line(pid)]
    return [child for daemon in daemons for child in children(daemon)]
