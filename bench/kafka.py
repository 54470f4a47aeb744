"""Messages a second into a real Kafka broker: by the publisher, and by the bare library beside it."""

import time
from collections.abc import Callable, Sequence

from confluent_kafka import Producer

from bucketwire.event.message import Message
from bucketwire.event.topic import Topic
from bucketwire.publish.base import Delivered
from bucketwire.publish.connections import Connections
from bucketwire.publish.kafka import KafkaPublisher
from services.kafka import KafkaServer

MESSAGES = 40_000
A_CALL = 500
"""As the pipeline calls a publisher."""
ROUNDS = 3
BODY = b"x" * 800
WAIT_SECONDS = 30.0


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
        {"bootstrap.servers": f"127.0.0.1:{port}", "acks": "all", "enable.idempotence": True, "linger.ms": 2}
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
        producer.produce(name, message.body, on_delivery=note, headers=headers)
        producer.poll(0)
    producer.flush(WAIT_SECONDS)
    assert len(answers) == len(messages)
