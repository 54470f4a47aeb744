"""A broker's several addresses. No broker runs: sockets stand in for it."""

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from bucketwire.config import PipelineSettings
from bucketwire.publish import amqp_broker
from bucketwire.publish.amqp import AmqpPublisher
from bucketwire.publish.amqp_broker import CONNECT_SECONDS
from bucketwire.publish.base import Retry
from bucketwire.publish.connections import Connections
from factories import message, topic

LONG_SECONDS = 20.0


def test_a_call_has_time_for_a_second_and_a_third_address(tmp_path: Path) -> None:
    assert PipelineSettings("", "aws", tmp_path).retry_deadline_seconds > 3 * CONNECT_SECONDS


@pytest.fixture
def silent() -> Iterator[int]:
    """The port of one that answers nothing, not even that it is there: too many others wait for it."""
    with ExitStack() as opened:
        listener = opened.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(4):
            waiting = opened.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]


def test_the_next_address_is_called_when_one_does_not_answer(
    silent: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(amqp_broker, "CONNECT_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(LONG_SECONDS)
        found = [address_of(silent), address_of(listener.getsockname()[1])]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
        connections = Connections()
        publisher = AmqpPublisher(topic("amqp://broker", **{"amqp-exchange": "uploads"}), connections)
        with ThreadPoolExecutor(1) as threads:
            outcomes = threads.submit(publisher.publish, [message()], LONG_SECONDS)
            called, _ = listener.accept()
            with called:
                assert called.recv(4) == b"AMQP"
            assert isinstance(outcomes.result()[0], Retry)
        connections.close()


def address_of(port: int) -> Any:
    return (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", ("127.0.0.1", port))
