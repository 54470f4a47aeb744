"""The queue against a model of it in dictionaries, in any order of calls, on every backend.

All runs share a metabase: each has topics of its own, and looks at nothing else.
"""

from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from bucketwire.metabase.base import Metabase
from bucketwire.metabase.values import Letters, Settlement, TopicHealth
from factories import TOPIC_ARN, message

Event = tuple[str, str]
"""A topic's ARN and an event id."""

EXAMPLES = {"sqlite": 120, "postgresql": 25}
LATER_NS = 10**19 // 2
_runs = count()

topics = st.sampled_from([0, 0, 0, 1])
events = st.lists(st.sampled_from("abcdef"), min_size=1, max_size=4, unique=True)
reasons = st.sampled_from(["", "down"])
times = st.integers(0, 5)
dues = times | st.just(LATER_NS)
"""When to try again; hours ahead is as good as now."""
oldest_counts = st.sampled_from([0, 0, 0, 1, 2, 6])
picked = st.lists(st.integers(0, 7), max_size=4, unique=True)


@dataclass
class Waiting:
    """A parked message, as the model knows it."""

    id: int
    parked_at_ns: int
    attempts: int
    due_at_ns: int
    reason: str
    failures_when_parked: int

    def is_due(self, now_ns: int) -> bool:
        return self.due_at_ns <= now_ns or self.due_at_ns == LATER_NS


@dataclass
class Model:
    """What a queue is, said as shortly as possible."""

    parked: dict[Event, Waiting] = field(default_factory=dict)
    letters: dict[Event, str] = field(default_factory=dict)
    health: dict[str, TopicHealth] = field(default_factory=dict)
    counts: dict[tuple[str, str], int] = field(default_factory=dict)

    def failures(self, arn: str) -> int:
        return self.health[arn].failures if arn in self.health else 0

    def why(self, event: Event) -> str:
        """The last failure: the topic's, of a message that was never tried itself."""
        waiting = self.parked[event]
        of_topic = "" if waiting.attempts or event[0] not in self.health else self.health[event[0]].reason
        return of_topic or waiting.reason

    def count(self, what: str, arn: str) -> None:
        self.counts[what, arn] = self.counts.get((what, arn), 0) + 1

    def bury(self, event: Event, reason: str) -> None:
        if event not in self.letters:
            self.letters[event] = reason
            self.count("buried", event[0])

    def of(self, arn: str) -> list[tuple[Event, Waiting]]:
        """What waits for a topic, in the order in which it is due."""
        mine = [(event, each) for event, each in self.parked.items() if event[0] == arn]
        return sorted(mine, key=lambda pair: (pair[1].due_at_ns, pair[1].id))


class QueueMachine(RuleBasedStateMachine):
    """Does the same to both, and compares."""

    def __init__(self, metabase: Metabase) -> None:
        super().__init__()
        self.queue = metabase.queue
        self.model = Model()

    @initialize()
    def take_topics(self) -> None:
        run = next(_runs)
        self.arns = [f"{TOPIC_ARN}-{run}-{number}" for number in range(2)]

    @rule(topic=topics, ids=events, due_at_ns=dues, attempts=st.integers(0, 2), reason=st.sampled_from("xy"))
    def park(self, topic: int, ids: list[str], due_at_ns: int, attempts: int, reason: str) -> None:
        arn = self.arns[topic]
        messages = [message(each, arn) for each in ids]
        self.queue.park(messages, due_at_ns=due_at_ns, attempts=attempts, reason=reason)
        for each in ids:
            self.note_parked((arn, each), attempts, due_at_ns, reason)

    @rule(topic=topics, ids=events)
    def bury(self, topic: int, ids: list[str]) -> None:
        arn = self.arns[topic]
        self.queue.bury([message(each, arn) for each in ids], "refused")
        for each in ids:
            self.model.bury((arn, each), "refused")

    @rule(topic=topics, failures=st.sampled_from([0, 1, 3, 4]), retry_at_ns=times, reason=reasons)
    def report(self, topic: int, failures: int, retry_at_ns: int, reason: str) -> None:
        health = TopicHealth(self.arns[topic], failures, retry_at_ns, reason)
        self.queue.report(health)
        self.model.health.pop(self.arns[topic], None)
        if failures:
            self.model.health[self.arns[topic]] = health

    @rule(seen_at_ns=st.lists(st.none() | times, min_size=2, max_size=2), until_ns=times)
    def claim(self, seen_at_ns: list[int | None], until_ns: int) -> None:
        """Both topics at once, each seen healthy (None), or failing with that time."""
        expected = set()
        for arn, seen_ns in zip(self.arns, seen_at_ns, strict=True):
            health = self.model.health.get(arn)
            if (health and health.retry_at_ns) == seen_ns:
                expected.add(arn)
                now = health or TopicHealth(arn, 1)
                self.model.health[arn] = TopicHealth(arn, now.failures, until_ns, now.reason)
        seen = [
            TopicHealth(arn, 0 if seen_ns is None else 1, seen_ns or 0)
            for arn, seen_ns in zip(self.arns, seen_at_ns, strict=True)
        ]
        assert self.queue.claim(seen, until_ns) == expected

    @rule(after_ns=times)
    def hasten(self, after_ns: int) -> None:
        self.queue.hasten(after_ns)
        for arn, each in self.model.health.items():
            if each.retry_at_ns > after_ns:
                self.model.health[arn] = TopicHealth(arn, each.failures, 0, each.reason)
        for arn in self.arns:
            for _, parked in self.model.of(arn):
                parked.due_at_ns = 0 if parked.due_at_ns > after_ns else parked.due_at_ns

    @rule(topic=topics, now_ns=times, limit=st.integers(1, 8))
    def take(self, topic: int, now_ns: int, limit: int) -> None:
        arn = self.arns[topic]
        due = [event[1] for event, each in self.model.of(arn) if each.is_due(now_ns)]
        assert [each.message.event_id for each in self.queue.take(arn, now_ns, limit)] == due[:limit]

    @rule(
        topic=topics,
        outcomes=st.lists(st.sampled_from(["delivered", "retried", "buried"]), max_size=6),
        due_at_ns=dues,
        twice=st.booleans(),
    )
    def settle(self, topic: int, outcomes: list[str], due_at_ns: int, *, twice: bool) -> None:
        settlement = Settlement([], [], [])
        for outcome, (event, waiting) in zip(outcomes, self.model.of(self.arns[topic]), strict=False):
            self.settle_one(settlement, outcome, event, waiting, due_at_ns)
        self.queue.settle(settlement)
        if twice:
            self.queue.settle(Settlement(settlement.delivered, [], settlement.buried))

    def settle_one(
        self, settlement: Settlement, outcome: str, event: Event, waiting: Waiting, due_at_ns: int
    ) -> None:
        if outcome == "retried":
            settlement.retried.append((waiting.id, due_at_ns, "again"))
            waiting.attempts, waiting.due_at_ns, waiting.reason = waiting.attempts + 1, due_at_ns, "again"
            return
        del self.model.parked[event]
        if outcome == "delivered":
            settlement.delivered.append(waiting.id)
        else:
            settlement.buried.append((waiting.id, "gone"))
            self.model.bury(event, "gone")

    @rule(topic=topics, oldest=oldest_counts, most=st.none() | st.integers(0, 3), limit=st.integers(1, 9))
    def expire(self, topic: int, oldest: int, most: int | None, limit: int) -> None:
        """`oldest` is how many of the topic's messages were parked before the time given."""
        arn = self.arns[topic]
        stamps = sorted(each.parked_at_ns for _, each in self.model.of(arn))
        before_ns = stamps[oldest] if oldest < len(stamps) else LATER_NS
        expected = {}
        for event, each in self.model.of(arn):
            tried = max(each.attempts, self.model.failures(arn) - each.failures_when_parked)
            if each.parked_at_ns < before_ns:
                expected[event] = f"time_to_live is over: {self.model.why(event)}"
            elif most is not None and tried > most:
                expected[event] = f"max_retries reached: {self.model.why(event)}"
        moved = self.queue.expire(arn, parked_before_ns=before_ns, more_attempts_than=most, limit=limit)
        found = {(each.topic_arn, each.event_id) for each in moved}
        assert found <= expected.keys()
        assert len(moved) == len(found) == min(limit, len(expected))
        for event in found:
            del self.model.parked[event]
            self.model.bury(event, expected[event])

    @rule(topic=topics, places=picked)
    def redrive(self, topic: int, places: list[int]) -> None:
        chosen = self.chosen_letters(topic, places)
        assert self.queue.redrive([*chosen, LATER_NS]) == len(chosen)
        for event in chosen.values():
            del self.model.letters[event]
            self.model.count("redriven", event[0])
            self.note_parked(event, 0, 0, "taken from the dead letters")

    @rule(topic=topics, places=picked)
    def purge(self, topic: int, places: list[int]) -> None:
        chosen = self.chosen_letters(topic, places)
        assert self.queue.purge([*chosen, *chosen]) == len(chosen)
        for event in chosen.values():
            del self.model.letters[event]
            self.model.count("purged", event[0])

    def chosen_letters(self, topic: int, places: list[int]) -> dict[int, Event]:
        letters = self.queue.letters(Letters(self.arns[topic]), 100)
        chosen = [letters[place] for place in places if place < len(letters)]
        return {each.id: (each.message.topic_arn, each.message.event_id) for each in chosen}

    def note_parked(self, event: Event, attempts: int, due_at_ns: int, reason: str) -> None:
        """What is parked already stays as it is; ids and stamps are the queue's to give."""
        if event in self.model.parked:
            return
        (found,) = (each for each in self.pending(event[0]) if each.message.event_id == event[1])
        failures = self.model.failures(event[0])
        self.model.parked[event] = Waiting(
            found.id, found.parked_at_ns, attempts, due_at_ns, reason, failures
        )

    def pending(self, arn: str) -> list[Any]:
        return self.queue.pending(arn, after=0, limit=100)

    @invariant()
    def what_waits_is_the_same(self) -> None:
        for arn in self.arns:
            expected = {
                each.id: (event[1], each.attempts, each.parked_at_ns, each.due_at_ns, each.reason)
                for event, each in self.model.of(arn)
            }
            found = self.pending(arn)
            assert [each.id for each in found] == sorted(expected)
            assert {
                each.id: (
                    each.message.event_id,
                    each.attempts,
                    each.parked_at_ns,
                    each.due_at_ns,
                    each.reason,
                )
                for each in found
            } == expected

    @invariant()
    def the_dead_letters_and_their_counts_are_the_same(self) -> None:
        letters = [each for arn in self.arns for each in self.queue.letters(Letters(arn), 100)]
        found = {(each.message.topic_arn, each.message.event_id): each.reason for each in letters}
        assert len(letters) == len(found)
        assert found == self.model.letters
        counts = {key: number for key, number in self.queue.counts().items() if key[1] in self.arns}
        assert counts == self.model.counts

    @invariant()
    def the_statistics_are_the_same(self) -> None:
        lines = {each.topic_arn: each for each in self.queue.stats() if each.topic_arn in self.arns}
        waiting = {arn for arn in self.arns if self.model.of(arn)}
        assert lines.keys() == waiting | self.model.health.keys()
        for arn, line in lines.items():
            mine = [each for _, each in self.model.of(arn)]
            oldest = min((each.parked_at_ns for each in mine), default=0)
            attempts = max((each.attempts for each in mine), default=0)
            assert (line.entries, line.size_bytes) == (len(mine), 2 * len(mine))
            assert (line.oldest_at_ns, line.attempts) == (oldest, attempts)
            assert line.failures == self.model.failures(arn)

    @invariant()
    def the_bytes_that_wait_are_the_same(self) -> None:
        sizes = {arn: 2 * len(self.model.of(arn)) for arn in self.arns if self.model.of(arn)}
        backlogs = self.queue.backlogs()
        assert {arn: backlogs[arn] for arn in self.arns if arn in backlogs} == sizes
        assert [self.queue.has_parked(arn) for arn in self.arns] == [arn in sizes for arn in self.arns]

    @invariant()
    def the_topics_that_are_due_are_the_same(self) -> None:
        for now_ns in (0, 2, 5):
            due = [arn for arn in self.queue.due_topics(now_ns) if arn in self.arns]
            assert due == [arn for arn in self.arns if self.is_due(arn, now_ns)]

    def is_due(self, arn: str, now_ns: int) -> bool:
        health = self.model.health.get(arn)
        may_be_tried = health is None or health.retry_at_ns <= now_ns
        return may_be_tried and any(each.is_due(now_ns) for _, each in self.model.of(arn))

    def teardown(self) -> None:
        """Leave little behind: the next run shares the tables."""
        for arn in getattr(self, "arns", []):
            self.queue.settle(Settlement(delivered=[each.id for each in self.pending(arn)]))
            self.queue.purge([each.id for each in self.queue.letters(Letters(arn), 100)])
            self.queue.report(TopicHealth(arn))


def test_the_queue_does_what_its_model_does(metabase: Metabase, request: pytest.FixtureRequest) -> None:
    examples = EXAMPLES[request.node.callspec.params["backend"]]
    run_state_machine_as_test(
        lambda: QueueMachine(metabase),
        settings=settings(
            max_examples=examples,
            stateful_step_count=40,
            suppress_health_check=list(HealthCheck),
        ),
    )
