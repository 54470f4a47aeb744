"""The publishers that a process keeps open."""

from concurrent.futures import ThreadPoolExecutor
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
