"""The keeper of the cursor: what it saves, and when it says that the pipeline is alive."""

import threading
import time
from collections.abc import Callable, Iterator

import pytest
import structlog

from bucketwire.config import CONSUMER
from bucketwire.errors import ConfigError, Unavailable
from bucketwire.metabase.base import Metabase
from bucketwire.metabase.values import Offset
from bucketwire.pipeline import cursor
from bucketwire.pipeline.cursor import CursorKeeper

PATIENCE_SECONDS = 20


@pytest.fixture
def keeper(metabase: Metabase, monkeypatch: pytest.MonkeyPatch) -> Iterator[CursorKeeper]:
    for name, seconds in (("SAVE_EVERY", 0.01), ("BEAT_EVERY", 0.02), ("STALLED_AFTER", 0.3)):
        monkeypatch.setattr(cursor, f"{name}_SECONDS", seconds)
    made = CursorKeeper(metabase.cursors, metabase.changes)
    made.start()
    yield made
    made.close()


def until(condition: Callable[[], bool]) -> None:
    ends = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < ends, "waited in vain"
        time.sleep(0.01)


def alive(metabase: Metabase) -> int:
    return metabase.cursors.alive_at_ns(CONSUMER) or 0


def test_a_cold_pipeline_keeps_its_place_and_is_not_alive(metabase: Metabase, keeper: CursorKeeper) -> None:
    keeper.advance("0", alive=False)
    until(lambda: metabase.cursors.load(CONSUMER) == "0")
    assert alive(metabase) == 0
    keeper.advance("0")
    until(lambda: alive(metabase) > 0)


def test_a_pipeline_that_stalls_is_not_alive_until_it_goes_on(
    metabase: Metabase, keeper: CursorKeeper
) -> None:
    keeper.advance("0")
    until(lambda: alive(metabase) > 0)
    threading.Event().wait(1.0)
    last = alive(metabase)
    threading.Event().wait(0.5)
    assert alive(metabase) == last
    for _ in range(5):  # at the same place: nothing has come, but somebody asks again
        keeper.advance("0")
        threading.Event().wait(0.05)
    until(lambda: alive(metabase) > last)


@pytest.mark.parametrize("trouble", [Unavailable("away"), ConfigError("no such table"), RuntimeError("ours")])
def test_whatever_keeps_it_from_saving_it_goes_on(
    metabase: Metabase, keeper: CursorKeeper, monkeypatch: pytest.MonkeyPatch, trouble: Exception
) -> None:
    tried = threading.Event()

    def refuse(*_: object) -> bool:
        tried.set()
        raise trouble

    with monkeypatch.context() as patched:
        patched.setattr(metabase.cursors, "save", refuse)
        keeper.advance("0")
        assert tried.wait(PATIENCE_SECONDS)
    keeper.advance("0")
    until(lambda: metabase.cursors.load(CONSUMER) == "0")
    assert not keeper.is_lost


def test_trouble_at_the_last_write_is_told_in_a_log_line(
    metabase: Metabase, keeper: CursorKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper.advance("0")
    until(lambda: metabase.cursors.load(CONSUMER) == "0")

    def refuse(*_: object) -> bool:
        raise ConfigError("no such table")

    monkeypatch.setattr(metabase.cursors, "save", refuse)
    with structlog.testing.capture_logs() as lines:
        keeper.close()
    assert lines[-1]["event"] == "cursor_not_saved"
    assert lines[-1]["reason"] == "ConfigError: no such table"


def test_of_two_threads_that_save_at_once_none_writes_an_older_offset_over_a_newer_one(
    metabase: Metabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper = CursorKeeper(metabase.cursors, metabase.changes)
    save = metabase.cursors.save
    first_is_in, second_is_done, go_on = threading.Event(), threading.Event(), threading.Event()

    def hesitate(consumer: str, offset: Offset, alive_at_ns: int, holder: str) -> bool:
        if offset == "1":
            first_is_in.set()
            assert go_on.wait(PATIENCE_SECONDS)
        return save(consumer, offset, alive_at_ns, holder)

    def save_second() -> None:
        keeper.save()
        second_is_done.set()

    monkeypatch.setattr(metabase.cursors, "save", hesitate)
    keeper.advance("1")
    first, second = threading.Thread(target=keeper.save), threading.Thread(target=save_second)
    first.start()
    assert first_is_in.wait(PATIENCE_SECONDS)
    keeper.advance("2")
    second.start()
    second_is_done.wait(0.3)  # in vain, as the first is not done
    go_on.set()
    first.join()
    second.join()
    assert metabase.cursors.load(CONSUMER) == "2"
