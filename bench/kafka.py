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
from services.kafka import KafkaServer
from wire import System

MESSAGES = 40_000
A_CALL = 500
"""As the pipeline calls a publisher."""
ROUNDS = 3
BODY = b"x" * 800
WAIT_SECONDS = 30.0
WARM = 5_000
QUEUED = 60_000


def measure_kafka(system: System) -> Iterator[tuple[str, str, str]]:
    """The publisher beside the bare library, and then the whole way: changes, Spark, broker."""
    server = KafkaServer.start()
    try:
        ours, bare = rates(server)
        yield "Kafka, publisher alone", f"{ours:.0f} /s", ""
        yield "Kafka, the bare library in a loop", f"{bare:.0f} /s", ""
        through = through_spark(system, server)
        yield f"Kafka through Spark, {QUEUED} queued changes", f"{through:.0f} /s", "> 40000 /s"
        yield "Kafka through Spark beside the bare loop", f"{through / bare:.2f}", "> 0.5"
    finally:
        server.stop()


def through_spark(system: System, server: KafkaServer) -> float:
    """Events a second of a queue of changes, until the broker has them all."""
    name = server.create_topic(partitions=4)
    endpoint = f"kafka://127.0.0.1:{server.ports['DIRECT']}"
    system.subscribe("kafka", name, endpoint)
    metabase = open_metabase(f"sqlite:///{system.folder}/data/metabase.db")
    try:
        fill(metabase, "kafka", WARM)
        _wait_for(server, name, WARM)
        system.pause("pipeline")
        fill(metabase, "kafka", QUEUED)
        began = time.monotonic()
        system.resume("pipeline")
        _wait_for(server, name, WARM + QUEUED)
        return QUEUED / (time.monotonic() - began)
    finally:
        metabase.close()


def _wait_for(server: KafkaServer, name: str, count: int) -> None:
    consumer = Consumer({"bootstrap.servers": f"127.0.0.1:{server.ports['DIRECT']}", "group.id": "bench"})
    ends = time.monotonic() + 120
    while sum(consumer.get_watermark_offsets(TopicPartition(name, each))[1] for each in range(4)) < count:
        assert time.monotonic() < ends, "the events did not come"
        time.sleep(0.02)
    consumer.close()


def rates(server: KafkaServer, count: int = MESSAGES) -> tuple[float, float]:
    """Messages a second, publisher and bare loop: the best of rounds that take turns."""
    messages = [
        Message("", f"event-{number}", f"key-{number}", BODY, committed_at_ns=time.time_ns())
        for number in range(count)
    ]
    found: dict[Callable[[str, int, Sequence[Message]], None], list[float]] = {publisher: [], bare_loop: []}
    for _ in range(ROUNDS):
        for send, seen in found.items():
            name = server.create_topic()
            began = time.monotonic()
            send(name, server.ports["DIRECT"], messages)
            seen.append(count / (time.monotonic() - began))
    return max(found[publisher]), max(found[bare_loop])


def publisher(name: str, port: int, messages: Sequence[Message]) -> None:
    """Calls of the size that the pipeline makes, one after the other."""
    connections = Connections()
    opened = KafkaPublisher(Topic("", name, "", {"push-endpoint": f"kafka://127.0.0.1:{port}"}), connections)
    for first in range(0, len(messages), A_CALL):
        call = messages[first : first + A_CALL]
        assert opened.publish(call, WAIT_SECONDS) == [Delivered()] * len(call)
    connections.close()


def bare_loop(name: str, port: int, messages: Sequence[Message]) -> None:
    """The same bytes and headers, as much in flight as the library likes, every answer counted."""
    producer = Producer(
        {
            "bootstrap.servers": f"127.0.0.1:{port}",
            "acks": "all",
            "enable.idempotence": True,
            "linger.ms": 2,
            "partitioner": "murmur2_random",
        }
    )
    answers: list[object] = []

    def note(error: object, _: object) -> None:
        assert error is None
        answers.append(error)

    for message in messages:
        headers = [
            ("content-type", message.content_type),
            ("bucketwire-event-id", message.event_id),
            ("bucketwire-key", message.key),
        ]
        at_ms = message.committed_at_ns // 1_000_000
        producer.produce(name, message.body, on_delivery=note, headers=headers, timestamp=at_ms)
        producer.poll(0)
    producer.flush(WAIT_SECONDS)
    assert len(answers) == len(messages)
