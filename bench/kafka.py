"""Messages a second into a real Kafka broker: by the publisher, and by the bare library beside it."""

import time
from collections.abc import Callable, Iterator, Sequence

from confluent_kafka import Consumer, Producer, TopicPartition

from bench.fill import fill
from bucketwire.event.dialect import AWS
from bucketwire.event.installation import Installation
from bucketwire.event.message import Message
from bucketwire.event.topic import Topic
from bucketwire.metabase import open_metabase
from bucketwire.metabase.base import Metabase
from bucketwire.metabase.values import Offset, Slice
from bucketwire.metainfo.routing import Router
from bucketwire.publish.base import Delivered
from bucketwire.publish.connections import Connections
from bucketwire.publish.kafka import KafkaPublisher
from bucketwire.publish.kafka_settings import cluster_from_topic
from services.kafka import KafkaServer
from wire import System

MESSAGES = 40_000
A_CALL = 500
"""As the pipeline calls a publisher."""
ROUNDS = 3
BODY = b"x" * 800
WAIT_SECONDS = 30.0
PARTITIONS = 4
WARM = 5_000
QUEUED = 120_000
ALL = 10**9


def measure_kafka(system: System) -> Iterator[tuple[str, str, str]]:
    """The publisher beside the bare library, and then the whole way: changes, Spark, broker."""
    server = KafkaServer.start()
    try:
        ours, bare = rates(server)
        yield "Kafka, publisher alone", f"{ours:.0f} /s", ""
        yield "Kafka, the bare library, given the bytes", f"{bare:.0f} /s", ""
        found, loops = through_spark(system, server)
        through, loop = max(found), max(loops)
        yield "Kafka, the bare library in a loop over the changes", f"{loop:.0f} /s  {_told(loops)}", ""
        yield f"Kafka through Spark, {QUEUED} changes", f"{through:.0f} /s  {_told(found)}", "> 40000 /s"
        beside = f"{through / loop:.2f} ({through / bare:.2f} given the bytes)"
        yield "Kafka through Spark beside the bare loop", beside, "> 0.5"
    finally:
        server.stop()


def through_spark(system: System, server: KafkaServer) -> tuple[list[float], list[float]]:
    """Events a second of a queue of changes, until the broker has them all, and of a loop over the same."""
    name, other = (server.create_topic(partitions=PARTITIONS) for _ in range(2))
    endpoint = f"kafka://127.0.0.1:{server.ports['DIRECT']}"
    system.subscribe("kafka", name, endpoint)
    metabase = open_metabase(f"sqlite:///{system.folder}/data/metabase.db")
    found, loops = [], []
    try:
        fill(metabase, "kafka", WARM)
        _wait_for(server, name, WARM)
        for done in range(WARM, WARM + ROUNDS * QUEUED, QUEUED):
            system.pause("pipeline")
            head = metabase.changes.head(metabase.changes.start(), ALL)
            fill(metabase, "kafka", QUEUED)
            loops.append(
                QUEUED / loop_over(metabase, head, Topic("", other, "", {"push-endpoint": endpoint}))
            )
            began = time.monotonic()
            system.resume("pipeline")
            _wait_for(server, name, done + QUEUED)
            found.append(QUEUED / (time.monotonic() - began))
    finally:
        metabase.close()
    return found, loops


def loop_over(metabase: Metabase, start: Offset, topic: Topic) -> float:
    """Seconds of the whole work without Spark and without a net: read, route, compose, produce."""
    router = Router(metabase, Installation(AWS))
    producer = BareProducer(topic)
    began = time.monotonic()
    for row in metabase.changes.read(Slice(start, metabase.changes.head(start, ALL))):
        for _, message in router.route(row):
            producer.produce(message)
    assert producer.answered() == QUEUED
    return time.monotonic() - began


def _wait_for(server: KafkaServer, name: str, count: int) -> None:
    consumer = Consumer({"bootstrap.servers": f"127.0.0.1:{server.ports['DIRECT']}", "group.id": "bench"})
    ends = time.monotonic() + 120
    while (
        sum(consumer.get_watermark_offsets(TopicPartition(name, each))[1] for each in range(PARTITIONS))
        < count
    ):
        assert time.monotonic() < ends, "the events did not come"
        time.sleep(0.02)
    consumer.close()


def rates(server: KafkaServer, count: int = MESSAGES) -> tuple[float, float]:
    """Messages a second, publisher and bare library: the best of rounds that take turns."""
    messages = [
        Message("", f"event-{number}", f"key-{number}", BODY, committed_at_ns=time.time_ns())
        for number in range(count)
    ]
    found: dict[Callable[[Topic, Sequence[Message]], float], list[float]] = {publisher: [], bare: []}
    for _ in range(ROUNDS):
        for send, seen in found.items():
            endpoint = f"kafka://127.0.0.1:{server.ports['DIRECT']}"
            name = server.create_topic(partitions=PARTITIONS)
            seen.append(count / send(Topic("", name, "", {"push-endpoint": endpoint}), messages))
    return max(found[publisher]), max(found[bare])


def publisher(topic: Topic, messages: Sequence[Message]) -> float:
    """Seconds of calls of the size that the pipeline makes, one after the other, over an open connection."""
    connections = Connections()
    opened = KafkaPublisher(topic, connections)
    opened.publish(messages[:1], WAIT_SECONDS)
    began = time.monotonic()
    for first in range(0, len(messages), A_CALL):
        call = messages[first : first + A_CALL]
        assert opened.publish(call, WAIT_SECONDS) == [Delivered()] * len(call)
    seconds = time.monotonic() - began
    connections.close()
    return seconds


def bare(topic: Topic, messages: Sequence[Message]) -> float:
    """Seconds of handing over what is there already."""
    producer = BareProducer(topic)
    began = time.monotonic()
    for message in messages:
        producer.produce(message)
    assert producer.answered() == len(messages)
    return time.monotonic() - began


class BareProducer:
    """The library with our settings, headers and nothing else, connected: as much in flight as it likes."""

    def __init__(self, topic: Topic) -> None:
        self._name = topic.name
        self._producer = Producer(cluster_from_topic(topic).configuration())
        self._producer.produce(self._name, BODY)
        self._producer.flush(WAIT_SECONDS)
        self._sent = self._answers = 0

    def produce(self, message: Message) -> None:
        """Hand over one message; answers are taken now and then, which is faster than after each."""
        headers: dict[str, str | bytes | None] = {
            "content-type": message.content_type,
            "bucketwire-event-id": message.event_id,
            "bucketwire-key": message.key,
        }
        at_ms = message.committed_at_ns // 1_000_000
        self._producer.produce(
            self._name, message.body, on_delivery=self._note, headers=headers, timestamp=at_ms
        )
        self._sent += 1
        if self._sent % A_CALL == 0:
            self._producer.poll(0)

    def answered(self) -> int:
        """How many were acknowledged when all have their answers."""
        self._producer.flush(WAIT_SECONDS)
        return self._answers

    def _note(self, error: object, _: object) -> None:
        assert error is None
        self._answers += 1


def _told(rates: Sequence[float]) -> str:
    return f"[{', '.join(f'{each:.0f}' for each in rates)}]"
