"""Keeps Kafka producers from brokers in private networks, as far as it can be seen from outside librdkafka.

librdkafka looks names up by itself and lets nobody see the address before it connects. So the names of the
brokers are looked up here first, in the same way: those of the topic, and those that the brokers advertise,
which `kafka_producer` asks for. What it does not see: a name that leads elsewhere a moment later, and brokers
that are advertised between two looks.
"""

import socket
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from threading import Lock, Thread

from bucketwire.publish.base import Retry
from bucketwire.publish.guard import PRIVATE_NETWORK, forbidden

KEPT_SECONDS = 60.0
"""How long a look counts."""
PRIVATE = Retry(PRIVATE_NETWORK)
TOO_SLOW = Retry("the host names of the brokers were not found in time")

_NOT_FOUND = Retry("host name not found")


class BrokersGuard:
    """Says whether all brokers are in public networks. Threads may ask at once; they share one look."""

    def __init__(self, hosts: Sequence[str], clock: Callable[[], float] = time.monotonic) -> None:
        self._hosts = hosts
        self._clock = clock
        self._lock = Lock()
        self._look: Future[Retry | None] | None = None
        self._looked_at = 0.0

    def refusal(self, seconds: float) -> Retry | None:
        """Why nothing may be sent, or None. Blocks no longer than that."""
        try:
            return self._latest().result(timeout=seconds)
        except TimeoutError:
            return TOO_SLOW

    def _latest(self) -> "Future[Retry | None]":
        with self._lock:
            if self._look is None or self._is_stale(self._look):
                self._look, self._looked_at = Future(), self._clock()
                Thread(target=self._answer, args=[self._look], name="kafka-guard", daemon=True).start()
            return self._look

    def _is_stale(self, look: "Future[Retry | None]") -> bool:
        if not look.done():  # one at a time, or a slow name server would cost a thread for each call
            return False
        return look.result() is _NOT_FOUND or self._clock() - self._looked_at >= KEPT_SECONDS

    def _answer(self, look: "Future[Retry | None]") -> None:
        try:
            private = any(forbidden(address) for host in self._hosts for address in _addresses(host))
        except (OSError, ValueError):
            look.set_result(_NOT_FOUND)
        else:
            look.set_result(PRIVATE if private else None)


def _addresses(host: str) -> set[str]:
    """Where the name leads. In bytes, as Python would turn it into another name that librdkafka does not."""
    found = socket.getaddrinfo(host.encode(), None, type=socket.SOCK_STREAM)
    return {str(address[0]) for *_, address in found}
