"""How long a drain waits for an answer, and what an endpoint gets that needs longer than a first retry."""

import dataclasses
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from bucketwire.config import PipelineSettings
from bucketwire.errors import Unavailable
from bucketwire.event.message import Message
from bucketwire.metabase.base import Metabase
from bucketwire.metabase.values import TopicHealth
from bucketwire.pipeline import claims, redeliver
from bucketwire.pipeline.deadline import deadline_of
from bucketwire.pipeline.pace import slow_health
from bucketwire.pipeline.redeliver import redeliver_topics
from bucketwire.pipeline.worker import Worker, make_worker
from bucketwire.publish.base import Delivered, Outcome, Retry, no_answer
from bucketwire.publish.connections import Connections
from bucketwire.publish.publishers import Publishers
from clock import Clock
from factories import TOPIC_ARN, message, topic

SHORT, LONGEST = 5.0, 30.0
FIRST_FAILURE = TopicHealth(TOPIC_ARN, 1, 0, no_answer(SHORT).reason)


@pytest.fixture
def settings(tmp_path: Path) -> PipelineSettings:
    return PipelineSettings(f"sqlite:///{tmp_path}/metabase.db", "aws", tmp_path)


def failed(failures: int, reason: str) -> TopicHealth:
    return TopicHealth(TOPIC_ARN, failures, 0, reason)


@pytest.mark.parametrize(
    ("health", "seconds"),
    [
        (TopicHealth(TOPIC_ARN), SHORT),
        (failed(1, "no answer within 5 s"), SHORT),
        (failed(2, "no answer within 5 s"), SHORT),
        (failed(3, "no answer within 5 s"), 10),
        (failed(4, "no answer within 10 s"), 20),
        (failed(5, "no answer within 20 s"), LONGEST),
        (failed(90, "no answer within 30 s"), LONGEST),
        (failed(90, "no answer within 5 s"), 10),
        (failed(90, "no answer within 0.25 s"), SHORT),
        (failed(90, "connection refused"), SHORT),
        (failed(2, "no answer within 30 s"), SHORT),
        (slow_health(TOPIC_ARN), SHORT),
        (slow_health(TOPIC_ARN, very=True), LONGEST),
    ],
)
def test_the_deadline_doubles_from_the_third_failure_on_where_there_was_no_answer(
    settings: PipelineSettings, health: TopicHealth, seconds: float
) -> None:
    assert (settings.retry_deadline_seconds, settings.longest_deadline_seconds) == (SHORT, LONGEST)
    assert deadline_of(health, settings) == seconds


@pytest.mark.parametrize(
    "health", [FIRST_FAILURE, failed(9, "no answer within 5 s"), slow_health("", very=True)]
)
def test_a_longest_wait_that_is_shorter_than_a_first_retry_changes_nothing(
    settings: PipelineSettings, health: TopicHealth
) -> None:
    assert deadline_of(health, dataclasses.replace(settings, longest_deadline_seconds=1.0)) == SHORT


@dataclass
class Endpoint:
    """Answers each call after so many seconds, if that is waited for. Time passes in steps."""

    clock: Clock
    seconds: float = 0.0
    outcome: Outcome = field(default_factory=Delivered)
    swallowed: set[str] = field(default_factory=set)
    """Messages that it never answers."""
    received: list[str] = field(default_factory=list)
    deadlines: list[float] = field(default_factory=list)
    each_second: Callable[[], None] = lambda: None
    is_busy: bool = False
    """Whether this process is at work while it waits."""

    def publish(self, messages: Sequence[Message], deadline_seconds: float) -> list[Outcome]:
        self.received += [each.event_id for each in messages]
        self.deadlines.append(deadline_seconds)
        unanswered = self.seconds > deadline_seconds
        lost = {each.event_id for each in messages if unanswered or each.event_id in self.swallowed}
        self.wait(deadline_seconds + 0.01 if lost else self.seconds)
        return [no_answer(deadline_seconds) if each.event_id in lost else self.outcome for each in messages]

    def wait(self, seconds: float) -> None:
        while seconds > 0:
            self.clock.pass_by(min(seconds, claims.KEEP_EVERY_SECONDS))
            self.clock.worked += claims.KEEP_EVERY_SECONDS if self.is_busy else 0
            seconds -= claims.KEEP_EVERY_SECONDS
            self.each_second()

    def close(self) -> None:
        """There is no connection."""


@dataclass
class Rig:
    """A topic that leads to the endpoint, and the retries."""

    worker: Worker
    metabase: Metabase
    endpoint: Endpoint

    def park(self, *event_ids: str) -> None:
        parked = [message(each, TOPIC_ARN) for each in event_ids]
        self.metabase.queue.park(parked, due_at_ns=0, attempts=0, reason="behind others that wait")

    def drain(self) -> None:
        """Until nothing waits."""
        for _ in range(10_000):
            if not self.metabase.queue.has_parked(TOPIC_ARN):
                return
            self.round()
        raise AssertionError("it never ends")

    def round(self) -> None:
        if due := self.metabase.queue.due_topics(self.endpoint.clock.time_ns()):
            redeliver_topics(self.worker, due)
        while self.worker.drains:  # a drain that is waited for tells of its end a little later
            time.sleep(0)
        self.endpoint.clock.pass_by(redeliver.TICK_SECONDS)

    def health(self) -> TopicHealth:
        return self.metabase.queue.unhealthy()[TOPIC_ARN]


@pytest.fixture
def rig(metabase: Metabase, settings: PipelineSettings, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    clock = Clock()
    for place in ("redeliver", "claims", "attempt", "pace"):
        monkeypatch.setattr(f"bucketwire.pipeline.{place}.time", clock)
    monkeypatch.setattr("bucketwire.metabase.sqlite.queue.time", clock)
    monkeypatch.setattr(redeliver, "WAIT_FOR_DRAINS_SECONDS", 30)
    endpoint = Endpoint(clock)
    opener: Callable[..., Any] = lambda *_: endpoint  # noqa: E731
    publishers = Publishers(opener, Connections())
    worker = dataclasses.replace(
        make_worker(settings, metabase), publishers=publishers, drain_publishers=publishers
    )
    endpoint.each_second = worker.claims.keep
    metabase.topics.put(topic())
    yield Rig(worker, metabase, endpoint)
    for threads in (worker.threads, worker.attempts, worker.drain_threads):
        threads.shutdown()


@pytest.mark.parametrize(
    ("seconds", "deadlines"),
    [(7, [5, 5, 10]), (12, [5, 5, 10, 20]), (28, [5, 5, 10, 20, 30])],
)
def test_an_endpoint_that_needs_longer_than_a_retry_waits_gets_a_message_a_few_times_and_the_next_once(
    rig: Rig, seconds: float, deadlines: list[float]
) -> None:
    rig.endpoint.seconds = seconds
    rig.metabase.queue.report(FIRST_FAILURE)
    rig.park("first")
    rig.drain()
    assert rig.endpoint.deadlines == deadlines
    assert rig.health().reason == "answers very slowly"
    following = [str(number) for number in range(40)]
    rig.park(*following)
    rig.drain()
    rig.park("last")
    rig.drain()
    counts = Counter(rig.endpoint.received)
    assert counts.pop("first") == len(deadlines)
    assert counts == Counter([*following, "last"])
    assert set(rig.endpoint.deadlines[len(deadlines) :]) == {LONGEST}


def test_what_a_short_hang_has_swallowed_is_tried_again_as_soon_as_before(rig: Rig) -> None:
    rig.endpoint.seconds = 1_000
    rig.metabase.queue.report(FIRST_FAILURE)
    rig.park("swallowed")
    rig.round()
    rig.endpoint.seconds = 0
    began = rig.endpoint.clock.now
    rig.drain()
    assert rig.endpoint.deadlines == [SHORT, SHORT]
    assert rig.endpoint.clock.now - began < 1


def test_an_endpoint_that_fails_at_once_is_not_waited_for_longer_when_it_is_back(rig: Rig) -> None:
    rig.endpoint.outcome = Retry("connection refused")
    rig.metabase.queue.report(failed(1, "connection refused"))
    rig.park("one")
    for _ in range(1_000):
        rig.round()
    assert len(rig.endpoint.deadlines) > 5
    assert set(rig.endpoint.deadlines) == {SHORT}


def test_one_message_without_an_answer_does_not_make_an_endpoint_slow_that_answers_the_others(
    rig: Rig,
) -> None:
    rig.endpoint.swallowed = {"bad"}
    rig.park("bad")
    for number in range(400):
        rig.park(f"good {number}")
        rig.round()
    counts = Counter(rig.endpoint.received)
    assert counts.pop("bad") > 5
    assert set(counts.values()) == {1}
    assert set(rig.endpoint.deadlines) == {SHORT}


def test_a_message_that_is_never_answered_holds_up_others_for_hardly_longer_than_its_call(rig: Rig) -> None:
    """One message a minute comes beside it, in the middle of a call too."""
    clock, written, waits = rig.endpoint.clock, {}, {}
    rig.endpoint.swallowed = {"bad"}
    rig.park("bad")
    began = clock.now

    def look() -> None:
        rig.worker.claims.keep()
        if clock.now > began + 61.3 * (len(written) + 1):
            written[good := f"good {len(written)}"] = clock.now
            rig.park(good)
        waits.update(
            {each: clock.now - written[each] for each in rig.endpoint.received if each not in {"bad", *waits}}
        )

    rig.endpoint.each_second = look
    while len(waits) < 30:
        rig.round()
        look()
    assert max(rig.endpoint.deadlines) == LONGEST
    assert max(waits.values()) < LONGEST + SHORT


def test_after_an_outage_the_first_answers_bring_the_short_deadline_back(rig: Rig) -> None:
    rig.metabase.queue.report(failed(5, "no answer within 20 s"))
    rig.park(*(str(number) for number in range(20)))
    rig.drain()
    assert rig.endpoint.deadlines[0] == LONGEST
    assert set(rig.endpoint.deadlines[1:]) == {SHORT}


def test_a_broker_is_not_waited_for_any_longer(rig: Rig) -> None:
    """Its topics share connections, on which a long call would hold up the others."""
    rig.metabase.topics.put(topic("kafka://127.0.0.1:9092"))
    rig.metabase.queue.report(failed(9, "no answer within 5 s"))
    rig.park("one")
    rig.round()
    assert rig.endpoint.deadlines == [SHORT]


def test_nor_needs_a_broker_a_place_among_those_that_wait_long(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redeliver, "LONG_DRAINS", 1)
    rig.worker.waiting_long.add("another")
    rig.metabase.topics.put(topic("kafka://127.0.0.1:9092"))
    rig.metabase.queue.report(slow_health(TOPIC_ARN, 1, very=True))
    rig.park("one")
    rig.round()
    assert rig.endpoint.deadlines == [SHORT]


def test_a_process_that_was_paused_takes_no_endpoint_for_very_slow(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = rig.endpoint.publish

    def answered_before_a_pause(messages: Sequence[Message], deadline_seconds: float) -> list[Outcome]:
        outcomes = answer(messages, deadline_seconds)
        rig.endpoint.wait(7)
        return outcomes

    monkeypatch.setattr(rig.endpoint, "publish", answered_before_a_pause)
    rig.metabase.queue.report(FIRST_FAILURE)
    rig.park("one")
    rig.drain()
    assert rig.health().reason == "answers slowly"


def test_an_endpoint_is_very_slow_also_for_a_process_that_was_busy_while_it_answered(rig: Rig) -> None:
    rig.endpoint.seconds = 7
    rig.endpoint.is_busy = True
    rig.metabase.queue.report(FIRST_FAILURE)
    rig.park("first")
    rig.drain()
    assert rig.health().reason == "answers very slowly"


def test_a_metabase_that_fails_while_topics_are_looked_up_holds_up_no_topic(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: str) -> None:
        raise Unavailable("it is away")

    rig.park("one")
    with monkeypatch.context() as patched:
        patched.setattr(rig.worker.router, "topic", fails)
        with pytest.raises(Unavailable):
            rig.round()
    rig.round()
    assert rig.endpoint.received == ["one"]


def test_an_endpoint_that_is_quick_again_is_not_waited_for_any_longer_than_others(rig: Rig) -> None:
    rig.metabase.queue.report(slow_health(TOPIC_ARN, 1, very=True))
    rig.park("one")
    rig.drain()
    assert rig.endpoint.deadlines == [LONGEST]
    assert rig.metabase.queue.unhealthy() == {}


def test_a_topic_stays_in_hand_for_as_long_as_a_call_may_take(
    rig: Rig, settings: PipelineSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "LONGEST_SECONDS", 2)
    longest = dataclasses.replace(settings, longest_deadline_seconds=100.0)
    made = make_worker(longest, rig.metabase)
    rig.worker = dataclasses.replace(made, drain_publishers=rig.worker.drain_publishers)
    rig.endpoint.each_second, rig.endpoint.seconds = made.claims.keep, 99
    rig.metabase.queue.report(slow_health(TOPIC_ARN, 1, very=True))
    rig.park("one")
    rig.drain()
    made.drain_threads.shutdown()
    assert rig.endpoint.received == ["one"]
    assert rig.health().reason == "answers very slowly"


def test_a_place_among_those_that_wait_long_is_taken_and_given_back(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redeliver, "LONG_DRAINS", 1)
    seen: list[set[str]] = []
    rig.endpoint.seconds = 2.5

    def look() -> None:
        seen.append(set(rig.worker.waiting_long))
        rig.worker.claims.keep()

    rig.endpoint.each_second = look
    rig.metabase.queue.report(slow_health(TOPIC_ARN, 1, very=True))
    rig.park("one")
    rig.drain()
    assert seen == [{TOPIC_ARN}] * 3
    rig.worker.drain_threads.shutdown()
    assert rig.worker.waiting_long == set()


def test_when_no_place_is_left_a_failing_topic_is_tried_as_at_first(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redeliver, "LONG_DRAINS", 1)
    rig.worker.waiting_long.add("another")
    rig.metabase.queue.report(failed(6, "no answer within 30 s"))
    rig.park("one")
    rig.round()
    assert rig.endpoint.deadlines == [SHORT]


def test_and_one_that_answers_very_slowly_waits_for_its_turn_so_that_nothing_comes_twice(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redeliver, "LONG_DRAINS", 1)
    rig.worker.waiting_long.add("another")
    rig.metabase.queue.report(slow_health(TOPIC_ARN, 1, very=True))
    rig.park("one")
    rig.round()
    assert rig.endpoint.received == []
    rig.worker.waiting_long.clear()
    rig.endpoint.seconds = 7
    rig.drain()
    assert rig.endpoint.received == ["one"]
    assert rig.endpoint.deadlines == [LONGEST]
