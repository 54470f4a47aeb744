"""A topic of a Kafka broker, for the contract suite."""

from typing import Any, ClassVar

from bucketwire.event.topic import Topic
from bucketwire.publish.connections import Connections
from bucketwire.publish.kafka import KafkaPublisher
from factories import message, topic
from services.http_endpoint import Mode
from services.kafka import kafka_server
from services.proxy import Condition

WAIT_SECONDS = 30.0
_CONDITIONS = {Mode.SLOW: Condition.SLOW, Mode.HANG: Condition.HANGS, Mode.DOWN: Condition.DOWN}


class KafkaDestination:
    channel: ClassVar[str] = "kafka"
    failures: ClassVar[tuple[Mode, ...]] = (Mode.DOWN,)

    def __init__(self) -> None:
        self.server = kafka_server()
        self.name = self.server.create_topic(max_message_bytes="8000000")

    def topic(self, **attributes: str) -> Topic:
        return topic(f"kafka://127.0.0.1:{self.server.proxy.port}", self.name, **attributes)

    def behave(self, mode: Mode) -> None:
        self.server.proxy.condition = _CONDITIONS.get(mode, Condition.WORKS)
        if mode is Mode.HALF:
            self.server.limit_topic(self.name, self._size_of_number_99())

    def received(self) -> list[bytes]:
        return [each.value() or b"" for each in self._records()]

    def beside(self) -> list[dict[str, str]]:
        return [{name: value.decode() for name, value in each.headers()} for each in self._records()]

    def _records(self) -> list[Any]:
        return [each for each in self.server.received(self.name) if each.headers()]

    def _size_of_number_99(self) -> int:
        """Of two hundred messages that are numbered from 0, half are larger than this one."""
        scratch = self.server.create_topic()
        connections = Connections()
        publisher = KafkaPublisher(topic(f"kafka://127.0.0.1:{self.server.proxy.port}", scratch), connections)
        publisher.publish([message("event-99", body=b'{"n": 99}')], WAIT_SECONDS)
        connections.close()
        return self.server.size_bytes(scratch)

    def close(self) -> None:
        self.behave(Mode.OK)
