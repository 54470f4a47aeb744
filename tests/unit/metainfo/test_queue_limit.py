"""Which queues are full."""

from unittest.mock import Mock

import pytest

from bucketwire.metabase.base import Metabase
from bucketwire.metainfo.queue_limit import FullTopics, QueueLimits
from clock import Clock
from factories import message, topic

SERVER_BYTES = 1_000


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def full(metabase: Metabase, clock: Clock) -> FullTopics:
    return FullTopics(metabase.queue, metabase.topics, QueueLimits(SERVER_BYTES), clock.monotonic)


def park(metabase: Metabase, name: str, size_bytes: int) -> None:
    waiting = message(f"of-{name}", topic_arn=topic(name=name).arn, body=b"x" * size_bytes)
    metabase.queue.park([waiting], due_at_ns=0, attempts=1, reason="down")


def names(full: FullTopics) -> set[str]:
    return {arn.rpartition(":")[2] for arn in full.arns()}


def test_a_topic_has_its_own_limit_or_that_of_the_server(metabase: Metabase, full: FullTopics) -> None:
    for name, limit in {"plain": "", "small": "10", "large": "5000", "endless": "0"}.items():
        metabase.topics.put(topic(name=name, **({"queue-limit": limit} if limit else {})))
    for name in ("plain", "small", "large", "endless", "unknown"):
        park(metabase, name, 2 * SERVER_BYTES)
    assert names(full) == {"plain", "small", "unknown"}


def test_a_limit_that_is_set_counts_at_the_next_look(
    metabase: Metabase, full: FullTopics, clock: Clock
) -> None:
    metabase.topics.put(topic(name="plain"))
    park(metabase, "plain", SERVER_BYTES // 2)
    assert names(full) == set()
    metabase.topics.put(topic(name="plain", **{"queue-limit": "10"}))
    assert names(full) == set()
    clock.pass_by(2)
    assert names(full) == {"plain"}


def test_a_look_asks_for_no_single_topic(
    metabase: Metabase, full: FullTopics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metabase.topics, "get", asked := Mock())
    for number in range(5):
        park(metabase, f"topic-{number}", 2 * SERVER_BYTES)
    assert len(full.arns()) == 5
    assert not asked.called
