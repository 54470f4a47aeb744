"""`python -m bench.pubsub`: messages to the Pub/Sub emulator, by our publisher and by the bare libraries.

The bare loop sends the same messages in the same requests over the same kind of channel, and looks at nothing
but the number of acknowledgements. Google's client of the high level, with batches as large as ours, stands
beside. They take turns, so that noise falls on all.
"""

import os
import statistics
import time
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import Any

import grpc
from google.cloud import pubsub_v1
from google.pubsub_v1.types import PublishRequest, PublishResponse

from bucketwire.event.message import Message
from bucketwire.event.topic import Topic
from bucketwire.publish.base import Delivered
from bucketwire.publish.connections import Connections
from bucketwire.publish.pubsub import BYTES_A_REQUEST, MESSAGES_A_REQUEST, PubsubPublisher
from bucketwire.publish.pubsub_client import PubsubSettings
from services.pubsub import PROJECT, PUBLISH, PubsubEmulator, find_program

MESSAGES = 10_000
BATCH = 1_000
ROUNDS = 5
BODY = b"x" * 600


def main() -> None:
    """Print the table."""
    print(f"{os.cpu_count()} cores, {MESSAGES} messages of {len(BODY)} bytes, batches of {BATCH}\n")
    print("| measure | value | target |\n|---|---|---|")
    for measure, value, target in measure_pubsub():
        print(f"| {measure} | {value} | {target} |")


def measure_pubsub() -> Iterator[tuple[str, str, str]]:
    """The rates, each the median of some rounds, and ours as a share of the bare loop's."""
    program = find_program()
    if program is None:
        yield "Pub/Sub emulator", "not installed", ""
        return
    emulator = PubsubEmulator.start(program)
    try:
        rates = _rates(emulator)
    finally:
        emulator.stop()
    for name, found in rates.items():
        yield f"Pub/Sub emulator, {name}", f"{statistics.median(found):.0f} /s", ""
    shares = [ours / bare for ours, bare in zip(rates["publisher"], rates["bare loop"], strict=True)]
    yield "Pub/Sub publisher, share of the bare loop", f"{statistics.median(shares):.2f}", ">= 0.5"


def _rates(emulator: PubsubEmulator) -> dict[str, list[float]]:
    path = f"projects/{PROJECT}/topics/{emulator.create_topic()}"
    contestants: dict[str, Callable[[], None]] = {
        "publisher": _publisher(emulator, path),
        "bare loop": _bare_loop(emulator, path),
        "Google's client": _google_client(emulator, path),
    }
    rates: dict[str, list[float]] = {name: [] for name in contestants}
    for turn in range(ROUNDS + 1):
        for name, run in contestants.items():
            began = time.perf_counter()
            run()
            if turn:  # the first round warms the emulator up
                rates[name].append(MESSAGES / (time.perf_counter() - began))
        emulator.pull(path.rpartition("/")[2])
    return rates


def _publisher(emulator: PubsubEmulator, path: str) -> Callable[[], None]:
    topic = Topic("arn", "bench", "", {"push-endpoint": f"pubsub://{PROJECT}/{path.rpartition('/')[2]}"})
    publisher = PubsubPublisher(topic, Connections(), PubsubSettings(emulator_host=emulator.host))
    messages = [Message("arn", f"event-{number}", f"video-{number}.mp4", BODY) for number in range(BATCH)]

    def run() -> None:
        for _ in range(MESSAGES // BATCH):
            assert publisher.publish(messages, 30) == [Delivered()] * BATCH

    return run


def _bare_loop(emulator: PubsubEmulator, path: str) -> Callable[[], None]:
    publish = grpc.insecure_channel(emulator.host).unary_unary(
        PUBLISH,
        request_serializer=PublishRequest.pb().SerializeToString,
        response_deserializer=PublishResponse.pb().FromString,
    )

    def run() -> None:
        for _ in range(MESSAGES // BATCH):
            answers: SimpleQueue[Any] = SimpleQueue()
            for first in range(0, BATCH, MESSAGES_A_REQUEST):
                request = PublishRequest.pb()(topic=path)
                for number in range(first, first + MESSAGES_A_REQUEST):
                    request.messages.add(data=BODY, attributes=_attributes(number))
                publish.future(request, timeout=30).add_done_callback(answers.put)
            taken = [len(answers.get().result().message_ids) for _ in range(0, BATCH, MESSAGES_A_REQUEST)]
            assert sum(taken) == BATCH

    return run


def _google_client(emulator: PubsubEmulator, path: str) -> Callable[[], None]:
    os.environ["PUBSUB_EMULATOR_HOST"] = emulator.host
    settings = pubsub_v1.types.BatchSettings(max_messages=MESSAGES_A_REQUEST, max_bytes=BYTES_A_REQUEST)
    client = pubsub_v1.PublisherClient(settings)

    def run() -> None:
        for _ in range(MESSAGES // BATCH):
            answers = [client.publish(path, BODY, **_attributes(number)) for number in range(BATCH)]
            for answer in answers:
                answer.result(30)

    return run


def _attributes(number: int) -> dict[str, str]:
    return {
        "bucketwire-event-id": f"event-{number}",
        "bucketwire-key": f"video-{number}.mp4",
        "content-type": "application/json",
    }


if __name__ == "__main__":
    main()
