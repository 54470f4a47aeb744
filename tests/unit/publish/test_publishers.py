"""The publishers that a process keeps open."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

from bucketwire.publish.connections import Connections
from bucketwire.publish.publishers import Publishers
from factories import topic

KEPT = 2


class Closing:
    """A publisher that notes how often it is closed."""

    def __init__(self) -> None:
        self.closed = 0

    def close(self) -> None:
        self.closed += 1


def test_the_least_recently_used_are_closed_once_when_many_threads_shrink() -> None:
    opened: list[Closing] = []

    def opening(*_: object) -> Any:
        opened.append(Closing())
        return opened[-1]

    publishers = Publishers(opening, Connections(), kept=KEPT)

    def use(number: int) -> None:
        publishers.get(topic(name=f"topic-{number}"))
        publishers.shrink()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(use, range(200)))
    assert sorted(publisher.closed for publisher in opened) == [0] * KEPT + [1] * (200 - KEPT)


def test_threads_that_ask_for_one_topic_at_once_get_the_same_publisher() -> None:
    opened: list[Closing] = []
    both = Barrier(2)

    def opening(*_: object) -> Any:
        both.wait(30)
        opened.append(Closing())
        return opened[-1]

    publishers = Publishers(opening, Connections())
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(publishers.get, [topic(), topic()])
    assert first is second
    assert sorted(each.closed for each in opened) == [0, 1]
    assert first.closed == 0
