"""A topic of Google's Pub/Sub emulator, behind a gate that refuses and a proxy that fails."""

from typing import Any, ClassVar

import pytest
from grpc import StatusCode

from bucketwire.event.topic import Topic
from factories import topic
from services.http_endpoint import Mode
from services.proxy import Condition, Proxy
from services.pubsub import PROJECT, PubsubGate, Refusal, pubsub_emulator

_CONDITIONS = {Mode.SLOW: Condition.SLOW, Mode.HANG: Condition.HANGS, Mode.DOWN: Condition.DOWN}


class PubsubDestination:
    channel: ClassVar[str] = "pubsub"
    failures: ClassVar[tuple[Mode, ...]] = (Mode.REFUSE, Mode.DOWN)

    def __init__(self) -> None:
        self.emulator = pubsub_emulator()
        self.name = self.emulator.create_topic(ordered=True)
        self.gate = PubsubGate(self.emulator.port).start()
        self.proxy = Proxy(self.gate.port).start()
        self._environment = pytest.MonkeyPatch()
        self._environment.setenv("PUBSUB_EMULATOR_HOST", f"127.0.0.1:{self.proxy.port}")
        self._received: list[Any] = []

    def topic(self, **attributes: str) -> Topic:
        return topic(f"pubsub://{PROJECT}/{self.name}", **attributes)

    def behave(self, mode: Mode) -> None:
        refusals = {Mode.REFUSE: _everything, Mode.HALF: _odd_numbers}
        self.gate.refuses = refusals.get(mode, _nothing)
        self.proxy.condition = _CONDITIONS.get(mode, Condition.WORKS)

    def received(self) -> list[bytes]:
        self._received += self.emulator.pull(self.name)
        return [each.data for each in self._received]

    def beside(self) -> list[dict[str, str]]:
        self._received += self.emulator.pull(self.name)
        return [dict(each.attributes) for each in self._received]

    def close(self) -> None:
        self._environment.undo()
        self.proxy.stop()
        self.gate.stop()


def _nothing(_: Any) -> None:
    """Let everything pass."""


def _everything(_: Any) -> Refusal:
    return Refusal(StatusCode.PERMISSION_DENIED)


def _odd_numbers(request: Any) -> Refusal | None:
    """As Pub/Sub does it: one message that is invalid, and the whole request is refused."""
    numbers = [int(each.attributes["bucketwire-event-id"].rpartition("-")[2]) for each in request.messages]
    return Refusal(StatusCode.INVALID_ARGUMENT) if any(number % 2 for number in numbers) else None
