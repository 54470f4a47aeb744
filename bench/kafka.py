"""Messages a second into a real Kafka broker: by the publisher, and by the bare library beside it."""

import time
from collections.abc import Callable, Iterator, Sequence

from confluent_kafka import Consumer, Producer, TopicPartition

from bench.fill import fill
from bucketwire.event.message import Message
from bucketwire.event.topic import Topic
from bucketwire.metabase import open_metabase
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


def measure_kafka(system: System) -> Iterator[tuple[str, str, str]]:
    """The publisher beside the bare library, and then the whole way: changes, Spark, broker."""
    server = KafkaServer.start()
    try:
        ours, bare = rates(server)
        yield "Kafka, publisher alone", f"{ours:.0f} /s", ""
        yield "Kafka, the bare library in a loop", f"{bare:.0f} /s", ""
        found = through_spark(system, server)
        through, told = max(found), ", ".join(f"{each:.0f}" for each in found)
        yield f"Kafka through Spark, {QUEUED} queued changes", f"{through:.0f} /s  [{told}]", "> 40000 /s"
        yield "Kafka through Spark beside the bare loop", f"{through / bare:.2f}", "> 0.5"
    finally:
        server.stop()


def through_spark(system: System, server: KafkaServer) -> list[float]:
    """Events a second of a queue of changes, until the broker has them all: one for each round."""
    name = server.create_topic(partitions=PARTITIONS)
    endpoint = f"kafka://127.0.0.1:{server.ports['DIRECT']}"
    system.subscribe("kafka", name, endpoint)
    metabase = open_metabase(f"sqlite:///{system.folder}/data/metabase.db")
    try:
        fill(metabase, "kafka", WARM)
        _wait_for(server, name, WARM)
        found = []
        for done in range(WARM, WARM + ROUNDS * QUEUED, QUEUED):
            system.pause("pipeline")
            fill(metabase, "kafka", QUEUED)
            began = time.monotonic()
            system.resume("pipeline")
            _wait_for(server, name, done + QUEUED)
            found.append(QUEUED / (time.monotonic() - began))
        return found
    finally:
        metabase.close()


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
    """Messages a second, publisher and bare loop: the best of rounds that take turns."""
    messages = [
        Message("", f"event-{number}", f"key-{number}", BODY, committed_at_ns=time.time_ns())
        for number in range(count)
    ]
    found: dict[Callable[[Topic, Sequence[Message]], float], list[float]] = {publisher: [], bare_loop: []}
    for _ in range(ROUNDS):
        for send, seen in found.items():
            endpoint = f"kafka://127.0.0.1:{server.ports['DIRECT']}"
            name = server.create_topic(partitions=PARTITIONS)
            seen.append(count / send(Topic("", name, "", {"push-endpoint": endpoint}), messages))
    return max(found[publisher]), max(found[bare_loop])


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


def bare_loop(topic: Topic, messages: Sequence[Message]) -> float:
    """Seconds for the same bytes, headers and settings, as much in flight as the library likes.

    Every answer is counted. They are taken once for a call's worth of messages, which is faster than to ask
    for them after each.
    """
    producer = Producer(cluster_from_topic(topic).configuration())
    answers: list[object] = []

    def note(error: object, _: object) -> None:
        assert error is None
        answers.append(error)

    producer.produce(topic.name, BODY)
    producer.flush(WAIT_SECONDS)
    began = time.monotonic()
    for place, message in enumerate(messages):
        headers: dict[str, str | bytes | None] = {
            "content-type": message.content_type,
            "bucketwire-event-id": message.event_id,
            "bucketwire-key": message.key,
        }
        at_ms = message.committed_at_ns // 1_000_000
        producer.produce(topic.name, message.body, on_delivery=note, headers=headers, timestamp=at_ms)
        if place % A_CALL == 0:
            producer.poll(0)
    producer.flush(WAIT_SECONDS)
    assert len(answers) == len(messages)
    return time.monotonic() - began
