"""Which topics are not persistent: known at the next write, by reading what has changed."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event
from typing import Any

import pytest

from bucketwire.event.dialect import AWS
from bucketwire.event.topic import Topic
from bucketwire.gateway.push import SynchronousTopics
from bucketwire.metabase.base import Metabase
from factories import topic

WRITERS = 8
LONG_SECONDS = 60.0


class WatchedTopics:
    """Remembers which topics were read, and lets a read begin when the test says so."""

    def __init__(self, metabase: Metabase) -> None:
        self.metabase = metabase
        self.read: list[str] = []
        self.may_read = Event()
        self.may_read.set()

    def version(self) -> int:
        return self.metabase.topics.version()

    def changed(self, after: int, limit: int) -> list[tuple[int, Topic]]:
        assert self.may_read.wait(LONG_SECONDS)
        changed = self.metabase.topics.changed(after, limit)
        self.read += [each.name for _, each in changed]
        return changed


@pytest.fixture
def watched(metabase: Metabase) -> WatchedTopics:
    return WatchedTopics(metabase)


@pytest.fixture
def synchronous(watched: WatchedTopics) -> SynchronousTopics:
    topics: Any = watched
    return SynchronousTopics(topics, AWS)


def put(metabase: Metabase, name: str, **attributes: str) -> str:
    made = topic(name=name, **attributes)
    metabase.topics.put(made)
    return made.arn


def test_topics_that_become_synchronous_or_stop_being_so_are_known_at_the_next_write(
    metabase: Metabase, synchronous: SynchronousTopics
) -> None:
    first, second = put(metabase, "a", persistent="false"), put(metabase, "b", persistent="false")
    put(metabase, "c")
    metabase.topics.put(topic("", name="d", persistent="false"))
    assert synchronous.arns() == {first, second}
    put(metabase, "a", persistent="true")
    third = put(metabase, "c", persistent="false")
    assert synchronous.arns() == {second, third}
    metabase.topics.delete(second)
    assert synchronous.arns() == {third}


def test_a_change_of_one_topic_makes_nobody_read_the_others(
    metabase: Metabase, watched: WatchedTopics, synchronous: SynchronousTopics
) -> None:
    for name in "abc":
        put(metabase, name, persistent="false")
    synchronous.arns()
    assert watched.read == ["a", "b", "c"]
    put(metabase, "b", OpaqueData="x", persistent="false")
    assert len(synchronous.arns()) == 3
    assert len(synchronous.arns()) == 3
    assert watched.read == ["a", "b", "c", "b"]


def test_of_many_writers_at_once_one_reads_and_all_know(
    metabase: Metabase, watched: WatchedTopics, synchronous: SynchronousTopics
) -> None:
    arn = put(metabase, "a", persistent="false")
    watched.may_read.clear()
    together = Barrier(WRITERS + 1)

    def write() -> frozenset[str]:
        together.wait(LONG_SECONDS)
        return synchronous.arns()

    with ThreadPoolExecutor(WRITERS) as pool:
        writes = [pool.submit(write) for _ in range(WRITERS)]
        together.wait(LONG_SECONDS)
        watched.may_read.set()
        assert [each.result() for each in writes] == [{arn}] * WRITERS
    assert watched.read == ["a"]
