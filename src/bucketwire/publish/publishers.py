"""The publishers that a process keeps open, one a topic, the least recently used dropped first."""

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock

from bucketwire.event.topic import Topic
from bucketwire.publish.base import Publisher
from bucketwire.publish.connections import Connections

KEPT = 128
_Key = tuple[str, frozenset[tuple[str, str]]]


class Publishers:
    """Publishers by topic and its attributes: a topic that is set anew gets a new one.

    Threads may call it at once, and publish meanwhile: a publisher that is closed gives up nothing that a
    call under way needs.
    """

    def __init__(
        self,
        open_publisher: Callable[[Topic, Connections], Publisher],
        connections: Connections,
        kept: int = KEPT,
    ) -> None:
        self._open = open_publisher
        self._connections = connections
        self._kept = kept
        self._lock = Lock()
        self._opened: OrderedDict[_Key, Publisher] = OrderedDict()

    def get(self, topic: Topic) -> Publisher:
        """The topic's publisher; `ConfigError` when there can be none."""
        key = (topic.arn, frozenset(topic.attributes.items()))
        with self._lock:
            publisher = self._opened.get(key)
            if publisher is not None:
                self._opened.move_to_end(key)
                return publisher
        opened = self._open(topic, self._connections)
        with self._lock:
            publisher = self._opened.setdefault(key, opened)
        if publisher is not opened:  # another thread was faster
            opened.close()
        return publisher

    def shrink(self) -> None:
        """Close the least recently used ones that are too many, and connections that are idle."""
        with self._lock:
            too_many = max(0, len(self._opened) - self._kept)
            dropped = [self._opened.popitem(last=False)[1] for _ in range(too_many)]
        for publisher in dropped:
            publisher.close()
        self._connections.close_idle()
