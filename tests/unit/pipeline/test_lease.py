"""One pipeline at a time."""

import threading

import pytest

from bucketwire.config import CONSUMER
from bucketwire.errors import Unavailable
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
    """The cursors of a metabase that is away when it is told to be."""

    def __init__(self, cursors: Cursors) -> None:
        self._cursors = cursors
        self.away = False
        self.refused = 0

    def lease(self, consumer: str, holder: str, seconds: float) -> bool:
        return self._cursors.lease(consumer, holder, seconds)

    def keep(self, consumer: str, holder: str, seconds: float) -> bool:
        if self.away:
            self.refused += 1
            raise Unavailable("away")
        return self._cursors.keep(consumer, holder, seconds)


def test_a_lease_that_ran_out_while_the_metabase_was_away_is_kept_if_nobody_took_it(
    metabase: Metabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease_module, "SECONDS", 0.05)
    cursors = Away(metabase.cursors)
    kept = Lease(cursors, "first")  # type: ignore[arg-type]
    assert kept.wait(threading.Event())
    cursors.away = True
    until(lambda: cursors.refused > 5, 10, lambda: "it does not ask")
    cursors.away = False
    until(lambda: metabase.cursors.holder(CONSUMER) == "first", 10, lambda: "it was not taken again")
    assert not kept.is_lost()
    kept.release()
