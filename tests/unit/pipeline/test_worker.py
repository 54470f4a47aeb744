"""What a worker keeps, and what it keeps Spark from looking at after each task."""

import gc
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bucketwire.config import PipelineSettings
from bucketwire.event.topic import Topic
from bucketwire.metabase.base import Metabase
from bucketwire.pipeline import worker as module
from bucketwire.pipeline.worker import Worker, make_worker
from bucketwire.publish.base import Publisher
from bucketwire.publish.connections import Connections
from factories import topic

LIBRARY = "a_library_of_a_broker"


@pytest.fixture
def worker(metabase: Metabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Worker]:
    """Its publishers need a library that is imported with the first of them."""
    (tmp_path / f"{LIBRARY}.py").write_text("brought = [[] for _ in range(100_000)]\n")
    monkeypatch.syspath_prepend(tmp_path)
    really_open = module.open_publisher

    def open_publisher(topic: Topic, connections: Connections) -> Publisher:
        __import__(LIBRARY)
        return really_open(topic, connections)

    monkeypatch.setattr(module, "open_publisher", open_publisher)
    yield make_worker(PipelineSettings(metabase="", dialect="aws", scratch=tmp_path), metabase)
    sys.modules.pop(LIBRARY, None)
    gc.unfreeze()


def test_what_a_library_brings_along_is_not_looked_at_for_garbage_again(worker: Worker) -> None:
    frozen = gc.get_freeze_count()
    worker.publishers.get(topic(name="films"))
    assert gc.get_freeze_count() > frozen + 100_000


def test_a_publisher_that_brings_nothing_along_freezes_nothing(worker: Worker) -> None:
    worker.publishers.get(topic(name="films"))
    gc.unfreeze()
    worker.publishers.get(topic(name="series"))
    worker.drain_publishers.get(topic(name="films"))
    assert gc.get_freeze_count() == 0
