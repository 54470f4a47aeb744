"""The main query's one function: changes in, messages out, and what became of each written down.

    changes -> route -> compose -> by topic -> publish, many topics at once, each with a deadline
                                                  |
                     delivered | parked (try later) | buried (never), durable before the slice ends

A batch waits for no topic longer than its deadline and a pace that a working destination keeps: what is over
is parked. A topic that does not take a single message is unhealthy, and one that is slow again and again; as
long as it is, its new messages are parked behind the others and it is left alone. When the metabase fails,
the task fails, and after some more tries the batch: the position stays. What was delivered by then is noted,
and not repeated.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext

from bucketwire.config import PipelineSettings
from bucketwire.errors import Unavailable
from bucketwire.event.message import Message
from bucketwire.event.topic import Topic
from bucketwire.log import logs_json
from bucketwire.metabase.base import Queue
from bucketwire.metabase.values import TopicHealth
from bucketwire.metainfo.routing import Address
from bucketwire.pipeline.attempt import Attempt, due_ns, first_failure
from bucketwire.pipeline.outcomes import Sorted, Tally, log, log_burial, sort_outcomes
from bucketwire.pipeline.pace import PACE_SECONDS, SLOW_CALLS, Wait, slow_health
from bucketwire.pipeline.patience import pause_after
from bucketwire.pipeline.publishing import Publish, publishing
from bucketwire.pipeline.worker import Worker, open_worker
from bucketwire.publish.backoff import RetryPolicy, policy_of
from bucketwire.publish.base import no_answer

MESSAGES_AT_ONCE = 1_000
"""Messages held in memory before they are published."""
MESSAGES_A_CALL = 500

Batches = Iterator[pa.RecordBatch]
SUMMARY = "delivered long, parked long, buried long"


def delivering(settings: PipelineSettings) -> Callable[[Batches], Batches]:
    """The function for mapInArrow. It carries settings, and the time when the query was started."""
    json_logs, started_ns = logs_json(), time.time_ns()

    def deliver(batches: Batches) -> Batches:
        try:
            worker = open_worker(settings, json_logs=json_logs)
            worker.receipts.outdate(started_ns)
            if _is_repeated():
                worker.receipts.read()
            yield summary(SliceDelivery(worker).run(_changes(batches)))
        except Unavailable as error:
            pause_after(error)
            raise

    return deliver


def summary(tally: Tally) -> pa.RecordBatch:
    """The one row that a task answers with."""
    return pa.RecordBatch.from_pylist(
        [{"delivered": tally.delivered, "parked": tally.parked, "buried": tally.buried}]
    )


@dataclass(frozen=True, slots=True)
class _Group:
    """Messages for one topic; `refusal` says why they may not be sent, if they may not."""

    topic: Topic | None
    refusal: str
    messages: list[Message]


class SliceDelivery:
    """Delivers the messages of one slice."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._queue: Queue = worker.metabase.queue
        self._deadline_seconds = worker.settings.deadline_seconds
        self._slow: set[str] = set()
        """Topics that have used up their time in this slice."""

    def run(self, changes: Iterable[bytes]) -> Tally:
        """Deliver, park or bury every message of these changes."""
        self._worker.router.refresh()
        tally = Tally()
        under_way: Future[Tally] | None = None
        for groups in self._groups(changes):  # one portion is composed while the one before is on the wire
            if under_way is not None:
                tally += under_way.result()
            under_way = self._worker.threads.submit(self._dispatch, groups)
        if under_way is not None:
            tally += under_way.result()
        self._worker.publishers.shrink()
        tally.count()
        if tally.messages:
            log.info("slice_delivered", delivered=tally.delivered, parked=tally.parked, buried=tally.buried)
        return tally

    def _groups(self, changes: Iterable[bytes]) -> Iterator[list[_Group]]:
        """The messages by topic, in portions that fit in memory."""
        route, was_delivered = self._worker.router.route, self._worker.receipts.has
        held: defaultdict[Address, list[Message]] = defaultdict(list)
        count = 0
        for encoded in changes:
            for address, message in route(encoded):
                if was_delivered(message):
                    continue
                held[address].append(message)
                count += 1
            if count >= MESSAGES_AT_ONCE:
                yield self._portion(held)
                held.clear()
                count = 0
        if held:
            yield self._portion(held)

    def _portion(self, held: dict[Address, list[Message]]) -> list[_Group]:
        return [
            _Group(self._worker.router.topic(arn), refusal, messages)
            for (arn, refusal), messages in held.items()
        ]

    def _dispatch(self, groups: list[_Group]) -> Tally:
        """Serve the topics, all at once; raises when the outcome of any could not be written down."""
        unhealthy = self._queue.unhealthy()
        if len(groups) == 1:
            return self._serve(groups[0], unhealthy)
        served = [self._worker.threads.submit(self._serve, group, unhealthy) for group in groups]
        return sum((each.result() for each in served), start=Tally())

    def _serve(self, group: _Group, unhealthy: dict[str, TopicHealth]) -> Tally:
        if group.topic is None or group.refusal:
            return self._bury(group.messages, group.refusal)
        if group.topic.arn in unhealthy or group.topic.arn in self._slow or self._must_queue(group.topic):
            return self._park_behind(group.messages)
        return self._publish(group.topic, group.messages)

    def _must_queue(self, topic: Topic) -> bool:
        """Whether others wait that must go out first."""
        return topic.ordered and self._queue.has_parked(topic.arn)

    def _publish(self, topic: Topic, messages: list[Message]) -> Tally:
        """Publish in calls of bounded size, as long as the topic keeps up; park the rest."""
        publish = publishing(self._worker.publishers, topic)
        started = time.monotonic()
        tally = Tally()
        for first in range(0, len(messages), MESSAGES_A_CALL):
            found, keeps_up = self._try(topic, publish, messages[first : first + MESSAGES_A_CALL])
            tally += found
            if not keeps_up or self._is_slow(time.monotonic() - started, tally.delivered):
                self._slow.add(topic.arn)
                return tally + self._park_behind(messages[first + MESSAGES_A_CALL :])
        return tally

    def _try(self, topic: Topic, publish: Publish, call: list[Message]) -> tuple[Tally, bool]:
        """What became of the messages, and whether more may follow them at once."""
        waiting = Wait()
        attempt = Attempt(self._worker, topic, publish, call)
        outcomes = attempt.outcomes(self._deadline_seconds + len(call) * PACE_SECONDS)
        if outcomes is None:
            attempt.let_go(no_answer(self._deadline_seconds).reason)
            return Tally(parked=len(call)), False
        slow = waiting.is_slow(len(call), self._deadline_seconds)
        found = sort_outcomes(call, outcomes, time.time_ns())
        failed = found.failure(ordered=topic.ordered)
        policy = policy_of(topic, self._worker.retry_policy)
        self._worker.receipts.note(found.delivered)  # also if what follows fails and the slice is repeated
        self._write_down(topic, found, policy, failed=failed is not None)
        if failed is not None:
            log.warning("topic_failed", topic=topic.arn, failures=1, reason=failed.reason)
            self._queue.report(first_failure(topic, failed, policy), seen=TopicHealth(topic.arn))
        return found.tally(), failed is None and not self._falls_behind(topic, slow=slow)

    def _falls_behind(self, topic: Topic, *, slow: bool) -> bool:
        """Whether it was slow so often that it is left to the retries: each batch would wait for it."""
        before = self._worker.slow_calls.pop(topic.arn, 0)
        if not slow:
            return False
        if before + 1 < SLOW_CALLS:
            self._worker.slow_calls[topic.arn] = before + 1
            return False
        log.warning("topic_slow", topic=topic.arn)
        self._queue.report(slow_health(topic.arn, time.time_ns()), seen=TopicHealth(topic.arn))
        return True

    def _is_slow(self, seconds: float, delivered: int) -> bool:
        return seconds > self._deadline_seconds + delivered * PACE_SECONDS

    def _write_down(self, topic: Topic, found: Sorted, policy: RetryPolicy, *, failed: bool) -> None:
        """Park and bury. `failed`: when to try again is for the topic's health to say, not for each."""
        for retry, messages in found.together(ordered=topic.ordered):
            due_at_ns = 0 if failed else due_ns(policy, 1, retry)
            self._queue.park(messages, due_at_ns=due_at_ns, attempts=1, reason=retry.reason)
        for reason, messages in found.rejected.items():
            self._queue.bury(messages, reason)

    def _park_behind(self, messages: Sequence[Message], reason: str = "behind others that wait") -> Tally:
        """Due at once: when the topic may be tried again is for its health to say."""
        if not messages:
            return Tally()
        if messages[0].topic_arn in self._worker.overflowing():
            return self._bury(messages, "the queue of the topic is full")
        self._queue.park(messages, due_at_ns=0, attempts=0, reason=reason)
        return Tally(parked=len(messages))

    def _bury(self, messages: Sequence[Message], reason: str) -> Tally:
        self._queue.bury(messages, reason)
        for message in messages:
            log_burial(message, reason)
        return Tally(buried=len(messages))


def _is_repeated() -> bool:
    """Whether this task was tried before, in another worker maybe."""
    context = TaskContext.get()
    return context is not None and context.attemptNumber() > 0


def _changes(batches: Batches) -> Iterator[bytes]:
    for batch in batches:
        for lines in batch.column(0).to_pylist():
            yield from lines.split(b"\n")
