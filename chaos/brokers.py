"""Destinations of a run: where topics lead, how they are reached, and what they have taken.

Each is a real server behind a proxy that can be made to fail. What is read back from it goes around the
proxy, so that a fault hits the deliveries and not the count.
"""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from typing import Any, Protocol, runtime_checkable

from services.http_endpoint import HttpEndpoint
from services.proxy import Proxy
from wire import until

Taken = tuple[str, str, bytes, float]
"""Topic, event id, body, and the time of the receipt in seconds."""
ID_HEADER = "bucketwire-event-id"
START_SECONDS = 120.0
"""For a broker that starts beside all the rest."""


class Destination(Protocol):
    """Somewhere that topics lead to."""

    @property
    def ways(self) -> Sequence[Proxy]:
        """The proxies before it."""
        ...

    def attributes(self, topic: str) -> dict[str, str]:
        """Of a topic that leads here."""
        ...

    def take(self) -> Iterator[Taken]:
        """What has come since the last time. One thread calls this."""
        ...


@runtime_checkable
class Killable(Protocol):
    """A broker that keeps what it has taken on disk."""

    def kill(self) -> None:
        """Kill -9."""
        ...

    def start(self) -> None:
        """Start it on what it has; returns when it answers."""
        ...


class HttpDestination:
    """Some endpoints; a topic is a path, which it keeps when it moves from one to another."""

    def __init__(self, stack: ExitStack, topics: Sequence[str], places: int) -> None:
        self.endpoints = [stack.enter_context(HttpEndpoint()) for _ in range(places)]
        self.ways = [stack.enter_context(Proxy(endpoint.port)) for endpoint in self.endpoints]
        self.place_of = {topic: number % places for number, topic in enumerate(topics)}
        """At which endpoint each topic is now; whoever moves one writes it down."""

    def attributes(self, topic: str) -> dict[str, str]:
        """Of a topic that leads here."""
        return {"push-endpoint": self.url(topic, self.place_of[topic])}

    def url(self, topic: str, place: int) -> str:
        """Of a topic at that endpoint."""
        return f"http://127.0.0.1:{self.ways[place].port}/{topic}"

    def take(self) -> Iterator[Taken]:
        """What has come since the last time."""
        for endpoint in self.endpoints:
            for each in endpoint.take():
                event_id = each.headers.get(ID_HEADER, "")
                yield each.path.removeprefix("/"), event_id, each.body, each.received_at_ns / 1e9


class AmqpDestination:
    """An exchange of RabbitMQ with a durable queue for each topic."""

    _EXCHANGE = "chaos"

    def __init__(self, stack: ExitStack, topics: Sequence[str]) -> None:
        from services.rabbitmq import RabbitmqServer

        self._server = RabbitmqServer.start()
        stack.callback(self._server.stop)
        self.ways = [stack.enter_context(Proxy(self._server.port))]
        self._topics = topics
        self._channel: Any = None
        self._consumer = stack.enter_context(ExitStack())
        with self._server.channel() as channel:
            channel.exchange_declare(self._EXCHANGE, "direct", durable=True)
            for topic in topics:
                channel.queue_declare(topic, durable=True)
                channel.queue_bind(topic, self._EXCHANGE, topic)

    def attributes(self, _topic: str) -> dict[str, str]:
        """Of a topic that leads here."""
        url = self._server.url(port=self.ways[0].port)
        return {"push-endpoint": url, "amqp-exchange": self._EXCHANGE, "amqp-ack-level": "routable"}

    def take(self) -> Iterator[Taken]:
        """What has come since the last time."""
        from pika.exceptions import AMQPError

        try:
            yield from self._waiting()
        except (AMQPError, OSError):
            self._consumer.pop_all()  # the broker is gone, and a new channel is opened the next time
            self._channel = None

    def _waiting(self) -> Iterator[Taken]:
        if self._channel is None:
            self._channel = self._consumer.enter_context(self._server.channel())
        for topic in self._topics:
            while (found := self._channel.basic_get(topic))[0] is not None:
                method, properties, body = found
                yield topic, properties.message_id, body, time.time()
                self._channel.basic_ack(method.delivery_tag)

    def kill(self) -> None:
        """Kill -9 of the node, but not of its port mapper."""
        self._node = self._server.processes.pop()
        os.killpg(self._node.pid, signal.SIGKILL)
        self._node.wait()

    def start(self) -> None:
        """Start the node again, and wait until it answers."""
        with (self._server.folder / "output").open("ab") as output:
            again = subprocess.Popen(
                self._node.args,
                env=self._server.environment,
                cwd=self._server.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self._server.processes.append(again)
        until(self._answers, START_SECONDS, self._server.log)

    def _answers(self) -> bool:
        from pika.exceptions import AMQPError

        with suppress(AMQPError, OSError), self._server.channel():
            return True
        return False


class KafkaDestination:
    """Topics of a Kafka broker, by their own names."""

    def __init__(self, stack: ExitStack, topics: Sequence[str]) -> None:
        from confluent_kafka import Consumer, TopicPartition

        from services.kafka import KafkaServer

        self._server = KafkaServer.start()
        stack.callback(self._server.stop)
        self.ways = [self._server.proxy]
        self._server.create_topics(topics)
        where = f"127.0.0.1:{self._server.ports['DIRECT']}"
        self._consumer = Consumer(
            {"bootstrap.servers": where, "group.id": "chaos", "enable.auto.commit": False, "log_level": 0}
        )
        stack.callback(self._consumer.close)
        self._consumer.assign([TopicPartition(topic, 0, 0) for topic in topics])

    def attributes(self, _topic: str) -> dict[str, str]:
        """Of a topic that leads here."""
        return {"push-endpoint": f"kafka://127.0.0.1:{self.ways[0].port}"}

    def take(self) -> Iterator[Taken]:
        """What has come since the last time."""
        for each in self._consumer.consume(1000, 0.02):
            if each.error() is None:
                headers = dict(each.headers() or [])
                yield each.topic() or "", _text(headers.get(ID_HEADER)), each.value() or b"", time.time()

    def kill(self) -> None:
        """Kill -9."""
        assert self._server.process is not None
        self._server.process.kill()
        self._server.process.wait()

    def start(self) -> None:
        """Start it again, and wait until it answers."""
        assert self._server.process is not None
        with (self._server.folder / "broker.log").open("ab") as log:
            self._server.process = subprocess.Popen(self._server.process.args, stdout=log, stderr=log)
        until(self._answers, START_SECONDS, self._server.log)

    def _answers(self) -> bool:
        from confluent_kafka import KafkaException

        with suppress(KafkaException):
            self._server.admin.list_topics(timeout=1)
            return True
        return False


class PubsubDestination:
    """Topics of Google's emulator, which keeps all in memory and so cannot be restarted."""

    def __init__(self, stack: ExitStack, topics: Sequence[str]) -> None:
        from services.pubsub import PROJECT, PubsubEmulator, find_program

        program = find_program()
        assert program is not None, "the Pub/Sub emulator is not installed"
        self._emulator = PubsubEmulator.start(program)
        stack.callback(self._emulator.stop)
        self.ways = [stack.enter_context(Proxy(self._emulator.port))]
        self._project = PROJECT
        self._topics = [self._emulator.create_topic(topic) for topic in topics]
        os.environ["PUBSUB_EMULATOR_HOST"] = f"127.0.0.1:{self.ways[0].port}"
        stack.callback(os.environ.pop, "PUBSUB_EMULATOR_HOST")

    def attributes(self, topic: str) -> dict[str, str]:
        """Of a topic that leads here."""
        return {"push-endpoint": f"pubsub://{self._project}/{topic}"}

    def take(self) -> Iterator[Taken]:
        """What has come since the last time."""
        for topic in self._topics:
            for each in self._emulator.pull(topic):
                yield topic, each.attributes[ID_HEADER], each.data, time.time()


def _text(value: str | bytes | None) -> str:
    return value.decode() if isinstance(value, bytes) else value or ""


BROKERS: dict[str, Callable[[ExitStack, Sequence[str]], Destination]] = {
    "amqp": AmqpDestination,
    "kafka": KafkaDestination,
    "pubsub": PubsubDestination,
}


def installed_brokers() -> list[str]:
    """Those that can be started on this machine."""
    from services import kafka, pubsub, rabbitmq

    found = {
        "amqp": rabbitmq.find_program() is not None,
        "kafka": kafka.jars_folder().is_dir(),
        "pubsub": pubsub.find_program() is not None,
    }
    return [name for name in BROKERS if found[name]]
