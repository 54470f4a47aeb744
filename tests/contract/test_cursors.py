"""The contract of `Cursors`: one holder at a time says how far the stream was read."""

import threading

from bucketwire.metabase.base import Metabase

LONG_SECONDS = 50.0


def test_a_cursor_is_whoevers_as_long_as_nobody_has_a_lease(metabase: Metabase) -> None:
    assert metabase.cursors.load("pipeline") is None
    assert metabase.cursors.save("pipeline", "7", 5)
    assert (metabase.cursors.load("pipeline"), metabase.cursors.alive_at_ns("pipeline")) == ("7", 5)


def test_only_one_can_have_the_lease(metabase: Metabase) -> None:
    assert metabase.cursors.lease("pipeline", "first", LONG_SECONDS)
    assert not metabase.cursors.lease("pipeline", "second", LONG_SECONDS)
    assert metabase.cursors.lease("pipeline", "first", LONG_SECONDS)
    assert metabase.cursors.lease("other consumer", "second", LONG_SECONDS)


def test_a_lease_that_is_given_up_or_over_is_anybodys(metabase: Metabase) -> None:
    assert metabase.cursors.lease("pipeline", "first", LONG_SECONDS)
    assert metabase.cursors.lease("pipeline", "first", 0)
    assert metabase.cursors.lease("pipeline", "second", LONG_SECONDS)
    assert not metabase.cursors.lease("pipeline", "first", LONG_SECONDS)


def test_who_has_lost_the_lease_saves_nothing(metabase: Metabase) -> None:
    metabase.cursors.lease("pipeline", "first", LONG_SECONDS)
    assert metabase.cursors.save("pipeline", "7", 1, "first")
    metabase.cursors.lease("pipeline", "first", 0)
    metabase.cursors.lease("pipeline", "second", LONG_SECONDS)
    assert not metabase.cursors.save("pipeline", "9", 2, "first")
    assert not metabase.cursors.save("pipeline", "9", 2)
    assert metabase.cursors.load("pipeline") == "7"
    assert metabase.cursors.save("pipeline", "8", 3, "second")


def test_a_lease_that_has_run_out_can_be_kept_if_nobody_had_it_since(metabase: Metabase) -> None:
    assert not metabase.cursors.keep("pipeline", "first", LONG_SECONDS), "it was never taken"
    metabase.cursors.lease("pipeline", "first", 0)
    assert metabase.cursors.keep("pipeline", "first", LONG_SECONDS)
    assert metabase.cursors.holder("pipeline") == "first"
    metabase.cursors.keep("pipeline", "first", 0)
    metabase.cursors.lease("pipeline", "second", 0)
    assert not metabase.cursors.keep("pipeline", "first", LONG_SECONDS)
    assert metabase.cursors.holder("pipeline") is None


def test_who_was_away_while_another_had_the_lease_saves_nothing(metabase: Metabase) -> None:
    metabase.cursors.lease("pipeline", "paused", 0)
    metabase.cursors.lease("pipeline", "second", LONG_SECONDS)
    assert metabase.cursors.save("pipeline", "9", 1, "second")
    metabase.cursors.keep("pipeline", "second", 0)
    assert not metabase.cursors.save("pipeline", "7", 2, "paused")
    assert metabase.cursors.load("pipeline") == "9"


def test_a_consumer_can_be_said_not_to_be_at_work(metabase: Metabase) -> None:
    metabase.cursors.not_alive("pipeline")
    assert metabase.cursors.load("pipeline") is None
    metabase.cursors.save("pipeline", "7", 5)
    metabase.cursors.lease("pipeline", "first", LONG_SECONDS)
    metabase.cursors.not_alive("pipeline")
    assert metabase.cursors.alive_at_ns("pipeline") == 5
    metabase.cursors.keep("pipeline", "first", 0)
    metabase.cursors.not_alive("pipeline")
    assert (metabase.cursors.load("pipeline"), metabase.cursors.alive_at_ns("pipeline")) == ("7", 0)


def test_a_lease_alone_is_no_cursor(metabase: Metabase) -> None:
    metabase.cursors.lease("pipeline", "first", LONG_SECONDS)
    assert metabase.cursors.load("pipeline") is None


def test_of_many_who_ask_at_once_one_gets_it(metabase: Metabase) -> None:
    got: list[str] = []

    def ask(holder: str) -> None:
        if metabase.cursors.lease("pipeline", holder, LONG_SECONDS):
            got.append(holder)

    threads = [threading.Thread(target=ask, args=(f"holder-{number}",)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 1


def test_the_holder_of_a_lease_is_known_as_long_as_it_lasts(metabase: Metabase) -> None:
    assert metabase.cursors.holder("pipeline") is None
    metabase.cursors.lease("pipeline", "first", LONG_SECONDS)
    assert metabase.cursors.holder("pipeline") == "first"
    assert metabase.cursors.holder("other consumer") is None
    metabase.cursors.lease("pipeline", "first", 0)
    assert metabase.cursors.holder("pipeline") is None


def test_a_lease_from_when_the_clock_was_ahead_counts_for_nothing(metabase: Metabase) -> None:
    metabase.cursors.lease("pipeline", "from tomorrow", 24 * LONG_SECONDS * 60)
    assert metabase.cursors.lease("pipeline", "today", LONG_SECONDS)
    assert metabase.cursors.save("pipeline", "7", 1, "today")


def test_a_cursor_never_goes_back(metabase: Metabase) -> None:
    """A process that was slow to die may save after the one that has taken its place, in the same name."""
    metabase.cursors.lease("pipeline", "first", LONG_SECONDS)
    assert metabase.cursors.save("pipeline", "10", 1, "first")
    assert metabase.cursors.save("pipeline", "9", 2, "first")
    assert (metabase.cursors.load("pipeline"), metabase.cursors.alive_at_ns("pipeline")) == ("10", 2)
