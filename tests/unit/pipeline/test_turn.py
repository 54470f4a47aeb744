"""Whose turn it is."""

import threading

from bucketwire.config import CONSUMER
from bucketwire.metabase.base import Metabase
from bucketwire.pipeline.turn import Turn


def test_without_a_name_it_is_always_our_turn(metabase: Metabase) -> None:
    metabase.cursors.lease(CONSUMER, "other", 60)
    assert Turn(metabase.cursors, "").wait(0)


def test_it_is_our_turn_when_the_lease_is_in_our_name(metabase: Metabase) -> None:
    turn = Turn(metabase.cursors, "ours")
    assert not turn.wait(0)
    metabase.cursors.lease(CONSUMER, "other", 60)
    assert not turn.wait(0.15)
    metabase.cursors.lease(CONSUMER, "other", 0)
    threading.Timer(0.2, metabase.cursors.lease, (CONSUMER, "ours", 60)).start()
    assert turn.wait(30)
