"""When the pipeline ends by itself; Spark is left out."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bucketwire.config import CONSUMER, PipelineSettings
from bucketwire.metabase.base import Metabase
from bucketwire.metabase.values import TopicHealth
from bucketwire.pipeline import clock as clock_module
from bucketwire.pipeline import job, priority
from bucketwire.pipeline.scratch import spark_files
from clock import Clock
from factories import TOPIC_ARN, message
from wire import until

PATIENCE_SECONDS = 20
ORPHANED = 1


def nothing(*_: object) -> None:
    """In place of what concerns Spark or this whole process."""


@contextmanager
def running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, during_the_start: Callable[[], None] = nothing
) -> Iterator[threading.Thread]:
    """A pipeline, in a thread."""
    stopping = threading.Event()

    def open_session(settings: PipelineSettings) -> None:
        spark_files(settings).mkdir(parents=True)
        during_the_start()

    for name in ("take_part", "end_session"):
        monkeypatch.setattr(job, name, nothing)
    for name in ("give_way", "take_part"):
        monkeypatch.setattr(priority, name, nothing)
    monkeypatch.setattr(job, "_stop_on_signals", lambda: stopping)
    monkeypatch.setattr(job, "open_session", open_session)
    monkeypatch.setattr(job, "start_queries", lambda *_: [])
    settings = PipelineSettings(
        f"sqlite:///{tmp_path}/metabase.db", "aws", tmp_path / "scratch", holder="ours"
    )
    thread = threading.Thread(target=job.run, args=[settings])
    thread.start()
    try:
        yield thread
    finally:
        stopping.set()
        thread.join()


def test_it_goes_on_when_its_parent_is_gone(
    metabase: Metabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(tmp_path, monkeypatch) as pipeline:
        until(lambda: metabase.cursors.holder(CONSUMER) == "ours", PATIENCE_SECONDS, lambda: "no lease")
        monkeypatch.setattr(os, "getppid", lambda: ORPHANED)
        pipeline.join(1.0)
        assert pipeline.is_alive()


def test_it_gives_up_the_lease_when_it_is_stopped(
    metabase: Metabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(tmp_path, monkeypatch):
        until(lambda: metabase.cursors.holder(CONSUMER) == "ours", PATIENCE_SECONDS, lambda: "no lease")
    assert metabase.cursors.holder(CONSUMER) is None


def test_it_can_be_stopped_while_it_stands_by(
    metabase: Metabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    metabase.cursors.lease(CONSUMER, "other", 60)
    stands_by = threading.Event()
    with running(tmp_path, monkeypatch, stands_by.set):
        assert stands_by.wait(PATIENCE_SECONDS)
    assert metabase.cursors.holder(CONSUMER) == "other"


@pytest.fixture
def failing(metabase: Metabase) -> Metabase:
    """A topic of it is to be tried in an hour: the clock was set back after it had failed."""
    metabase.queue.park([message("event-1", TOPIC_ARN)], due_at_ns=0, attempts=1, reason="HTTP 503")
    later_ns = time.time_ns() + 3_600 * 10**9
    metabase.queue.report(TopicHealth(TOPIC_ARN, 4, later_ns, "HTTP 503"))
    return metabase


def is_due_soon(metabase: Metabase) -> None:
    until(
        lambda: metabase.queue.due_topics(time.time_ns()) == [TOPIC_ARN], PATIENCE_SECONDS, lambda: "it waits"
    )


def test_waits_end_when_the_clock_is_set_back_while_it_is_at_work(
    failing: Metabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(now=time.time() + 3_600)
    monkeypatch.setattr(clock_module, "time", clock)
    with running(tmp_path, monkeypatch):
        until(lambda: failing.cursors.holder(CONSUMER) == "ours", PATIENCE_SECONDS, lambda: "no lease")
        clock.set_back(3_600)
        time.sleep(2 * job.LOOK_EVERY_SECONDS)
        assert failing.queue.due_topics(time.time_ns()) == [], "claims are kept first"
        clock.pass_by(clock_module.SETTLE_SECONDS)
        is_due_soon(failing)


def test_waits_end_when_the_clock_was_set_back_while_none_was_at_work(
    failing: Metabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing.cursors.save(CONSUMER, "0", time.time_ns() + 3_600 * 10**9)
    failing.cursors.not_alive(CONSUMER)
    monkeypatch.setattr(clock_module, "SETTLE_SECONDS", 0.0)
    with running(tmp_path, monkeypatch):
        is_due_soon(failing)


def test_waits_are_kept_at_a_start_when_the_clock_was_not_set_back(
    failing: Metabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing.cursors.save(CONSUMER, "0", time.time_ns())
    monkeypatch.setattr(clock_module, "SETTLE_SECONDS", 0.0)
    with running(tmp_path, monkeypatch) as pipeline:
        until(lambda: failing.cursors.holder(CONSUMER) == "ours", PATIENCE_SECONDS, lambda: "no lease")
        pipeline.join(3 * job.LOOK_EVERY_SECONDS)
        assert failing.queue.due_topics(time.time_ns()) == []


def test_a_standby_takes_its_full_share_when_the_one_at_work_dies_during_the_start(
    metabase: Metabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    metabase.cursors.lease(CONSUMER, "other", 60)
    took_part = threading.Event()
    in_time: list[bool] = []

    def lose_the_other() -> None:
        monkeypatch.setattr(priority, "take_part", took_part.set)
        metabase.cursors.lease(CONSUMER, "other", 0)
        in_time.append(took_part.wait(PATIENCE_SECONDS))

    with running(tmp_path, monkeypatch, lose_the_other):
        until(lambda: metabase.cursors.holder(CONSUMER) == "ours", 2 * PATIENCE_SECONDS, lambda: "no lease")
    assert in_time == [True]
