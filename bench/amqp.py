"""`python -m bench.amqp`: messages to a real RabbitMQ, by our publisher and by pika alone.

The bare loop sends the same messages with the same properties over one channel of a `SelectConnection`, in
batches as large as ours, and looks at nothing but the last confirmation of each. The two take turns, so that
noise falls on both.
"""

import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pika

from bucketwire.event.message import Message
from bucketwire.publish.amqp import AmqpPublisher
from bucketwire.publish.base import Delivered
from bucketwire.publish.connections import Connections
from factories import topic
from services.rabbitmq import RabbitmqServer, find_program

MESSAGES = 10_000
BATCH = 1_000
ROUNDS = 5
TARGET = 8_000
BODY = b"x" * 600
_EXCHANGE = "bench"
_WAIT_SECONDS = 30.0


def main() -> None:
    """Print the table."""
    print(f"{os.cpu_count()} cores, {MESSAGES} messages of {len(BODY)} bytes, batches of {BATCH}\n")
    print("| measure | value | target |\n|---|---|---|")
    for measure, value, target in measure_amqp():
        print(f"| {measure} | {value} | {target} |")


def measure_amqp() -> Iterator[tuple[str, str, str]]:
    """The rates with broker acks, each the median of some rounds, and ours as a share of the bare loop's."""
    if find_program() is None:
        yield "RabbitMQ", "not installed", ""
        return
    server = RabbitmqServer.start()
    try:
        rates = _rates(server)
    finally:
        server.stop()
    targets = {"publisher": f">= {TARGET} /s"}
    for name, found in rates.items():
        yield f"AMQP, broker acks, {name}", f"{statistics.median(found):.0f} /s", targets.get(name, "")
    shares = [ours / bare for ours, bare in zip(rates["publisher"], rates["bare pika"], strict=True)]
    yield "AMQP publisher, share of bare pika", f"{statistics.median(shares):.2f}", ""


def _rates(server: RabbitmqServer) -> dict[str, list[float]]:
    connections = Connections()
    publisher = AmqpPublisher(topic(server.url(), **{"amqp-exchange": _EXCHANGE}), connections)
    messages = [
        Message("", f"event-{number:032}", f"folder/key-{number}", BODY, committed_at_ns=time.time_ns())
        for number in range(MESSAGES)
    ]
    rates: dict[str, list[float]] = {"publisher": [], "bare pika": []}
    with _bare_channel(server.port) as publish_bare:
        for _ in range(ROUNDS):
            for name, publish in (("publisher", partial(_publish, publisher)), ("bare pika", publish_bare)):
                _empty_queue(server)
                rates[name].append(_rate(publish, messages))
    connections.close()
    return rates


def _rate(publish: Callable[[list[Message]], None], messages: list[Message]) -> float:
    began = time.perf_counter()
    for first in range(0, len(messages), BATCH):
        publish(messages[first : first + BATCH])
    return len(messages) / (time.perf_counter() - began)


def _publish(publisher: AmqpPublisher, messages: list[Message]) -> None:
    assert publisher.publish(messages, _WAIT_SECONDS) == [Delivered()] * len(messages)


@contextmanager
def _bare_channel(port: int) -> Iterator[Callable[[list[Message]], None]]:
    """What publishes a batch with pika and waits until the broker has confirmed all of it."""
    connection = pika.SelectConnection(
        pika.ConnectionParameters("127.0.0.1", port), on_open_callback=lambda opened: opened.ioloop.stop()
    )
    loop = connection.ioloop
    loop.start()
    channel = connection.channel(on_open_callback=lambda _: loop.stop())
    loop.start()
    state = {"sent": 0, "confirmed": 0}

    def on_confirm(frame: Any) -> None:
        answer = frame.method
        state["confirmed"] = (
            answer.delivery_tag if answer.multiple else max(state["confirmed"], answer.delivery_tag)
        )
        if state["confirmed"] >= state["sent"]:
            loop.stop()

    channel.confirm_delivery(on_confirm, callback=lambda _: loop.stop())
    loop.start()

    def publish(messages: list[Message]) -> None:
        state["sent"] += len(messages)
        for message in messages:
            channel.basic_publish(_EXCHANGE, "videos", message.body, _properties(message))
        loop.start()

    yield publish
    connection.add_on_close_callback(lambda *_: loop.stop())
    connection.close()
    loop.start()
    loop.close()


def _properties(message: Message) -> pika.BasicProperties:
    return pika.BasicProperties(
        content_type=message.content_type,
        delivery_mode=2,
        message_id=message.event_id,
        timestamp=message.committed_at_ns // 1_000_000_000,
        headers={"bucketwire-event-id": message.event_id, "bucketwire-key": message.key},
    )


def _empty_queue(server: RabbitmqServer) -> None:
    with server.channel() as channel:
        channel.exchange_declare(_EXCHANGE, "direct")
        channel.queue_declare(_EXCHANGE, durable=True)
        channel.queue_purge(_EXCHANGE)
        channel.queue_bind(_EXCHANGE, _EXCHANGE, "videos")


if __name__ == "__main__":
    main()
