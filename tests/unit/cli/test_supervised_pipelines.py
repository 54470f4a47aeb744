"""The pipelines under the supervisor: each start has a name, and a dead one keeps no lease."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bucketwire.cli.pipelines import Pipelines
from bucketwire.cli.supervise import Start
from bucketwire.config import CONSUMER
from bucketwire.metabase import open_metabase
from bucketwire.metabase.base import Cursors

LONG_SECONDS = 50.0


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/metabase.db"


@pytest.fixture
def cursors(url: str) -> Iterator[Cursors]:
    opened = open_metabase(url)
    yield opened.cursors
    opened.close()


@pytest.fixture
def pipelines(url: str, tmp_path: Path) -> Pipelines:
    return Pipelines(url, tmp_path, ["bucketwire", "pipeline"], threading.Event())


@pytest.fixture
def next_supervisor(url: str, tmp_path: Path) -> Pipelines:
    """In the same data folder."""
    return Pipelines(url, tmp_path, ["bucketwire", "pipeline"], threading.Event())


def prepare(pipelines: Pipelines, part: int = 0) -> Start:
    return pipelines.parts(standby=True)[part].prepare()


def holder(start: Start) -> str:
    assert start.command[:-1] == ["bucketwire", "pipeline", "--holder"]
    return start.command[-1]


def test_without_a_standby_there_is_one_pipeline(pipelines: Pipelines) -> None:
    assert [part.name for part in pipelines.parts(standby=False)] == ["pipeline"]
    assert [part.name for part in pipelines.parts(standby=True)] == ["pipeline", "standby"]


def test_each_start_has_another_name(pipelines: Pipelines) -> None:
    assert holder(prepare(pipelines)) != holder(prepare(pipelines))


def test_the_lease_of_a_dead_pipeline_is_anybodys_at_once(pipelines: Pipelines, cursors: Cursors) -> None:
    start = prepare(pipelines)
    cursors.lease(CONSUMER, holder(start), LONG_SECONDS)
    assert not cursors.lease(CONSUMER, "standby", LONG_SECONDS)
    start.after_death()
    assert cursors.lease(CONSUMER, "standby", LONG_SECONDS)


def test_a_standby_that_has_taken_over_keeps_the_lease_when_the_other_is_settled(
    pipelines: Pipelines, cursors: Cursors
) -> None:
    start = prepare(pipelines)
    cursors.lease(CONSUMER, "standby", LONG_SECONDS)
    start.after_death()
    pipelines.stop.set()
    prepare(pipelines)
    assert cursors.holder(CONSUMER) == "standby"


def test_the_lease_that_a_killed_supervisor_left_is_given_up_by_the_next(
    pipelines: Pipelines, next_supervisor: Pipelines, cursors: Cursors
) -> None:
    cursors.lease(CONSUMER, holder(prepare(pipelines)), LONG_SECONDS)
    prepare(next_supervisor)
    assert cursors.holder(CONSUMER) is None


def test_the_lease_of_a_pipeline_whose_processes_do_not_end_is_left_to_run_out(
    pipelines: Pipelines, cursors: Cursors
) -> None:
    """It was not settled after its death, and may still be at work."""
    first = holder(prepare(pipelines))
    cursors.lease(CONSUMER, first, LONG_SECONDS)
    pipelines.stop.set()
    prepare(pipelines)
    assert cursors.holder(CONSUMER) == first


def test_a_pipeline_that_starts_is_not_ready_however_recently_the_last_one_was(
    pipelines: Pipelines, next_supervisor: Pipelines, cursors: Cursors
) -> None:
    first = holder(prepare(pipelines))
    cursors.lease(CONSUMER, first, LONG_SECONDS)
    cursors.save(CONSUMER, "7", time.time_ns(), first)
    prepare(next_supervisor)
    assert (cursors.alive_at_ns(CONSUMER), cursors.load(CONSUMER)) == (0, "7")


def test_while_another_is_at_work_a_start_leaves_the_system_ready(
    pipelines: Pipelines, cursors: Cursors
) -> None:
    cursors.lease(CONSUMER, "standby", LONG_SECONDS)
    cursors.save(CONSUMER, "7", alive_at_ns := time.time_ns(), "standby")
    pipelines.stop.set()
    prepare(pipelines)
    assert cursors.alive_at_ns(CONSUMER) == alive_at_ns


@contextmanager
def prepared(pipelines: Pipelines, part: int) -> Iterator[threading.Event]:
    """Prepares in a thread; the event is set when that is done."""
    done = threading.Event()

    def run() -> None:
        prepare(pipelines, part)
        done.set()

    thread = threading.Thread(target=run)
    thread.start()
    yield done
    thread.join()


def test_a_standby_starts_when_the_other_is_at_work(pipelines: Pipelines, cursors: Cursors) -> None:
    cursors.save(CONSUMER, "7", time.time_ns())
    with prepared(pipelines, part=1) as started:
        assert not started.wait(0.2)
        cursors.lease(CONSUMER, "first", LONG_SECONDS)
        assert not started.wait(0.2)
        cursors.save(CONSUMER, "8", time.time_ns(), "first")
        assert started.wait(20)


def test_the_first_starts_again_when_the_one_that_took_over_is_at_work(
    pipelines: Pipelines, cursors: Cursors
) -> None:
    cursors.lease(CONSUMER, "standby", LONG_SECONDS)
    with prepared(pipelines, part=0) as started:
        assert not started.wait(0.2)
        cursors.save(CONSUMER, "8", time.time_ns(), "standby")
        assert started.wait(20)


def test_the_first_starts_when_the_one_that_took_over_is_gone(pipelines: Pipelines, cursors: Cursors) -> None:
    cursors.lease(CONSUMER, "standby", LONG_SECONDS)
    with prepared(pipelines, part=0) as started:
        assert not started.wait(0.2)
        cursors.lease(CONSUMER, "standby", 0)
        assert started.wait(20)


def test_a_standby_that_waits_can_be_stopped(pipelines: Pipelines) -> None:
    with prepared(pipelines, part=1) as started:
        assert not started.wait(0.2)
        pipelines.stop.set()
        assert started.wait(20), "it waits for as long as it has patience"


def test_the_metabases_password_is_not_shown(pipelines: Pipelines) -> None:
    assert pipelines.metabase not in repr(pipelines)
