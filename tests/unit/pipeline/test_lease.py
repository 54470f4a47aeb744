"""One pipeline at a time."""

import threading

import pytest

from bucketwire.config import CONSUMER
from bucketwire.errors import ConfigError, Unavailable
from bucketwire.metabase.base import Cursors, Metabase
from bucketwire.pipeline import lease as lease_module
from bucketwire.pipeline.lease import Lease, new_holder
from wire import until


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease_module, "KEEP_EVERY_SECONDS", 0.02)
    monkeypatch.setattr(lease_module, "LOOK_EVERY_SECONDS", 0.02)


def test_no_two_pipelines_have_the_same_name() -> None:
    assert new_holder() != new_holder()


def test_the_second_stands_by_until_the_first_lets_go(metabase: Metabase) -> None:
    first, second = Lease(metabase.cursors, "first"), Lease(metabase.cursors, "second")
    assert first.wait(threading.Event())
    took = threading.Event()

    def stand_by() -> None:
        if second.wait(threading.Event()):
            took.set()

    waiting = threading.Thread(target=stand_by)
    waiting.start()
    assert not took.wait(0.2)
    assert not first.is_lost()
    first.release()
    assert took.wait(10)
    waiting.join()
    assert not second.is_lost()
    second.release()


def test_anybody_can_see_whether_it_is_held(metabase: Metabase) -> None:
    first, second = Lease(metabase.cursors, "first"), Lease(metabase.cursors, "second")
    assert not second.is_held()
    first.wait(threading.Event())
    assert second.is_held()
    first.release()
    assert not second.is_held()


def test_a_standby_can_be_stopped(metabase: Metabase) -> None:
    first = Lease(metabase.cursors, "first")
    first.wait(threading.Event())
    stopping = threading.Event()
    stopping.set()
    assert not Lease(metabase.cursors, "second").wait(stopping)
    first.release()


def test_a_lease_that_another_has_taken_is_lost(metabase: Metabase) -> None:
    paused = Lease(metabase.cursors, "paused")
    paused.wait(threading.Event())
    paused._released.set()  # it keeps nothing any more, as if it were stopped
    paused._thread.join()
    metabase.cursors.lease(CONSUMER, "paused", 0)
    other = Lease(metabase.cursors, "other")
    assert other.wait(threading.Event())
    paused._prolong()
    assert paused.is_lost()
    assert not metabase.cursors.save(CONSUMER, "9", 1, "paused")
    other.release()
    paused._prolong()
    assert paused.is_lost(), "the other may have passed and trimmed what this one is at"
    assert not metabase.cursors.save(CONSUMER, "9", 1, "paused")


class Away:
    """The cursors of a metabase that is away, or has another trouble, when it is told to be."""

    def __init__(self, cursors: Cursors, trouble: Exception) -> None:
        self._cursors = cursors
        self._trouble = trouble
        self.away = False
        self.refused = 0

    def lease(self, consumer: str, holder: str, seconds: float) -> bool:
        return self._cursors.lease(consumer, holder, seconds)

    def keep(self, consumer: str, holder: str, seconds: float) -> bool:
        if self.away:
            self.refused += 1
            raise self._trouble
        return self._cursors.keep(consumer, holder, seconds)


TROUBLES = [Unavailable("away"), ConfigError("the metabase file cannot be used"), RuntimeError("a mistake")]


@pytest.mark.parametrize("trouble", TROUBLES, ids=lambda trouble: type(trouble).__name__)
def test_a_lease_that_ran_out_while_the_metabase_was_away_is_kept_if_nobody_took_it(
    metabase: Metabase, monkeypatch: pytest.MonkeyPatch, trouble: Exception
) -> None:
    monkeypatch.setattr(lease_module, "SECONDS", 0.05)
    cursors = Away(metabase.cursors, trouble)
    kept = Lease(cursors, "first")  # type: ignore[arg-type]
    assert kept.wait(threading.Event())
    cursors.away = True
    until(lambda: cursors.refused > 5, 10, lambda: "it does not ask")
    cursors.away = False
    until(lambda: metabase.cursors.holder(CONSUMER) == "first", 10, lambda: "it was not taken again")
    assert not kept.is_lost()
    kept.release()


@pytest.mark.parametrize("trouble", TROUBLES, ids=lambda trouble: type(trouble).__name__)
def test_a_lease_that_another_took_in_a_time_of_trouble_is_lost(
    metabase: Metabase, monkeypatch: pytest.MonkeyPatch, trouble: Exception
) -> None:
    monkeypatch.setattr(lease_module, "SECONDS", 0.05)
    cursors = Away(metabase.cursors, trouble)
    cut_off = Lease(cursors, "first")  # type: ignore[arg-type]
    assert cut_off.wait(threading.Event())
    cursors.away = True
    until(lambda: metabase.cursors.lease(CONSUMER, "second", 60), 10, lambda: "it does not run out")
    seen = cursors.refused
    until(lambda: cursors.refused > seen, 10, lambda: "it does not ask")
    assert not cut_off.is_lost(), "nobody has told it yet"
    cursors.away = False
    until(cut_off.is_lost, 10, lambda: "it has not noticed")
    cut_off.release()
    assert metabase.cursors.holder(CONSUMER) == "second"
