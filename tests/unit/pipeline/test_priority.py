"""A standby starts behind the others, and works beside them."""

import os
import threading
from pathlib import Path

import pytest

from bucketwire.errors import Unavailable
from bucketwire.pipeline import priority
from wire import until


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(priority, "SESSION", tmp_path / "autogroup")
    monkeypatch.setattr(os, "getsid", lambda _: os.getpid())
    return tmp_path / "autogroup"


def test_the_share_of_the_session_is_given_up_and_taken_back(session: Path) -> None:
    session.touch()
    priority.give_way()
    assert session.read_text() == "19"
    priority.take_part()
    assert session.read_text() == "0"


def test_where_sessions_have_no_share_nothing_is_done(session: Path) -> None:
    priority.give_way()
    assert not session.exists()


def test_a_session_with_other_programs_is_left_alone(session: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session.touch()
    monkeypatch.setattr(os, "getsid", lambda _: os.getpid() + 1)
    priority.give_way()
    assert session.read_text() == ""


class Other:
    """The pipeline at work, as one that starts sees it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(priority, "LOOK_EVERY_SECONDS", 0.01)
        self.holds_the_lease = True
        self.trouble: Exception | None = None
        self.looks = 0

    def is_held(self) -> bool:
        self.looks += 1
        if self.trouble:
            raise self.trouble
        return self.holds_the_lease

    def wait_for_looks(self) -> None:
        seen = self.looks
        until(lambda: self.looks > seen + 2, 10, lambda: "it does not look")


def has(session: Path, niceness: str) -> None:
    until(lambda: session.read_text() == niceness, 10, session.read_text)


def threads() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name == "share"]


def test_the_full_share_is_taken_when_the_lease_is_free_and_given_up_when_it_is_not(
    session: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.touch()
    other = Other(monkeypatch)
    with priority.giving_way(other.is_held):
        assert session.read_text() == "19"
        other.holds_the_lease = False
        has(session, "0")
        other.holds_the_lease = True
        has(session, "19")


def test_who_starts_while_nobody_has_the_lease_keeps_its_share_and_does_not_look(
    session: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.touch()
    other = Other(monkeypatch)
    other.holds_the_lease = False
    with priority.giving_way(other.is_held):
        assert threads() == []
    assert session.read_text() == ""


@pytest.mark.parametrize("trouble", [Unavailable("away"), RuntimeError("a mistake")], ids=["away", "mistake"])
def test_a_metabase_that_is_away_changes_no_share_and_ends_no_watch(
    session: Path, monkeypatch: pytest.MonkeyPatch, trouble: Exception
) -> None:
    session.touch()
    other = Other(monkeypatch)
    with priority.giving_way(other.is_held):
        other.trouble = trouble
        other.wait_for_looks()
        assert session.read_text() == "19"
        other.trouble, other.holds_the_lease = None, False
        has(session, "0")


def test_the_watch_ends_with_the_start_and_keeps_no_process_alive(
    session: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.touch()
    other = Other(monkeypatch)
    with priority.giving_way(other.is_held):
        assert [each.daemon for each in threads()] == [True]
    assert threads() == []


def test_a_look_that_ends_after_the_start_changes_nothing() -> None:
    ended = threading.Event()
    ended.set()
    assert priority._adapt(held=False, behind=True, ended=ended)
