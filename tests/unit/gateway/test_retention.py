"""Changes that the pipeline does not read in time: said in the log, in /-/ready and in the metrics."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier, Event
from typing import Any

import pytest
from structlog.testing import capture_logs

from bucketwire.blobs import Blobs
from bucketwire.config import CONSUMER
from bucketwire.event.name import Operation
from bucketwire.gateway import housekeeping as housekeeping_module
from bucketwire.gateway import readiness, retention
from bucketwire.gateway.housekeeping import housekeeping
from bucketwire.gateway.metrics import metrics_page
from bucketwire.gateway.readiness import ALIVE_SECONDS, LOST, Pulse, Readiness, ReadyState, look
from bucketwire.gateway.retention import HOUR_NS, enforce_retention, pipeline_lag
from bucketwire.metabase import open_metabase
from bucketwire.metabase.base import Metabase
from factories import new_object, origin, rule
from wire import until


class Log:
    """Keeps what is critical."""

    def __init__(self) -> None:
        self.alarms: list[dict[str, Any]] = []

    def critical(self, event: str, **fields: Any) -> None:
        self.alarms.append({"event": event, **fields})


class Clock:
    """The machine's clock, when some hours have passed, or when it has only jumped ahead."""

    def __init__(self) -> None:
        self.passed_hours = 0
        self.ahead_hours = 0
        self._time_ns, self._monotonic_ns = time.time_ns, time.monotonic_ns

    def time_ns(self) -> int:
        return self._time_ns() + (self.passed_hours + self.ahead_hours) * HOUR_NS

    def monotonic_ns(self) -> int:
        return self._monotonic_ns() + self.passed_hours * HOUR_NS


@pytest.fixture
def metabase(tmp_path: Path) -> Iterator[Metabase]:
    opened = open_metabase(f"sqlite:///{tmp_path}/metabase.db")
    opened.buckets.create("media", "owner-1", "us-east-1")
    opened.rules.edit("media", lambda _: [rule()])
    yield opened
    opened.close()


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    kept = Log()
    monkeypatch.setattr(retention, "get_logger", lambda _part: kept)
    return kept


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    ours = Clock()
    monkeypatch.setattr(time, "time_ns", ours.time_ns)
    monkeypatch.setattr(time, "monotonic_ns", ours.monotonic_ns)
    return ours


def write(metabase: Metabase, *keys: str) -> None:
    for key in keys:
        metabase.objects.put("media", new_object(key), Operation.PUT, origin())


def alive(metabase: Metabase, clock: Clock) -> None:
    """The pipeline reports, where it is."""
    offset = metabase.cursors.load(CONSUMER) or metabase.changes.start()
    metabase.cursors.save(CONSUMER, offset, clock.time_ns())


def test_changes_younger_than_the_retention_stay(metabase: Metabase, log: Log, clock: Clock) -> None:
    write(metabase, "a", "b")
    clock.passed_hours = 167
    write(metabase, "c")
    enforce_retention(metabase, 168)
    assert pipeline_lag(metabase).changes == 3
    assert log.alarms == []


def test_a_clock_that_jumps_ahead_for_a_while_costs_no_change(
    metabase: Metabase, log: Log, clock: Clock
) -> None:
    write(metabase, "before")
    clock.ahead_hours = 365 * 24
    write(metabase, "during")
    enforce_retention(metabase, 168)
    clock.ahead_hours = 0
    write(metabase, "after")
    enforce_retention(metabase, 168)
    clock.passed_hours = 167
    write(metabase, "much later")
    enforce_retention(metabase, 168)
    assert pipeline_lag(metabase).changes == 4
    assert log.alarms == []


def test_a_gateway_that_starts_while_the_clock_is_ahead_trims_nothing_by_it(
    metabase: Metabase, log: Log, clock: Clock, tmp_path: Path
) -> None:
    write(metabase, "a", "b")
    clock.ahead_hours = 365 * 24
    started = open_metabase(f"sqlite:///{tmp_path}/metabase.db")
    try:
        enforce_retention(started, 168)
    finally:
        started.close()
    assert pipeline_lag(metabase).changes == 2
    assert log.alarms == []


def test_changes_that_were_read_go_without_an_alarm(metabase: Metabase, log: Log, clock: Clock) -> None:
    write(metabase, "a", "b")
    metabase.cursors.save(CONSUMER, metabase.changes.head(metabase.changes.start(), 10), 1)
    clock.passed_hours = 169
    write(metabase, "c")
    enforce_retention(metabase, 168)
    lag = pipeline_lag(metabase)
    assert (lag.changes, lag.lost, log.alarms) == (1, False, [])
    assert metabase.changes.start() == metabase.cursors.load(CONSUMER)


@pytest.mark.parametrize("ran", [True, False], ids=["a pipeline that ran", "a pipeline that never ran"])
def test_a_loss_is_an_alarm_and_stays_one_until_it_is_accepted(
    metabase: Metabase, log: Log, clock: Clock, *, ran: bool
) -> None:
    if ran:
        alive(metabase, clock)
    write(metabase, "a", "b")
    clock.passed_hours = 169
    write(metabase, "c")
    enforce_retention(metabase, 168)
    enforce_retention(metabase, 168)
    assert [each["event"] for each in log.alarms] == ["changes_lost_to_retention"] * 2
    assert pipeline_lag(metabase).lost
    assert b"bucketwire_changes_lost 1.0" in metrics_page(metabase)
    metabase.cursors.save(CONSUMER, metabase.changes.start(), 1)
    enforce_retention(metabase, 168)
    assert len(log.alarms) == 2
    assert b"bucketwire_changes_lost 0.0" in metrics_page(metabase)


def before_first_head(metabase: Metabase, act: Callable[[], object]) -> None:
    """Let this happen after the cursor was loaded, and before it is looked at."""
    original, acts = metabase.changes.head, [act]

    def head(after: str, limit: int) -> str:
        if acts:
            acts.pop()()
        return original(after, limit)

    metabase.changes.head = head  # type: ignore[method-assign]


def read(metabase: Metabase, count: int) -> None:
    """The pipeline reads so many changes from the start, saves its cursor and trims."""
    end = str(int(metabase.changes.start()) + count)
    metabase.cursors.save(CONSUMER, end, 1)
    metabase.changes.trim(end)


def test_changes_that_the_pipeline_reads_and_trims_during_the_look_are_not_lost(
    metabase: Metabase, clock: Clock
) -> None:
    alive(metabase, clock)
    write(metabase, "a", "b", "c")
    before_first_head(metabase, lambda: read(metabase, 2))
    lag = pipeline_lag(metabase)
    assert (lag.changes, lag.lost) == (1, False)


def test_what_the_pipeline_trims_while_old_changes_go_is_no_alarm(
    metabase: Metabase, log: Log, clock: Clock
) -> None:
    alive(metabase, clock)
    write(metabase, "a", "b", "c")
    before_first_head(metabase, lambda: read(metabase, 2))
    enforce_retention(metabase, 168)
    assert log.alarms == []


def test_a_cursor_that_moves_during_the_look_and_is_still_too_far_behind_has_lost_changes(
    metabase: Metabase, clock: Clock
) -> None:
    alive(metabase, clock)
    write(metabase, "a", "b", "c")

    def fall_behind() -> None:
        read(metabase, 1)
        metabase.changes.trim(str(int(metabase.changes.start()) + 1))

    before_first_head(metabase, fall_behind)
    assert pipeline_lag(metabase).lost


def test_ready_warns_at_half_the_retention_and_fails_when_changes_are_lost(
    metabase: Metabase, log: Log, clock: Clock
) -> None:
    alive(metabase, clock)
    write(metabase, "a")
    assert look(metabase, 100, Pulse()).page() == {"ready": True}
    clock.passed_hours = 60
    alive(metabase, clock)
    assert look(metabase, 100, Pulse()).page() == {
        "ready": True,
        "warning": "the pipeline is 60 h behind: changes are kept for 100 h",
    }
    clock.passed_hours = 101
    alive(metabase, clock)
    write(metabase, "b")
    enforce_retention(metabase, 100)
    assert look(metabase, 100, Pulse()).page() == {"ready": False, "reason": LOST}
    assert log.alarms


def test_ready_tells_a_pipeline_that_starts_from_one_that_is_silent(metabase: Metabase, clock: Clock) -> None:
    assert look(metabase, 100, Pulse()).reason == "the pipeline is starting"
    alive(metabase, clock)
    assert look(metabase, 100, Pulse()).reason is None
    clock.passed_hours = 1
    assert look(metabase, 100, Pulse()).reason == "the pipeline has not reported for 3600 s"


@pytest.mark.parametrize("difference", [-3600, -60, 0, 60, 3600])
def test_a_pipeline_with_another_clock_is_alive_as_long_as_that_moves(difference: int) -> None:
    pulse, started_ns = Pulse(), 1_000_000 * 10**9

    def silent(beat: int, now: int) -> float:
        """What is said at that second of a pipeline that was last alive at the other."""
        told_ns = started_ns + (beat + difference) * 10**9
        return pulse.silent_seconds(told_ns, started_ns + now * 10**9, float(now))

    silent(1, 1)
    assert [silent(now, now) for now in (2, 3, 4)] == [0, 0, 0]
    assert silent(4, 6) == 2
    assert silent(4, 11) == 7 > ALIVE_SECONDS
    assert silent(4, 100) == 96
    assert silent(101, 101) == 0


def test_a_time_that_moved_between_two_looks_far_apart_proves_nothing() -> None:
    pulse = Pulse()
    pulse.silent_seconds(1 * 10**9, 1 * 10**9, 1.0)
    assert pulse.silent_seconds(31 * 10**9, 61 * 10**9, 61.0) == 30


def test_the_metabase_is_not_asked_at_each_request(metabase: Metabase, clock: Clock) -> None:
    alive(metabase, clock)
    asked: list[Metabase] = []
    original = metabase.check
    metabase.check = lambda: (asked.append(metabase), original())[1]  # type: ignore[method-assign]
    ready = Readiness(metabase, 100)
    assert {ready() for _ in range(5)} == {ready()}
    assert len(asked) < 5


def test_who_asks_while_another_looks_waits_for_what_it_sees(
    metabase: Metabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[Metabase] = []

    def slow_look(looked_at: Metabase, _retention_hours: int, _pulse: Pulse) -> ReadyState:
        looks.append(looked_at)
        Event().wait(0.1)
        return ReadyState("seen")

    monkeypatch.setattr(readiness, "look", slow_look)
    ready, together = Readiness(metabase, 100), Barrier(4)

    def ask(_: int) -> ReadyState:
        together.wait(10)
        return ready()

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(ask, range(4))) == [ReadyState("seen")] * 4
    assert len(looks) == 1


def test_housekeeping_goes_on_after_an_error_that_nobody_foresaw(
    metabase: Metabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("nobody has thought of this")

    monkeypatch.setattr(housekeeping_module, "run_lifecycle", fail)
    with capture_logs() as lines, housekeeping(metabase, Blobs(f"file://{tmp_path}/objects"), 0.01, 1):
        until(lambda: sum(line["event"] == "bytes_swept" for line in lines) > 1, 10, lambda: str(lines))
    failed = [line for line in lines if line["event"] == "housekeeping_failed"]
    assert len(failed) > 1
    assert {(line["job"], line["error"], line["reason"]) for line in failed} == {
        ("lifecycle", "RuntimeError", "nobody has thought of this")
    }


@pytest.mark.usefixtures("log")
def test_the_gateway_trims_by_itself(metabase: Metabase, clock: Clock, tmp_path: Path) -> None:
    write(metabase, "a")
    start = metabase.changes.start()
    clock.passed_hours = 2
    write(metabase, "b")
    with housekeeping(metabase, Blobs(f"file://{tmp_path}/objects"), 0.01, 1):
        until(lambda: metabase.changes.start() != start, 10, lambda: "not trimmed")
