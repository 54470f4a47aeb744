"""librdkafka's mock cluster: brokers inside this process, for the basic cases where there is no real one.

It makes topics when they are asked for, knows no security, and cannot be made to fail by a proxy.
"""

from types import TracebackType
from typing import Self

from confluent_kafka import Producer

_WAIT_SECONDS = 10.0


class MockCluster:
    """One broker, as long as this object is open."""

    def __init__(self) -> None:
        self._host = Producer(
            {"test.mock.num.brokers": 1, "bootstrap.servers": "127.0.0.1:1", "log_level": 0}
        )
        (broker,) = self._host.list_topics(timeout=_WAIT_SECONDS).brokers.values()
        self.port = broker.port

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._host.close()
