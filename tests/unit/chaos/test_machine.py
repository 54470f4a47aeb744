"""What the processors did, as Linux counts it."""

import sys
from threading import Event

import pytest
from chaos.machine import Load, Shares, shares, watch

LOADS = [Load(at, all=2.0 * at, worked=1.0 * at, stolen=0.5 * max(0, at - 5)) for at in range(11)]


def test_shares_are_of_the_time_that_was_asked_for() -> None:
    assert shares(LOADS, 1.0, 4.0) == Shares(0.5, 0.0)
    assert shares(LOADS, 6.0, 9.0) == Shares(0.5, 0.25)


def test_a_moment_has_shares_of_the_seconds_around_it() -> None:
    assert shares(LOADS, 8.0, 8.0) == Shares(0.5, 0.25)


@pytest.mark.parametrize(("began", "ended"), [(20.0, 30.0), (-5.0, -2.0), (11.5, 12.0)])
def test_what_was_not_watched_has_none(began: float, ended: float) -> None:
    assert shares(LOADS, began, ended) is None


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts")
def test_loads_are_of_this_machine() -> None:
    stop = Event()
    stop.set()
    loads: list[Load] = []
    watch(loads, stop)
    (load,) = loads
    assert 0 < load.worked < load.all
    assert 0 <= load.stolen < load.all
