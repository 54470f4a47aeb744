"""Delivery and redelivery to one topic, in any order of outages, recoveries, crashes and time that passes.

The destination is scripted and the clock stands still unless it is moved; everything else is real.
"""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from math import inf
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from bucketwire.config import PipelineSettings
from bucketwire.event.message import Message
from bucketwire.event.name import Operation
from bucketwire.metabase import open_metabase
from bucketwire.metabase.base import Metabase
from bucketwire.metabase.values import DeadLetter, Letters, Parked, Slice, TopicHealth
from bucketwire.pipeline import attempt, claims, deliver, pace, redeliver
from bucketwire.pipeline.claims import Claims
from bucketwire.pipeline.deliver import SliceDelivery
from bucketwire.pipeline.redeliver import TopicDrain
from bucketwire.pipeline.worker import Worker, make_worker
from bucketwire.publish.base import Delivered, Outcome, Rejected, Retry
from bucketwire.publish.connections import Connections
from bucketwire.publish.publishers import Publishers
from clock import Clock
from factories import new_object, origin, topic
from factories import rule as notification_rule

LIMITS: list[dict[str, str]] = [
    {},
    {"time_to_live": "30"},
    {"max_retries": "3"},
    {"retry_sleep_duration": "3"},
]
MODES = ["up", "down", "late", "slow", "half", "relapse", "refuse"]
SECONDS_OF_A_CALL = {"late": 3.0, "slow": 0.2}
CRITICAL_FAILURES = 5
FAILED_CALLS_BEFORE_ALARM = CRITICAL_FAILURES - 1
"""One failure may be a slow answer."""
MANY = 1_000
CALL_SECONDS = 5.0

_runs = count()


@dataclass
class Scripted:
    """A destination that does as it is told."""

    clock: Clock
    claims: Claims
    mode: str = "up"
    calls: list[list[str]] = field(default_factory=list)
    delivered: set[str] = field(default_factory=set)
    failed_in_a_row: int = 0

    def publish(self, messages: Sequence[Message], _deadline_seconds: float) -> list[Outcome]:
        self.calls.append([each.event_id for each in messages])
        taken = self._takes(len(messages))
        self.delivered.update(each.event_id for each in messages[:taken])
        self.failed_in_a_row = 0 if taken else self.failed_in_a_row + 1
        refused: Outcome = Rejected("HTTP 410") if self.mode == "refuse" else Retry("HTTP 503")
        if self.mode == "relapse":
            self.mode = "down"
        for _ in range(2):
            self.clock.now += SECONDS_OF_A_CALL.get(self.mode, 0.0) / 2
            self.claims.keep()
        return [Delivered()] * taken + [refused] * (len(messages) - taken)

    def _takes(self, messages: int) -> int:
        return {"down": 0, "refuse": 0, "half": (messages + 1) // 2}.get(self.mode, messages)

    def close(self) -> None:
        """There is no connection."""


@dataclass
class Rig:
    """What all runs share."""

    metabase: Metabase
    worker: Worker
    clock: Clock
    destinations: dict[str, Scripted] = field(default_factory=dict)
    alarms: list[TopicHealth] = field(default_factory=list)


class BreakerMachine(RuleBasedStateMachine):
    """One topic of its own, and the pipeline's two ways to serve it."""

    def __init__(self, rig: Rig) -> None:
        super().__init__()
        self.rig, self.queue, self.clock = rig, rig.metabase.queue, rig.clock
        self.written: set[str] = set()
        self.refused_once = False
        self.failures = self.alarms_of_outage = self.alarms_seen = self.slow_calls = 0
        self.slow_at = -inf

    @initialize(limits=st.sampled_from(LIMITS))
    def subscribe(self, limits: dict[str, str]) -> None:
        self.limits, self.bucket = limits, f"run-{next(_runs)}"
        made = topic(name=self.bucket, **limits)
        self.arn, metabase = made.arn, self.rig.metabase
        self.destination = self.rig.destinations[made.arn] = Scripted(self.clock, self.rig.worker.claims)
        metabase.topics.put(made)
        metabase.buckets.create(self.bucket, "owner-1", "us-east-1")
        metabase.rules.edit(self.bucket, lambda _: [notification_rule(topic_arn=made.arn)])
        self.offset = metabase.changes.head(metabase.changes.start(), 10**9)
        self.alarms_seen = len(self.rig.alarms)

    @rule(objects=st.integers(1, 6), replayed=st.booleans())
    def write(self, objects: int, *, replayed: bool) -> None:
        """A slice; a replayed one was delivered before, by a process that died before it said so."""
        for number in range(objects):
            self.rig.metabase.objects.put(self.bucket, new_object(str(number)), Operation.PUT, origin())
        end = self.rig.metabase.changes.head(self.offset, MANY)
        changes = list(self.rig.metabase.changes.read(Slice(self.offset, end)))
        self.offset = end
        self.rig.worker.router.refresh()
        for encoded in changes:
            routed = self.rig.worker.router.route(encoded)
            self.written.update(message.event_id for _, message in routed)
        for _ in range(1 + replayed):
            self.deliver(changes)

    def deliver(self, changes: list[bytes]) -> None:
        was_unhealthy, calls = self.arn in self.queue.unhealthy(), len(self.destination.calls)
        mode = self.destination.mode
        tally = SliceDelivery(self.rig.worker).run(changes)
        assert tally.messages == len(changes)
        if was_unhealthy:
            assert tally.parked == len(changes)
            assert len(self.destination.calls) == calls
        elif mode != "down":
            self.check_pace(mode)

    def check_pace(self, mode: str) -> None:
        """Batches wait for a slow topic three times in a row, and no more."""
        is_slow = mode in SECONDS_OF_A_CALL
        self.slow_calls = self.slow_calls + 1 if is_slow else 0
        assert (self.arn in self.queue.unhealthy()) == (self.slow_calls == pace.SLOW_CALLS)
        if self.slow_calls == pace.SLOW_CALLS:
            self.slow_calls, self.slow_at = 0, self.clock.now

    @rule(mode=st.sampled_from(MODES))
    def turn(self, mode: str) -> None:
        self.destination.mode = mode
        self.refused_once |= mode == "refuse"

    @rule(seconds=st.sampled_from([0.5, 1.2, 2.4, 4.8, 9.6, 40.0]))
    def wait(self, seconds: float) -> None:
        self.clock.now += seconds

    @rule(rounds=st.integers(1, 6))
    def suffer(self, rounds: int) -> None:
        """An outage of several rounds, each as soon as the topic may be tried again."""
        self.destination.mode = "down"
        for _ in range(rounds):
            self.clock.now += 10
            self.redeliver()

    @rule()
    def redeliver(self) -> None:
        if self.is_due():
            began_ns, due = self.clock.time_ns(), self.queue.take(self.arn, self.clock.time_ns(), MANY)
            health, calls = self.queue.unhealthy().get(self.arn), len(self.destination.calls)
            mode, drain = self.destination.mode, self.claimed_drain(health)
            drain.run()
            in_doubt = health is not None and not pace.answers(health)
            self.check_calls(self.destination.calls[calls:], due, mode, probing=in_doubt)
            self.check_limits(began_ns)
            self.check_return(mode, called=len(self.destination.calls) > calls)
            self.note_outage()

    @rule()
    def die_in_a_drain(self) -> None:
        """The claim keeps others off, and ends by itself."""
        if self.is_due():
            self.claimed_drain(self.queue.unhealthy().get(self.arn))
            self.rig.worker.claims.drop(self.arn)
            assert not self.is_due()
            self.clock.now += claims.SECONDS + 0.1
            assert self.is_due()

    def claimed_drain(self, health: TopicHealth | None) -> TopicDrain:
        self.rig.worker.router.refresh()
        known = health or TopicHealth(self.arn)
        assert self.rig.worker.claims.take([known]) == [known]
        return TopicDrain(self.rig.worker, known, CALL_SECONDS)

    def check_calls(self, calls: list[list[str]], due: list[Parked], mode: str, *, probing: bool) -> None:
        """A topic in doubt gets one message, and no second one unless that gets through; in order."""
        if probing and calls:
            assert len(calls[0]) == 1
        if mode == "down":
            assert len(calls) <= 1
        if calls and "time_to_live" not in self.limits and "max_retries" not in self.limits:
            first = [each.message.event_id for each in due][: len(calls[0])]
            assert calls[0] == first
        assert [(each.due_at_ns, each.id) for each in due] == sorted(
            (each.due_at_ns, each.id) for each in due
        )

    def check_return(self, mode: str, *, called: bool) -> None:
        """Batches do not wait again for a topic that was slow a moment ago, unless it failed since."""
        if called and mode in SECONDS_OF_A_CALL:
            self.slow_at = self.clock.now
        if called and self.destination.mode == "down":
            self.slow_at = -inf
        if self.clock.now - self.slow_at < pace.QUICK_SECONDS:
            assert self.arn in self.queue.unhealthy()

    def check_limits(self, began_ns: int) -> None:
        """What is over a limit is a dead letter, and says which."""
        oldest_ns = began_ns - int(self.limits.get("time_to_live", MANY * MANY)) * 1_000_000_000
        assert all(each.parked_at_ns >= oldest_ns for each in self.pending())
        assert all(each.attempts <= int(self.limits.get("max_retries", MANY)) for each in self.pending())
        words = {"time_to_live": "time_to_live is over", "max_retries": "max_retries reached"}
        allowed = tuple(words[name] for name in self.limits if name in words)
        for letter in self.letters():
            assert letter.reason.startswith((*allowed, *(["HTTP 410"] if self.refused_once else [])))

    def note_outage(self) -> None:
        """One alarm an outage: when its failures have climbed the ladder, and not before or again."""
        health = self.queue.unhealthy().get(self.arn, TopicHealth(self.arn))
        if health.failures < self.failures:
            self.alarms_of_outage = 0
        raised = self.rig.alarms[self.alarms_seen :]
        self.alarms_seen, self.failures = len(self.rig.alarms), health.failures
        self.alarms_of_outage += len(raised)
        assert self.alarms_of_outage == int(health.failures >= CRITICAL_FAILURES)
        if raised:
            assert self.destination.failed_in_a_row >= FAILED_CALLS_BEFORE_ALARM

    @invariant()
    def nothing_is_lost(self) -> None:
        waiting = {each.message.event_id for each in self.pending()}
        dead = {each.message.event_id for each in self.letters()}
        assert self.written <= self.destination.delivered | waiting | dead

    def is_due(self) -> bool:
        return self.arn in self.queue.due_topics(self.clock.time_ns())

    def pending(self) -> list[Parked]:
        return self.queue.pending(self.arn, after=0, limit=MANY)

    def letters(self) -> list[DeadLetter]:
        return self.queue.letters(Letters(self.arn), MANY)

    def teardown(self) -> None:
        """When the destination is well again, everything ends up there or among the dead letters."""
        if not hasattr(self, "arn"):
            return
        self.destination.mode = "up"
        self.clock.now += 3_600
        for _ in range(10):
            self.redeliver()
        assert self.pending() == []
        health = self.queue.unhealthy().get(self.arn, TopicHealth(self.arn))
        assert health.retry_at_ns <= self.clock.time_ns()
        self.nothing_is_lost()


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    clock = Clock()
    for module in (attempt, claims, deliver, pace, redeliver):
        monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr("bucketwire.metabase.sqlite.queue.time", clock)
    url = f"sqlite:///{tmp_path}/metabase.db"
    metabase = open_metabase(url)
    worker = make_worker(PipelineSettings(url, "aws", tmp_path), metabase)
    made = Rig(metabase, worker, clock)
    open_scripted: Callable[..., Any] = lambda found, _: made.destinations[found.arn]  # noqa: E731
    publishers = Publishers(open_scripted, Connections())
    made.worker = dataclasses.replace(worker, publishers=publishers, drain_publishers=publishers)
    monkeypatch.setattr(redeliver, "raise_alarm", lambda health, _url: made.alarms.append(health))
    yield made
    worker.threads.shutdown()
    worker.drain_threads.shutdown()
    metabase.close()


def test_a_topic_gets_each_message_whatever_happens_to_it(rig: Rig) -> None:
    run_state_machine_as_test(
        lambda: BreakerMachine(rig),
        settings=settings(
            max_examples=100,
            stateful_step_count=25,
            suppress_health_check=list(HealthCheck),
        ),
    )
