"""What the next batch holds, and whose turn it is to say so."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bucketwire.config import CONSUMER, PipelineSettings
from bucketwire.event.name import Operation
from bucketwire.event.topic import Topic
from bucketwire.metabase import open_metabase
from bucketwire.metabase.base import Metabase
from bucketwire.pipeline.source import NOT_BEGUN, OrderedTopics, Planner
from factories import new_object, origin, rule, topic
from wire import until as wait_until

KAFKA = "kafka://host"
ROWS = 100


@pytest.fixture
def metabase(tmp_path: Path) -> Iterator[Metabase]:
    opened = open_metabase(f"sqlite:///{tmp_path}/metabase.db")
    opened.buckets.create("media", "owner-1", "us-east-1")
    opened.rules.edit("media", lambda _: [rule()])
    yield opened
    opened.close()


@pytest.fixture
def planner(tmp_path: Path) -> Iterator[Planner]:
    url = f"sqlite:///{tmp_path}/metabase.db"
    settings = PipelineSettings(metabase=url, dialect="aws", scratch=tmp_path, holder="first")
    made = Planner(settings, open_metabase(url))
    yield made
    made.close()


def put(metabase: Metabase, count: int) -> None:
    for number in range(count):
        metabase.objects.put("media", new_object(str(number)), Operation.PUT, origin())


def until(condition: Callable[[], bool]) -> None:
    wait_until(condition, 20, lambda: "it did not happen in time")


def test_a_pipeline_that_stands_by_gives_nothing(metabase: Metabase, planner: Planner) -> None:
    put(metabase, 3)
    metabase.cursors.lease(CONSUMER, "other", 60)
    assert planner.next_offset(NOT_BEGUN, ROWS) == NOT_BEGUN
    assert planner.slices(NOT_BEGUN, NOT_BEGUN)[0].start == planner.slices(NOT_BEGUN, NOT_BEGUN)[0].end


def test_it_begins_at_the_cursor_of_the_moment_when_its_turn_comes(
    metabase: Metabase, planner: Planner
) -> None:
    put(metabase, 3)
    done = metabase.changes.head(metabase.changes.start(), 2)
    metabase.cursors.save(CONSUMER, done, 0)
    metabase.cursors.lease(CONSUMER, "first", 60)
    end = planner.next_offset(NOT_BEGUN, ROWS)
    (part,) = planner.slices(NOT_BEGUN, end)
    assert part.start == done
    assert len(list(metabase.changes.read(part))) == 1


def test_who_has_lost_the_cursor_gives_no_further_batch(metabase: Metabase, planner: Planner) -> None:
    put(metabase, 3)
    metabase.cursors.lease(CONSUMER, "first", 60)
    end = planner.next_offset(NOT_BEGUN, ROWS)
    metabase.cursors.keep(CONSUMER, "first", 0)
    metabase.cursors.lease(CONSUMER, "second", 60)
    metabase.cursors.save(CONSUMER, end, time.time_ns(), "second")
    put(metabase, 3)
    until(lambda: planner.next_offset(end, ROWS) == end and planner._cursor.is_lost)
    assert planner.next_offset(end, ROWS) == end
    assert metabase.cursors.load(CONSUMER) == end


@pytest.fixture
def ordered(metabase: Metabase) -> OrderedTopics:
    return OrderedTopics(metabase.topics, metabase.changes)


def test_a_batch_is_one_slice_while_a_topic_wants_order(metabase: Metabase, tmp_path: Path) -> None:
    put(metabase, 4)
    url = f"sqlite:///{tmp_path}/metabase.db"
    settings = PipelineSettings(metabase=url, dialect="aws", scratch=tmp_path, holder="first", slice_rows=2)
    metabase.cursors.lease(CONSUMER, "first", 60)
    planner = Planner(settings, open_metabase(url))
    end = planner.next_offset(NOT_BEGUN, ROWS)
    assert len(planner.slices(NOT_BEGUN, end)) > 1
    metabase.topics.put(topic(KAFKA, ordering="key"))
    assert len(planner.slices(NOT_BEGUN, end)) == 1
    planner.close()


def test_a_topic_that_stops_wanting_order_is_known_at_once(
    metabase: Metabase, ordered: OrderedTopics
) -> None:
    put(metabase, 1)
    start = metabase.changes.start()
    assert not ordered.any(start)
    metabase.topics.put(topic(KAFKA, ordering="key"))
    assert ordered.any(start)
    metabase.topics.put(topic())
    assert not ordered.any(start)


@pytest.mark.parametrize("endpoint", ["http://host/", "https://host/"])
def test_a_topic_over_http_wants_no_order_between_slices(
    metabase: Metabase, ordered: OrderedTopics, endpoint: str
) -> None:
    put(metabase, 1)
    metabase.topics.put(topic(endpoint, ordering="key"))
    assert not ordered.any(metabase.changes.start())


def test_a_deleted_topic_keeps_its_order_for_what_was_committed_before(
    metabase: Metabase, ordered: OrderedTopics
) -> None:
    metabase.topics.put(topic(KAFKA, ordering="key"))
    put(metabase, 2)
    metabase.topics.delete(topic().arn)
    put(metabase, 2)
    changes, start = metabase.changes, metabase.changes.start()
    offsets = [start, *(changes.head(start, count) for count in (1, 2, 3))]
    assert [ordered.any(offset) for offset in offsets] == [True, True, False, False]


def test_deleted_topics_are_not_kept_in_mind_one_by_one(metabase: Metabase, ordered: OrderedTopics) -> None:
    for name in "abc":
        metabase.topics.put(topic(KAFKA, name, ordering="key"))
    put(metabase, 1)
    for name in "abc":
        metabase.topics.delete(topic(name=name).arn)
    assert ordered.any(metabase.changes.start())
    assert not ordered._living.look()


def test_of_several_deleted_topics_each_keeps_its_order_to_its_end(
    metabase: Metabase, ordered: OrderedTopics
) -> None:
    for name in "ab":
        metabase.topics.put(topic(KAFKA, name, ordering="key"))
    put(metabase, 1)
    metabase.topics.delete(topic(name="b").arn)
    put(metabase, 1)
    metabase.topics.delete(topic(name="a").arn)
    put(metabase, 1)
    changes, start = metabase.changes, metabase.changes.start()
    offsets = [start, *(changes.head(start, count) for count in (1, 2))]
    assert [ordered.any(offset) for offset in offsets] == [True, True, False]


def test_a_change_of_one_topic_reads_no_others(
    metabase: Metabase, ordered: OrderedTopics, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(metabase, 1)
    for name in "abc":
        metabase.topics.put(topic(name=name))
    ordered.any(metabase.changes.start())
    read: list[str] = []
    changed = metabase.topics.changed

    def watched(after: int, limit: int) -> list[tuple[int, Topic]]:
        found = changed(after, limit)
        read.extend(each.name for _, each in found)
        return found

    monkeypatch.setattr(metabase.topics, "changed", watched)
    metabase.topics.put(topic(name="b"))
    ordered.any(metabase.changes.start())
    assert read == ["b"]
