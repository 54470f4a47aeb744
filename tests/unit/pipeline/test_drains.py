"""A drain of one topic: its trouble is nobody else's, and nobody else is at work while it is."""

import dataclasses
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import pytest
import structlog

from bucketwire.config import PipelineSettings
from bucketwire.errors import Conflict, Unavailable
from bucketwire.event.message import Message
from bucketwire.metabase.base import Metabase
from bucketwire.metabase.values import Letters, Settlement, TopicHealth
from bucketwire.pipeline import claims, redeliver
from bucketwire.pipeline.attempt import CLAIM_SECONDS, Attempt
from bucketwire.pipeline.claims import Claims
from bucketwire.pipeline.deliver import SliceDelivery
from bucketwire.pipeline.flow import Flow
from bucketwire.pipeline.outcomes import Tally
from bucketwire.pipeline.pace import slow_health
from bucketwire.pipeline.redeliver import TopicDrain, redeliver_topics
from bucketwire.pipeline.worker import Worker, make_worker
from bucketwire.publish.backoff import SHORTEST_SECONDS, SPREAD
from bucketwire.publish.base import Delivered, Outcome, Rejected, Retry
from bucketwire.publish.connections import Connections
from bucketwire.publish.publishers import Publishers
from clock import Clock
from factories import message, topic
from written import written_changes

TOO_LONG_SECONDS = 10**12
"""In nanoseconds it is more than SQLite takes."""
ALMOST_CRITICAL = 4
CALL_SECONDS = 5
"""Longer than a claim."""


@dataclass
class Destination:
    """Of all topics. Answers as it is told, after `act`."""

    outcomes: list[Outcome] = field(default_factory=list)
    act: Callable[[], object] = lambda: None
    calls: list[list[str]] = field(default_factory=list)

    def publish(self, messages: Sequence[Message], _: float) -> list[Outcome]:
        self.calls.append([each.event_id for each in messages])
        self.act()
        return (self.outcomes or [Delivered()] * len(messages))[: len(messages)]

    def close(self) -> None:
        """There is no connection."""


@pytest.fixture
def destination() -> Destination:
    return Destination()


@pytest.fixture
def worker(
    metabase: Metabase, destination: Destination, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Worker]:
    monkeypatch.setattr(redeliver, "WAIT_FOR_DRAINS_SECONDS", 30)
    settings = PipelineSettings(f"sqlite:///{tmp_path}/metabase.db", "aws", tmp_path)
    opener: Callable[..., Any] = lambda *_: destination  # noqa: E731
    publishers = Publishers(opener, Connections())
    made = dataclasses.replace(
        make_worker(settings, metabase), publishers=publishers, drain_publishers=publishers
    )
    yield made
    for threads in (made.threads, made.attempts, made.drain_threads):
        threads.shutdown()


def park(metabase: Metabase, name: str, *event_ids: str, **attributes: str) -> str:
    """A topic with these messages; its ARN."""
    made = topic(name=name, **attributes)
    metabase.topics.put(made)
    parked = [message(event_id, made.arn) for event_id in event_ids]
    metabase.queue.park(parked, due_at_ns=0, attempts=1, reason="HTTP 503")
    return made.arn


def waiting(metabase: Metabase, arn: str) -> int:
    return len(metabase.queue.pending(arn, after=0, limit=100))


def failed_drains(lines: Sequence[Any]) -> list[tuple[str, str]]:
    return [(line["topic"], line["reason"]) for line in lines if line["event"] == "drain_failed"]


def test_a_limit_that_the_metabase_cannot_count_with_ends_the_drain_of_its_topic_alone(
    worker: Worker, metabase: Metabase
) -> None:
    bad = park(metabase, "bad", "event-1", time_to_live=str(TOO_LONG_SECONDS))
    good = park(metabase, "good", "event-2")
    with structlog.testing.capture_logs() as lines:
        assert redeliver_topics(worker, [bad, good]) == Tally(delivered=1)
    ((arn, reason),) = failed_drains(lines)
    assert arn == bad
    assert reason.startswith("OverflowError: ")
    assert waiting(metabase, bad) == 1


def test_a_parked_message_that_cannot_be_read_ends_the_drain_of_its_topic_alone(
    worker: Worker, metabase: Metabase, tmp_path: Path
) -> None:
    bad, good = park(metabase, "bad", "event-1"), park(metabase, "good", "event-2")
    damage(tmp_path, bad)
    with structlog.testing.capture_logs() as lines:
        assert redeliver_topics(worker, [bad, good]) == Tally(delivered=1)
    assert [arn for arn, _ in failed_drains(lines)] == [bad]


def damage(folder: Path, arn: str) -> None:
    """Write nonsense over the parked messages of a topic."""
    for path in folder.glob("*.db"):
        with sqlite3.connect(path) as connection:
            if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'parked'").fetchone():
                connection.execute("UPDATE parked SET message = x'00' WHERE topic_arn = ?", (arn,))
        connection.close()


def test_a_metabase_that_is_away_is_raised_and_what_else_went_wrong_is_logged(
    worker: Worker, metabase: Metabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    arns = [park(metabase, name, name) for name in ("away", "bad", "good")]
    take = metabase.queue.take

    def take_or_raise(topic_arn: str, now_ns: int, limit: int) -> Any:
        match topic_arn.rpartition(":")[2]:
            case "away":
                raise Unavailable("the disk is full")
            case "bad":
                raise RuntimeError("a mistake of ours")
        return take(topic_arn, now_ns, limit)

    monkeypatch.setattr(metabase.queue, "take", take_or_raise)
    with structlog.testing.capture_logs() as lines, pytest.raises(Unavailable):
        redeliver_topics(worker, arns)
    assert failed_drains(lines) == [(arns[1], "RuntimeError: a mistake of ours")]
    assert waiting(metabase, arns[2]) == 0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    for place in ("redeliver", "claims", "attempt", "pace"):
        monkeypatch.setattr(f"bucketwire.pipeline.{place}.time", made)
    monkeypatch.setattr("bucketwire.metabase.sqlite.queue.time", made)
    return made


@dataclass
class Topic:
    """One topic in hand, on a clock of its own."""

    worker: Worker
    arn: str
    clock: Clock
    seen_due: list[bool] = field(default_factory=list)

    def drain(self, failures: int = 1) -> TopicDrain:
        """A drain that has claimed the topic."""
        self.worker.router.refresh()
        health = TopicHealth(self.arn, failures, 0, "HTTP 503")
        self.worker.metabase.queue.report(health)
        assert self.worker.claims.take([health]) == [health]
        return TopicDrain(self.worker, health, CALL_SECONDS)

    def look(self, seconds: int) -> None:
        """Note whether another worker would take it in the course of so many seconds."""
        for _ in range(seconds):
            self.clock.pass_by(claims.KEEP_EVERY_SECONDS)
            self.worker.claims.keep()
            self.seen_due.append(self.is_due())

    def is_due(self) -> bool:
        return self.arn in self.worker.metabase.queue.due_topics(self.clock.time_ns())

    def pass_on(self) -> TopicHealth:
        """The process stands still for so long that another worker has claimed it."""
        self.clock.pass_by(claims.SECONDS + 1)
        assert self.is_due()
        health = self.health()
        assert health is not None
        assert Claims(self.worker.metabase.queue, CALL_SECONDS).take([health]) == [health]
        claimed = self.health()
        assert claimed is not None
        return claimed

    def health(self) -> TopicHealth | None:
        return self.worker.metabase.queue.unhealthy().get(self.arn)


@pytest.fixture
def in_hand(worker: Worker, metabase: Metabase, clock: Clock) -> Topic:
    """Six messages have waited for too long, one has not."""
    arn = park(metabase, "videos", *(f"old-{number}" for number in range(6)), time_to_live="60")
    clock.pass_by(61)
    park(metabase, "videos", "new", time_to_live="60")
    return Topic(worker, arn, clock)


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redeliver, "MOST_MESSAGES", 2)


def before_each_page(metabase: Metabase, monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    expire = metabase.queue.expire

    def slowly(*args: Any, **limits: Any) -> list[Message]:
        act()
        return expire(*args, **limits)

    monkeypatch.setattr(metabase.queue, "expire", slowly)


@pytest.mark.usefixtures("small_pages")
def test_a_topic_stays_claimed_while_much_of_it_expires(
    metabase: Metabase, destination: Destination, in_hand: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    before_each_page(metabase, monkeypatch, partial(in_hand.look, CALL_SECONDS))
    destination.act = partial(in_hand.look, CALL_SECONDS)
    assert in_hand.drain().run() == Tally(delivered=1, buried=6)
    assert in_hand.seen_due == [False] * CALL_SECONDS * 5, "four pages, the last of them empty, and a call"
    assert destination.calls == [["new"]]


@pytest.mark.usefixtures("small_pages")
def test_a_drain_that_has_lost_its_claim_publishes_nothing_and_says_nothing(
    metabase: Metabase, destination: Destination, in_hand: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    others: list[TopicHealth] = []
    before_each_page(metabase, monkeypatch, lambda: others.append(in_hand.pass_on()))
    with structlog.testing.capture_logs() as lines, pytest.raises(Conflict, match="has run out"):
        in_hand.drain().run()
    assert len(others) == 1, "it has stopped after the first page"
    assert in_hand.health() == others[0]
    assert destination.calls == []
    assert [line["buried"] for line in lines if line["event"] == "parked_redelivered"] == [2]


def test_a_drain_whose_only_page_took_too_long_publishes_nothing(
    metabase: Metabase, destination: Destination, in_hand: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    before_each_page(metabase, monkeypatch, in_hand.pass_on)
    with pytest.raises(Conflict):
        in_hand.drain().run()
    assert destination.calls == []


@pytest.mark.parametrize("outcome", [Delivered(), Retry("HTTP 503")], ids=["delivered", "failed"])
def test_a_drain_that_comes_back_too_late_settles_its_messages_and_leaves_the_topic_to_the_other(
    metabase: Metabase, destination: Destination, in_hand: Topic, outcome: Outcome
) -> None:
    others: list[TopicHealth] = []
    destination.outcomes = [outcome]
    destination.act = lambda: others.append(in_hand.pass_on())
    with pytest.raises(Conflict):
        in_hand.drain().run()
    assert in_hand.health() == others[0]
    assert waiting(metabase, in_hand.arn) == (outcome != Delivered())


def test_a_topic_stays_claimed_while_its_alarm_is_raised(
    destination: Destination, in_hand: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    alarms: list[TopicHealth] = []

    def raise_alarm(health: TopicHealth, _: str) -> None:
        alarms.append(health)
        in_hand.look(CALL_SECONDS)

    monkeypatch.setattr(redeliver, "raise_alarm", raise_alarm)
    destination.outcomes, destination.act = [Retry("HTTP 503")], partial(in_hand.look, CALL_SECONDS)
    in_hand.drain(ALMOST_CRITICAL).run()
    assert [alarm.failures for alarm in alarms] == [ALMOST_CRITICAL + 1]
    assert in_hand.seen_due == [False] * CALL_SECONDS * 2
    health = in_hand.health()
    assert health is not None
    assert health.failures == ALMOST_CRITICAL + 1


def test_a_drain_that_has_lost_its_claim_raises_no_alarm(
    destination: Destination, in_hand: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    alarms: list[TopicHealth] = []
    monkeypatch.setattr(redeliver, "raise_alarm", lambda health, _: alarms.append(health))
    destination.outcomes = [Retry("HTTP 503")]
    destination.act = in_hand.pass_on
    with pytest.raises(Conflict):
        in_hand.drain(ALMOST_CRITICAL).run()
    assert alarms == []


@pytest.mark.usefixtures("small_pages")
def test_what_expires_after_a_failure_does_not_shorten_the_pause(
    metabase: Metabase, destination: Destination, in_hand: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No claim is made in the place of the pause, however many pages there are."""
    monkeypatch.setattr(metabase.queue, "expire", held_back(metabase.queue.expire, until=destination))
    destination.outcomes = [Retry("HTTP 503", after_seconds=600)]
    asked_ns = in_hand.clock.time_ns() + int(600 * 1e9)
    assert in_hand.drain().run() == Tally(parked=1, buried=6)
    assert in_hand.health() == TopicHealth(in_hand.arn, 2, asked_ns, "HTTP 503")


@pytest.mark.parametrize(("failures", "pause_seconds"), [(0, 0), (2, 0), (6, 8 - CALL_SECONDS)])
def test_a_pause_begins_with_the_attempt_that_has_failed(
    destination: Destination, in_hand: Topic, failures: int, pause_seconds: int
) -> None:
    destination.act = partial(in_hand.look, CALL_SECONDS)
    destination.outcomes = [Retry("no answer")]
    in_hand.drain(failures).run()
    health = in_hand.health()
    assert health is not None
    assert health.failures == failures + 1
    pause = health.retry_at_ns / 1e9 - in_hand.clock.now
    assert pause_seconds < pause <= pause_seconds + 8 * SPREAD, "and a little by chance"


@dataclass
class LateCall:
    """A call that the batch did not wait for."""

    worker: Worker
    destination: Destination
    clock: Clock
    arn: str

    def end(self, seconds: float, *outcomes: Outcome, before: Callable[[], object] = lambda: None) -> None:
        """It ends after so long, with these outcomes of two messages; `before` that, something happens."""
        hangs = Event()
        self.destination.act, self.destination.outcomes = hangs.wait, list(outcomes)
        messages = [message(each, self.arn) for each in ("late", "later")]
        attempt = Attempt(self.worker, topic(), self.destination.publish, messages)
        assert attempt.outcomes(0.01) is None
        attempt.let_go("no answer within 0.25 s")
        self.clock.pass_by(seconds)
        before()
        hangs.set()
        self.worker.attempts.shutdown()

    def pause_seconds(self) -> float:
        health = self.worker.metabase.queue.unhealthy()[self.arn]
        return health.retry_at_ns / 1e9 - self.clock.now


@pytest.fixture
def late_call(worker: Worker, metabase: Metabase, destination: Destination, clock: Clock) -> LateCall:
    return LateCall(worker, destination, clock, park(metabase, "videos"))


@pytest.mark.parametrize(("seconds", "pause_seconds"), [(0.6, 0.4), (CALL_SECONDS, SHORTEST_SECONDS)])
def test_a_call_that_fails_late_is_followed_by_the_next_as_if_it_had_failed_in_time(
    metabase: Metabase, late_call: LateCall, clock: Clock, seconds: float, pause_seconds: float
) -> None:
    late_call.end(seconds, Retry("HTTP 500"), Retry("HTTP 500"))
    assert late_call.pause_seconds() == pytest.approx(pause_seconds)
    assert metabase.queue.due_topics(clock.time_ns()) == []
    clock.pass_by(pause_seconds + 0.001)
    assert metabase.queue.due_topics(clock.time_ns()) == [late_call.arn]
    tried = metabase.queue.take(late_call.arn, clock.time_ns(), 10)
    assert [(each.reason, each.attempts) for each in tried] == [("HTTP 500", 1)] * 2


def test_of_a_late_call_each_message_is_settled_by_its_own_outcome(
    metabase: Metabase, late_call: LateCall, clock: Clock
) -> None:
    late_call.end(2, Delivered(), Rejected("HTTP 410"))
    assert waiting(metabase, late_call.arn) == 0
    (letter,) = metabase.queue.letters(Letters(), 10)
    assert (letter.message.event_id, letter.reason) == ("later", "HTTP 410")
    assert metabase.queue.unhealthy()[late_call.arn].reason == "answers slowly"
    assert metabase.queue.due_topics(clock.time_ns()) == []


def test_of_a_late_call_that_gets_some_through_the_others_follow_by_the_ladder(
    metabase: Metabase, late_call: LateCall, clock: Clock
) -> None:
    late_call.end(2, Delivered(), Retry("HTTP 500"))
    (left,) = metabase.queue.pending(late_call.arn, after=0, limit=10)
    assert left.due_at_ns - clock.time_ns() == pytest.approx(1e9)


@pytest.mark.parametrize("outcome", [Delivered(), Retry("no answer")])
def test_who_comes_back_from_a_late_call_leaves_the_topic_to_who_has_it_by_then(
    worker: Worker, metabase: Metabase, late_call: LateCall, outcome: Outcome
) -> None:
    other = Claims(metabase.queue, CALL_SECONDS)

    def claim() -> None:
        assert other.take([metabase.queue.unhealthy()[late_call.arn]])

    late_call.end(CALL_SECONDS + CLAIM_SECONDS + 0.1, outcome, outcome, before=claim)
    claimed = metabase.queue.unhealthy()[late_call.arn]
    assert late_call.pause_seconds() == pytest.approx(claims.SECONDS)
    assert worker.claims.take([claimed]) == []


def test_a_batch_leaves_a_topic_to_the_drain_that_has_it_in_hand(
    worker: Worker, metabase: Metabase, destination: Destination
) -> None:
    """It was healthy when the batch began."""
    arn = park(metabase, "videos", "one")
    made = topic(name="videos")
    drain = Claims(metabase.queue, CALL_SECONDS)
    destination.act = lambda: drain.take([TopicHealth(arn)])
    destination.outcomes = [Retry("HTTP 503")]
    delivery = SliceDelivery(worker)
    delivery._try(made, destination.publish, [message("two", arn)])
    (claimed,) = metabase.queue.unhealthy().values()
    assert (claimed.failures, claimed.reason) == (1, "")
    drain.check(arn)
    drain.keep()
    drain.check(arn)


def test_a_slow_topic_gets_more_at_once_from_drain_to_drain(
    worker: Worker, metabase: Metabase, destination: Destination, clock: Clock
) -> None:
    arn = park(metabase, "videos", *map(str, range(200)))
    metabase.queue.report(slow_health(arn, clock.time_ns()))
    worker.router.refresh()
    destination.act = partial(clock.pass_by, redeliver.TIME_SLICE_SECONDS + 0.2)
    while waiting(metabase, arn):
        health = metabase.queue.unhealthy()[arn]
        assert worker.claims.take([health])
        TopicDrain(worker, health, CALL_SECONDS).run()
    assert [len(call) for call in destination.calls] == [1, 2, 4, 8, 16, 32, 64, 73]
    assert sum(map(len, destination.calls)) == 200


def test_no_more_go_out_at_once_than_are_answered_in_half_the_time(
    worker: Worker, metabase: Metabase, destination: Destination, clock: Clock
) -> None:
    """With twice as many, the last of them might not be answered in time, and come twice."""
    arn = park(metabase, "videos", *map(str, range(100)))
    worker.router.refresh()

    def answer_each() -> None:
        for _ in destination.calls[-1]:
            clock.pass_by(1 / 8)
            worker.claims.keep()

    destination.act = answer_each
    while waiting(metabase, arn):
        health = metabase.queue.unhealthy().get(arn, slow_health(arn, clock.time_ns()))
        metabase.queue.report(health)
        assert worker.claims.take([health])
        TopicDrain(worker, health, CALL_SECONDS).run()
    assert [len(call) for call in destination.calls] == [1, 2, 4, 8, 16, 32, 32, 5]


def test_a_topic_that_has_failed_is_probed_with_one_message_whatever_it_took_before(
    worker: Worker, metabase: Metabase, destination: Destination, in_hand: Topic
) -> None:
    park(metabase, "videos", "more", "and more", time_to_live="60")
    worker.flows[in_hand.arn] = Flow()
    destination.outcomes = [Retry("HTTP 503")]
    in_hand.drain().run()
    assert [len(call) for call in destination.calls] == [1]
    assert in_hand.arn not in worker.flows


def held_back(expire: Callable[..., list[Message]], until: Destination) -> Callable[..., list[Message]]:
    """Nothing expires before the destination was called."""
    return lambda *args, **limits: expire(*args, **limits) if until.calls else []


def test_what_was_delivered_is_noted_though_the_rest_cannot_be_parked(
    worker: Worker, metabase: Metabase, destination: Destination, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = written_changes(metabase, "ab")
    destination.outcomes = [Delivered(), Retry("HTTP 503")]

    def refuse(*_: object, **__: object) -> None:
        raise Unavailable("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(metabase.queue, "park", refuse)
        with pytest.raises(Unavailable):
            SliceDelivery(worker).run(changes)
    destination.outcomes = []
    worker.receipts.outdate(time.time_ns())
    assert SliceDelivery(worker).run(changes) == Tally(delivered=1)
    assert destination.calls[1] == destination.calls[0][1:], "only the other one is sent again"


REFUSED = Retry("HTTP 422", of_message=True)


def test_a_message_that_is_refused_again_and_again_leaves_its_topic_healthy(
    worker: Worker, metabase: Metabase, destination: Destination
) -> None:
    """Others got through since it was refused first."""
    arn = park(metabase, "videos", "refused")
    destination.outcomes = [REFUSED]
    for _ in range(3):
        assert redeliver_topics(worker, [arn]) == Tally(parked=1)
        assert metabase.queue.unhealthy() == {}
        (waiting_still,) = metabase.queue.pending(arn, after=0, limit=10)
        metabase.queue.settle(Settlement([], [(waiting_still.id, 0, "HTTP 422")], []))
    assert destination.calls == [["refused"]] * 3


@pytest.mark.parametrize(
    ("outcome", "attributes", "failures"),
    [
        (REFUSED, {}, 2),
        (REFUSED, {"ordering": "key"}, 0),
        (Retry("HTTP 503"), {}, 0),
    ],
    ids=["nothing got through since", "others must wait for it", "it tells of the destination"],
)
def test_else_a_topic_that_takes_nothing_is_left_alone(
    worker: Worker,
    metabase: Metabase,
    destination: Destination,
    outcome: Retry,
    attributes: dict[str, str],
    failures: int,
) -> None:
    arn = park(metabase, "videos", "refused", **attributes)
    metabase.queue.report(TopicHealth(arn, failures, 0, "HTTP 422"))
    destination.outcomes = [outcome]
    redeliver_topics(worker, [arn])
    assert metabase.queue.unhealthy()[arn].failures == failures + 1


def test_a_new_message_that_gets_through_makes_a_topic_healthy_though_an_old_one_is_refused(
    worker: Worker, metabase: Metabase, destination: Destination
) -> None:
    arn = park(metabase, "videos", "refused")
    metabase.queue.park([message("new", arn)], due_at_ns=0, attempts=0, reason="behind others that wait")
    metabase.queue.settle(Settlement([], [(metabase.queue.take(arn, 1, 1)[0].id, 1, "HTTP 422")], []))
    metabase.queue.report(TopicHealth(arn, 4, 0, "HTTP 422"))

    def refuse_the_old_one() -> None:
        destination.outcomes = [
            REFUSED if each == "refused" else Delivered() for each in destination.calls[-1]
        ]

    destination.act = refuse_the_old_one
    assert redeliver_topics(worker, [arn]) == Tally(delivered=1, parked=1)
    assert destination.calls == [["new"], ["refused"]]
    assert metabase.queue.unhealthy() == {}
