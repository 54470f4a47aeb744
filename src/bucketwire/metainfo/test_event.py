"""Sends the test event to destinations, to see whether they take it.

    start(topic, message) -> Future: empty when it was acknowledged, else the reason why not

Each has a publisher of its own, which is closed behind it. So many are under way at once; one that has not
had its turn when its time is over was not acknowledged. A reason is the publisher's: it holds no URL and no
password.
"""

import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing

from bucketwire.errors import ConfigError
from bucketwire.event.message import Message
from bucketwire.event.topic import Topic
from bucketwire.publish import open_publisher
from bucketwire.publish.base import Delivered, no_answer
from bucketwire.publish.connections import Connections

LIMIT_SECONDS = 10.0
"""Within which a destination must have acknowledged the test event."""
AT_ONCE = 64


class Trials:
    """Tries destinations out. Threads and event loops may call at once."""

    def __init__(
        self, connections: Connections, limit_seconds: float = LIMIT_SECONDS, at_once: int = AT_ONCE
    ) -> None:
        self.limit_seconds = limit_seconds
        self.unanswered = no_answer(limit_seconds).reason
        self._connections = connections
        self._threads = ThreadPoolExecutor(at_once, thread_name_prefix="test-event")

    def start(self, topic: Topic, message: Message) -> Future[str]:
        """Send the message; the future has the reason why it was not acknowledged, or nothing."""
        return self._threads.submit(self._reason, topic, message, time.monotonic() + self.limit_seconds)

    def close(self) -> None:
        """Stop; what is under way is given up. Calling it twice is harmless."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._connections.close()

    def _reason(self, topic: Topic, message: Message, ends_at: float) -> str:
        remaining_seconds = ends_at - time.monotonic()
        if remaining_seconds <= 0:
            return self.unanswered
        try:
            publisher = open_publisher(topic, self._connections)
        except ConfigError as problem:
            return str(problem)
        with closing(publisher):
            (outcome,) = publisher.publish([message], remaining_seconds)
        self._connections.close_idle()
        if isinstance(outcome, Delivered):
            return ""
        return self.unanswered if time.monotonic() >= ends_at else outcome.reason
