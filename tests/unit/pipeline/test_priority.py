"""A standby starts behind the others, and works beside them."""

import os
from pathlib import Path

import pytest

from bucketwire.pipeline import priority


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
