"""What becomes of a push that goes wrong: it is counted and logged, and the others go on."""

import asyncio
import re
from collections.abc import Callable, Sequence
from threading import Event
from typing import Any

import pytest
from structlog.testing import capture_logs

from bucketwire.event.change import ObjectChange
from bucketwire.event.message import Message
from bucketwire.event.topic import Topic
from bucketwire.gateway.push import Pushes
from bucketwire.gateway.push_turns import NOT_TAKEN
from bucketwire.metrics import MESSAGES
from bucketwire.publish.base import Delivered, Outcome, Retry
from bucketwire.publish.connections import Connections
from bucketwire.publish.publishers import Publishers
from factories import change, message, topic

Publish = Callable[[str, float], Outcome]
LONG_SECONDS = 60.0


class ScriptedRouter:
    """Routes a change to the topic that has the name of its key."""

    def __init__(self, before: Callable[[], object]) -> None:
        self.before = before

    def refresh(self) -> None:
        self.before()

    def topic(self, arn: str) -> Topic:
        return topic(name=arn.rpartition(":")[2])

    def route_pushed(self, routed: ObjectChange) -> list[tuple[tuple[str, str], Message]]:
        arn = topic(name=routed.key).arn
        return [((arn, ""), message(topic_arn=arn))]


class ScriptedPublisher:
    """Gives the outcome that the test wants, by the name of the topic and the deadline."""

    def __init__(self, name: str, outcome: Publish) -> None:
        self.name = name
        self.outcome = outcome

    def publish(self, messages: Sequence[Message], deadline_seconds: float) -> list[Outcome]:
        return [self.outcome(self.name, deadline_seconds) for _ in messages]

    def close(self) -> None:
        pass


def pushes(publish: Publish, seconds: float = LONG_SECONDS, before: Callable[[], object] = int) -> Pushes:
    open_publisher: Any = lambda found, _: ScriptedPublisher(found.name, publish)  # noqa: E731
    router: Any = ScriptedRouter(before)
    return Pushes(router, Publishers(open_publisher, Connections()), seconds)


def delivered(_name: str, _seconds: float) -> Outcome:
    return Delivered()


def broken(*_: object) -> Outcome:
    raise RuntimeError("nobody has thought of this")


def counted(outcome: str) -> float:
    return float(MESSAGES.labels(outcome)._value.get())


@pytest.fixture
def failed() -> Callable[[], float]:
    """How many pushes have failed in this test."""
    before = counted("push_failed")
    return lambda: counted("push_failed") - before


def test_an_unforeseen_exception_in_a_push_is_logged_and_counted(failed: Callable[[], float]) -> None:
    with capture_logs() as lines:
        asyncio.run(pushes(broken).deliver([change("a")]))
    assert [(line["event"], line["exc_info"]) for line in lines] == [("push_failed", True)]
    assert failed() == 1


def test_an_unforeseen_exception_in_routing_is_logged_and_counted(failed: Callable[[], float]) -> None:
    with capture_logs() as lines:
        asyncio.run(pushes(delivered, before=broken).deliver([change("a"), change("b")]))
    assert [(line["event"], line["exc_info"]) for line in lines] == [("push_failed", True)]
    assert failed() == 2


def test_routing_that_hangs_is_given_up_at_the_deadline(failed: Callable[[], float]) -> None:
    release = Event()
    asyncio.run(pushes(delivered, seconds=0.05, before=release.wait).deliver([change("a")]))
    release.set()
    assert failed() == 1


def test_a_push_that_gets_its_turn_after_the_deadline_has_failed(failed: Callable[[], float]) -> None:
    late = pushes(delivered)
    with capture_logs() as lines:
        assert not late._push(topic(), [message()], ends=0.0)
    assert [line["reason"] for line in lines] == ["its turn came after the deadline"]
    assert failed() == 1


def test_a_publisher_gets_its_deadline_in_whole_tenths_of_a_second() -> None:
    seen: list[float] = []

    def publish(_name: str, seconds: float) -> Outcome:
        seen.append(seconds)
        return Delivered()

    asyncio.run(pushes(publish).deliver([change("a")]))
    assert re.fullmatch(r"\d+(\.\d)?", f"{seen[0]:g}")
    assert 0 < seen[0] <= LONG_SECONDS


def test_while_one_push_tries_a_failing_topic_others_to_it_fail_at_once_and_other_topics_go_on() -> None:
    trying, release = Event(), Event()

    def publish(name: str, _seconds: float) -> Outcome:
        if name == "well":
            return Delivered()
        if counted("push_failed") > before:
            trying.set()
            release.wait(LONG_SECONDS)
        return Retry("HTTP 503")

    async def scene(under_test: Pushes) -> None:
        await under_test.deliver([change("ill")])
        probe = asyncio.ensure_future(under_test.deliver([change("ill")]))
        assert await asyncio.to_thread(trying.wait, LONG_SECONDS)
        await under_test.deliver([change("ill"), change("well")])
        release.set()
        await probe

    before, well = counted("push_failed"), counted("pushed")
    with capture_logs() as lines:
        asyncio.run(scene(pushes(publish)))
    assert [line["reason"] for line in lines] == ["HTTP 503", NOT_TAKEN, "HTTP 503"]
    assert counted("pushed") == well + 1
