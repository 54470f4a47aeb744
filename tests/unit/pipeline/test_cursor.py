"""The keeper of the cursor: what it saves, and when it says that the pipeline is alive."""

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from bucketwire.config import CONSUMER
from bucketwire.metabase.base import Metabase
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
