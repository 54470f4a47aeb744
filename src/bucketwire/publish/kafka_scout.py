"""Asks the brokers of a topic where their cluster listens, before anything else is sent to it.

librdkafka turns from the brokers that it was given to those that they advertise as soon as there is anything
to do. So the question is asked by a producer of its own that has nothing to do: it is not idempotent, as that
one asks for an id at once, and it knows no topic, as it would call the leaders of that one. It asks by itself
when it is connected; what it has heard stands in its statistics. Then it is thrown away, well within the
second that it waits between two connections.

Every broker in the statistics counts, whatever number it gives itself: librdkafka would call each of them.
"""

import math
import time
from collections.abc import Sequence
from threading import Lock

import msgspec
from confluent_kafka import KafkaError, Producer

from bucketwire.publish.base import Retry
from bucketwire.publish.kafka_failure import connection_reason
from bucketwire.publish.kafka_guard import KEPT_SECONDS, PRIVATE, TOO_SLOW, BrokersGuard
from bucketwire.publish.kafka_settings import Cluster

_CAUTION = {
    "enable.idempotence": "false",
    "reconnect.backoff.ms": "10000",  # half of it, but no more than a second, is between connections
    "reconnect.backoff.max.ms": "10000",
    "statistics.interval.ms": "20",
    "log_level": 0,
}
_TURN_SECONDS = 0.1
_UNKNOWN = -1
_SILENCE = Retry("the brokers did not say in time where they listen")


class _Broker(msgspec.Struct):
    nodeid: int
    """`_UNKNOWN` for one that was given and has not told its number; a liar may tell any."""
    nodename: str
    """host:port, also where the host is an address with colons."""


class _Statistics(msgspec.Struct):
    brokers: dict[str, _Broker]


class ListenersGuard:
    """Says whether a cluster listens in public networks alone. Threads may ask at once, and share a look."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._lock = Lock()
        """Of the one who looks."""
        self._refusal: Retry | None = None
        self._looked_at = -math.inf

    def refusal(self, until: float) -> Retry | None:
        """Why nothing may be sent, or None; `KafkaException` or `UnusableFile` if no one can be asked."""
        asked_at = time.monotonic()
        if not self._lock.acquire(timeout=max(0.0, until - asked_at)):
            return _SILENCE
        try:
            if not self._is_known(asked_at):
                self._refusal = _listeners_refusal(self._cluster, until)
                self._looked_at = time.monotonic()
            return self._refusal
        finally:
            self._lock.release()

    def _is_known(self, asked_at: float) -> bool:
        """Whether it was found out lately. A cause that may pass counts for those alone who waited for it."""
        if self._refusal in {None, PRIVATE}:
            return time.monotonic() - self._looked_at < KEPT_SECONDS
        # who looked may have had less time
        return self._refusal not in {_SILENCE, TOO_SLOW} and self._looked_at >= asked_at


def _listeners_refusal(cluster: Cluster, until: float) -> Retry | None:
    scout = _Scout(cluster)
    try:
        hosts = scout.hosts(until)
    finally:
        scout.close()
    if not hosts:
        return scout.failure or _SILENCE
    return BrokersGuard(hosts).refusal(until - time.monotonic())


class _Scout:
    """A producer that produces nothing."""

    def __init__(self, cluster: Cluster) -> None:
        self.failure: Retry | None = None
        """Why no broker can be asked."""
        self._cause: KafkaError | None = None
        self._hosts: Sequence[str] = ()
        callbacks = {"error_cb": self._note_error, "stats_cb": self._note_statistics}
        self._producer = Producer({**cluster.configuration(), **_CAUTION, **callbacks})

    def hosts(self, until: float) -> Sequence[str]:
        """Where the brokers listen, in their own words; nothing when none has answered in time."""
        while not self._hosts and not self.failure and (remaining := until - time.monotonic()) > 0:
            self._producer.poll(min(remaining, _TURN_SECONDS))
        return self._hosts

    def close(self) -> None:
        """Give up its connections."""
        self._producer.close()

    def _note_statistics(self, text: str) -> None:
        brokers = msgspec.json.decode(text, type=_Statistics).brokers.values()
        if not self._hosts and any(each.nodeid != _UNKNOWN for each in brokers):
            self._hosts = sorted({each.nodename.rpartition(":")[0].strip("[]") for each in brokers})

    def _note_error(self, error: KafkaError) -> None:
        """A cause is reported first, then that all brokers are down."""
        if error.code() not in {KafkaError._ALL_BROKERS_DOWN, KafkaError._AUTHENTICATION}:  # noqa: SLF001
            self._cause = error
        else:
            self.failure = Retry(connection_reason(self._cause or error))
