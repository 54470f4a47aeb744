"""What becomes of a push that goes wrong: it is counted and logged, and the others go on."""

import asyncio
import re
from collections.abc import Callable, Sequence
from threading import Event, Semaphore
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from bucketwire.event.change import ObjectChange
from bucketwire.event.message import Message
from bucketwire.event.topic import Topic
from bucketwire.gateway import push_turns
from bucketwire.gateway.push import THREADS, Pushes
from bucketwire.gateway.push_turns import NOT_TAKEN, TOO_MANY_HANG
from bucketwire.metrics import MESSAGES
from bucketwire.publish.base import Delivered, Outcome, Retry
from bucketwire.publish.connections import Connections
from bucketwire.publish.publishers import Publishers
from factories import change, message, topic

Publish = Callable[[str, float], Outcome]
LONG_SECONDS = 60.0
SECRET = "what a tenant wrote"
SOON_SECONDS = 10.0


class ScriptedRouter:
    """Routes a change to the topic that has the name of its key: `name`, or `owner-name`."""

    def __init__(self, before: Callable[[], object]) -> None:
        self.before = before

    def refresh(self) -> None:
        self.before()

    def topic(self, arn: str) -> Topic:
        name = arn.rpartition(":")[2]
        return msgspec.structs.replace(topic(name=name), owner_id=name.partition("-")[0])

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
    raise RuntimeError(SECRET)


def counted(outcome: str) -> float:
    return float(MESSAGES.labels(outcome)._value.get())


@pytest.fixture
def failed() -> Callable[[], float]:
    """How many pushes have failed in this test."""
    before = counted("push_failed")
    return lambda: counted("push_failed") - before


def assert_told_without_its_text(lines: list[Any]) -> None:
    told = [(line["event"], line["log_level"], line["reason"]) for line in lines]
    assert told == [("push_failed", "error", "unexpected RuntimeError")]
    assert "raise RuntimeError" in lines[0]["traceback"]
    assert "exc_info" not in lines[0]
    assert SECRET not in str(lines)


def test_an_unforeseen_exception_in_a_push_is_logged_without_its_text_and_counted(
    failed: Callable[[], float],
) -> None:
    with capture_logs() as lines:
        asyncio.run(pushes(broken).deliver([change("a")]))
    assert_told_without_its_text(lines)
    assert failed() == 1


def test_an_unforeseen_exception_in_routing_is_logged_without_its_text_and_counted(
    failed: Callable[[], float],
) -> None:
    with capture_logs() as lines:
        asyncio.run(pushes(delivered, before=broken).deliver([change("a"), change("b")]))
    assert_told_without_its_text(lines)
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


class Hanging:
    """Takes what its well topics get; the others get no answer before they are let go."""

    def __init__(self) -> None:
        self.released = Event()
        self.under_way = Semaphore(0)

    def publish(self, name: str, _seconds: float) -> Outcome:
        if name.endswith("-well"):
            return Delivered()
        self.under_way.release()
        self.released.wait(LONG_SECONDS)
        return Retry("no answer")

    async def until_under_way(self, count: int) -> None:
        for _ in range(count):
            assert await asyncio.to_thread(self.under_way.acquire, timeout=LONG_SECONDS)

    async def while_stuck(self, under_test: Pushes, changes: list[ObjectChange]) -> None:
        """Deliver to a topic that is well while a quarter of the threads hangs with these changes."""
        stuck = asyncio.ensure_future(under_test.deliver(changes))
        await self.until_under_way(THREADS // 4)
        try:
            async with asyncio.timeout(SOON_SECONDS):
                await under_test.deliver([change("good-well")])
        finally:
            self.released.set()
            await stuck


def test_one_owner_whose_topics_all_hang_leaves_threads_to_the_others() -> None:
    hanging = Hanging()

    async def scene(under_test: Pushes) -> None:
        await hanging.while_stuck(under_test, [change(f"bad-{each}") for each in range(THREADS)])

    well = counted("pushed")
    asyncio.run(scene(pushes(hanging.publish)))
    assert counted("pushed") == well + 1


def test_topics_of_many_owners_that_hang_leave_threads_to_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(push_turns, "HANGING_SECONDS", 0.0)
    hanging = Hanging()
    changes = [change(f"owner{each}-ill") for each in range(THREADS)]

    async def scene(under_test: Pushes) -> None:
        hanging.released.set()
        await under_test.deliver(changes)
        await hanging.until_under_way(THREADS)
        hanging.released.clear()
        await hanging.while_stuck(under_test, changes)

    well = counted("pushed")
    with capture_logs() as lines:
        asyncio.run(scene(pushes(hanging.publish)))
    assert counted("pushed") == well + 1
    refused = [line["reason"] for line in lines].count(TOO_MANY_HANG)
    assert refused == THREADS - THREADS // 4
