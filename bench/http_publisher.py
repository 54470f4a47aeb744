"""What the HTTP publisher costs over its client library.

The same messages go through `HttpPublisher` and through a bare pycurl multi, in turns, to one receiver in
another process.

    python -m bench.http_publisher --messages 20000 --rounds 3

Prints one JSON object: for each the best events/s and the fewest microseconds of CPU a message of all rounds,
and how many times the CPU of the bare client the publisher takes. On a busy machine trust the CPU alone.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pycurl

from bench.receiver import running_receiver
from bucketwire.event.message import Message
from bucketwire.event.topic import Topic
from bucketwire.publish.base import Delivered
from bucketwire.publish.connections import Connections
from bucketwire.publish.http import HttpPublisher
from bucketwire.publish.http_client import IN_FLIGHT

ARN = "arn:aws:sns:us-east-1:000000000000:bench"
BODY_BYTES = 600
SECRET = "whsec_" + "YmVuY2htYXJr" * 3
Send = Callable[[list[Message]], int]


def made_messages(count: int) -> list[Message]:
    """Messages of the usual size, no two alike."""
    body = b"x" * BODY_BYTES
    return [Message(ARN, f"{number:032x}", f"photos/2026/{number}.jpg", body) for number in range(count)]


def through_publisher(url: str, connections: Connections, **attributes: str) -> Send:
    """Sends by the publisher; how many were delivered."""
    publisher = HttpPublisher(Topic(ARN, "bench", "owner", {"push-endpoint": url, **attributes}), connections)
    return lambda messages: publisher.publish(messages, 60).count(Delivered())


class BareClient:
    """As little around libcurl as can send the messages: no outcomes but the number of answers."""

    def __init__(self, url: str) -> None:
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_MAXCONNECTS, IN_FLIGHT)
        self._idle = [self._handle(url) for _ in range(IN_FLIGHT)]

    def send(self, messages: list[Message]) -> int:
        """Post them all; how many were answered."""
        waiting = iter(messages)
        running = answered = 0
        while True:
            while self._idle and (message := next(waiting, None)) is not None:
                self._start(self._idle.pop(), message)
                running += 1
            if not running:
                return answered
            self._multi.perform()
            _, done, failed = self._multi.info_read(IN_FLIGHT)
            for handle in [*done, *(each[0] for each in failed)]:
                self._multi.remove_handle(handle)
                self._idle.append(handle)
            running -= len(done) + len(failed)
            answered += len(done)
            if not done and not failed:
                self._multi.select(1.0)

    def _start(self, handle: pycurl.Curl, message: Message) -> None:
        handle.setopt(pycurl.HTTPHEADER, ("Content-Type: application/json", "Expect:"))
        handle.setopt(pycurl.POSTFIELDS, message.body)
        self._multi.add_handle(handle)

    def _handle(self, url: str) -> pycurl.Curl:
        handle = pycurl.Curl()
        handle.setopt(pycurl.URL, url)
        handle.setopt(pycurl.NOSIGNAL, 1)
        handle.setopt(pycurl.WRITEFUNCTION, lambda _: None)
        return handle


def measured(send: Send, messages: list[Message]) -> dict[str, float]:
    """One round; `AssertionError` when something was not acknowledged."""
    began, cpu_began = time.perf_counter(), time.thread_time()
    acknowledged = send(messages)
    seconds, cpu_seconds = time.perf_counter() - began, time.thread_time() - cpu_began
    assert acknowledged == len(messages), f"{acknowledged} of {len(messages)} acknowledged"
    return {
        "events_per_second": round(len(messages) / seconds),
        "cpu_us_per_message": round(cpu_seconds / len(messages) * 1e6, 1),
    }


def measure_http() -> Iterator[tuple[str, str, str]]:
    """The publisher, with and without signatures, beside bare pycurl."""
    found = run(20_000, 3)
    for name, title, target in (
        ("bare_pycurl", "HTTP, bare pycurl", ""),
        ("publisher", "HTTP, publisher alone", "> 10000 /s"),
        ("publisher_signing", "HTTP, publisher with signatures", ""),
    ):
        rate, cpu_us = found[name]["events_per_second"], found[name]["cpu_us_per_message"]
        yield title, f"{rate:.0f} /s, {cpu_us:.0f} us of CPU each", target


def run(count: int, rounds: int) -> dict[str, Any]:
    """The best of each; they take turns, so that a busy moment of the machine hits all."""
    messages = made_messages(count)
    connections = Connections()
    with running_receiver(keep="counts") as receiver:
        ways: dict[str, Send] = {
            "bare_pycurl": BareClient(receiver.url).send,
            "publisher": through_publisher(receiver.url, connections),
            "publisher_signing": through_publisher(
                receiver.url + "/signed", connections, **{"signing-secret": SECRET}
            ),
        }
        found = [{name: measured(send, messages) for name, send in ways.items()} for _ in range(rounds)]
        connections.close()
    best = {name: _best([each[name] for each in found]) for name in ways}
    cost = best["publisher"]["cpu_us_per_message"] / best["bare_pycurl"]["cpu_us_per_message"]
    return {"messages": count, "rounds": rounds, **best, "publisher_cpu_times_bare": round(cost, 2)}


def _best(rounds: list[dict[str, float]]) -> dict[str, float]:
    return {
        "events_per_second": max(each["events_per_second"] for each in rounds),
        "cpu_us_per_message": min(each["cpu_us_per_message"] for each in rounds),
    }


def main() -> None:
    """Read the options, run, print."""
    parser = argparse.ArgumentParser(description="The HTTP publisher beside bare pycurl.")
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    print(json.dumps(run(options.messages, options.rounds), indent=2))


if __name__ == "__main__":
    main()
