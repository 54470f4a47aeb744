"""The second query: parked messages that are due go out again.

    `bucketwire_due`: ARNs of topics with due messages -> for each, at once: take, publish, settle, again

Nothing is taken from the queue before its outcome is settled, so a crash repeats and never loses. An
unhealthy topic is probed with one message; when that gets through, the rest follows. A topic that hangs
holds up nobody else, and one that is slow gets its messages from here only, until it is quick again. How
many go out at once (`flow`) is kept for the next drain of a topic that answers. How long an answer is waited
for (`deadline`) grows where it does not come; only a part of the threads wait so long.
"""

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit

from bucketwire.config import PipelineSettings
from bucketwire.errors import Unavailable
from bucketwire.event.topic import Topic
from bucketwire.log import configure_logging, logs_json
from bucketwire.metabase import open_metabase
from bucketwire.metabase.base import Metabase
from bucketwire.metabase.values import Parked, TopicHealth
from bucketwire.pipeline.alarm import raise_alarm
from bucketwire.pipeline.attempt import due_ns
from bucketwire.pipeline.deadline import deadline_of
from bucketwire.pipeline.deliver import Batches, summary
from bucketwire.pipeline.flow import MOST_MESSAGES, Flow
from bucketwire.pipeline.outcomes import Sorted, Tally, log, log_burial, settlement, sort_outcomes
from bucketwire.pipeline.pace import Wait, answers, is_quick_again, is_very_slow, slow_at_ns, slow_health
from bucketwire.pipeline.patience import patiently, pause_after
from bucketwire.pipeline.publishing import Publish, always, publishing
from bucketwire.pipeline.source import ReaderSettings, settings_from_options
from bucketwire.pipeline.stopping import stop_asked
from bucketwire.pipeline.turn import Turn
from bucketwire.pipeline.worker import DRAIN_THREADS, LONG_DRAINS, Worker, open_worker
from bucketwire.publish import may_be_slow
from bucketwire.publish.backoff import is_critical, policy_of
from bucketwire.publish.base import Rejected, Retry

WAIT_SECONDS = 0.5
TICK_SECONDS = 0.05
TIME_SLICE_SECONDS = 2.0
WAIT_FOR_DRAINS_SECONDS = 0.25
TOPICS_A_TASK = 64
SCHEMA = pa.schema([("topic_arn", pa.string())])


class DueSource(DataSource):
    """Registered with the session; its options are those of `reader_options`."""

    @classmethod
    def name(cls) -> str:
        """As in `spark.readStream.format(...)`."""
        return "bucketwire_due"

    def schema(self) -> str:
        """Topics."""
        return "topic_arn string"

    def streamReader(self, schema: Any) -> "DueReader":  # noqa: ARG002, N802  # Spark's names
        """The reader; its connections open where it runs."""
        return DueReader(settings_from_options(self.options))


class TopicsPartition(InputPartition):
    """Topics for one task."""

    def __init__(self, arns: Sequence[str]) -> None:
        super().__init__(list(arns))


class DueReader(DataSourceStreamReader):
    """Offsets count rounds: there is a new one when something is due."""

    def __init__(self, settings: ReaderSettings) -> None:
        self._settings = settings
        self._opened: Metabase | None = None

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        """The queue remembers; a count need not."""
        return {"round": 0}

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: ARG002, N802
        """The next round as soon as something is due, or the same one after a while."""
        try:
            is_due = self._wait_for_due()
        except Unavailable as error:
            pause_after(error)
            return start
        return {"round": start["round"] + 1} if is_due else start

    def _wait_for_due(self) -> bool:
        metabase = self._metabase()
        if not Turn(metabase.cursors, self._settings.pipeline.holder).wait(WAIT_SECONDS):
            return False
        ends = time.monotonic() + WAIT_SECONDS
        while not stop_asked(self._settings.pipeline) and time.monotonic() < ends:
            if metabase.queue.due_topics(time.time_ns()):
                return True
            time.sleep(TICK_SECONDS)
        return False

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """The topics that are due now."""
        if start == end:
            return []
        arns = patiently(lambda: self._metabase().queue.due_topics(time.time_ns()))
        return [TopicsPartition(arns[at : at + TOPICS_A_TASK]) for at in range(0, len(arns), TOPICS_A_TASK)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The topics of a task."""
        yield pa.record_batch([pa.array(partition.value, pa.string())], schema=SCHEMA)

    def stop(self) -> None:
        """Give up the connection."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def _metabase(self) -> Metabase:
        if self._opened is None:
            configure_logging(json=self._settings.json_logs)
            self._opened = open_metabase(self._settings.pipeline.metabase)
        return self._opened


def redelivering(settings: PipelineSettings) -> Callable[[Batches], Batches]:
    """The function for mapInArrow. It carries settings only."""
    json_logs = logs_json()

    def redeliver(batches: Batches) -> Batches:
        arns = [arn for batch in batches for arn in batch.column(0).to_pylist()]
        try:
            tally = redeliver_topics(open_worker(settings, json_logs=json_logs), arns)
        except Unavailable as error:  # the queue remembers what is due
            pause_after(error)
            tally = Tally()
        yield summary(tally)

    return redeliver


def redeliver_topics(worker: Worker, arns: Sequence[str]) -> Tally:
    """Try the due messages of these topics, all topics at once. Those that take long go on without us."""
    worker.router.refresh()
    topics = {arn: worker.router.topic(arn) for arn in arns}  # while nothing is claimed: it may fail
    running: dict[Future[Tally], str] = {}
    for health in worker.claims.take(_next_in_turn(worker, topics)):
        call_seconds = _call_seconds(worker, health, topics[health.topic_arn])
        if call_seconds > worker.settings.retry_deadline_seconds:
            worker.waiting_long.add(health.topic_arn)
        begun = worker.drain_threads.submit(drain_topic, worker, health, call_seconds)
        running[begun] = worker.drains[begun] = health.topic_arn
        begun.add_done_callback(worker.drained)
    # when all threads are taken, wait for one of them rather than ask again at once
    done, late = wait(running or list(worker.drains), WAIT_FOR_DRAINS_SECONDS)
    done, late = done & running.keys(), late & running.keys()
    for each in late:
        each.add_done_callback(partial(_log_trouble, running[each]))
    worker.drain_publishers.shrink()
    return _total({each: running[each] for each in done})


def _next_in_turn(worker: Worker, topics: Mapping[str, Topic | None]) -> list[TopicHealth]:
    """Topics that are not in hand, as many as there are threads for, those that work first.

    A claim holds from when it is made: what would only wait for a thread is left for a later round. So is
    what answers very slowly, when enough others wait long: tried for a shorter time it would get a message
    twice.
    """
    unhealthy = worker.metabase.queue.unhealthy()
    waiting = [unhealthy.get(arn, TopicHealth(arn)) for arn in topics if arn not in worker.drains.values()]
    random.shuffle(waiting)
    waiting.sort(key=lambda health: health.failures)
    very_slow = [each for each in waiting if is_very_slow(each) and _may_be_slow(topics[each.topic_arn])]
    left_out = very_slow[max(0, LONG_DRAINS - len(worker.waiting_long)) :]
    in_turn = [health for health in waiting if health not in left_out]
    return in_turn[: max(0, DRAIN_THREADS - len(worker.drains))]


def _call_seconds(worker: Worker, health: TopicHealth, topic: Topic | None) -> float:
    """The deadline of the calls of a drain that begins: a long one only while few have one."""
    if not _may_be_slow(topic) or len(worker.waiting_long) >= LONG_DRAINS:
        return worker.settings.retry_deadline_seconds
    return deadline_of(health, worker.settings)


def _may_be_slow(topic: Topic | None) -> bool:
    return topic is not None and may_be_slow(topic)


def _total(drains: Mapping[Future[Tally], str]) -> Tally:
    """What has come of drains that are at their end. Raises `Unavailable` if the metabase is away.

    Any other trouble is that of one topic, and the other topics have no part in it.
    """
    tally, away = Tally(), None
    for drain, arn in drains.items():
        match drain.exception():
            case None:
                tally += drain.result()
            case Unavailable() as error:
                away = error
            case _:
                _log_trouble(arn, drain)
    if away is not None:
        raise away
    return tally


def _log_trouble(arn: str, drain: Future[Tally]) -> None:
    """Nobody waits for this drain any more. What it could not settle is due again when its claim ends."""
    if (error := drain.exception()) is not None:
        log.error("drain_failed", topic=arn, reason=f"{type(error).__name__}: {error}")


def drain_topic(worker: Worker, health: TopicHealth, call_seconds: float) -> Tally:
    """Drain a topic that is claimed."""
    try:
        return TopicDrain(worker, health, call_seconds).run()
    finally:
        worker.claims.drop(health.topic_arn)


class TopicDrain:
    """Tries the due messages of one topic, with calls of so many seconds at the most.

    The topic is claimed before it begins, and while it is at work: a round does not wait for a destination
    that hangs, and the next round leaves it alone. One whose claim has run out stops with `Conflict`, and
    says nothing more of the topic: another may be at work on it by then.
    """

    def __init__(self, worker: Worker, health: TopicHealth, call_seconds: float) -> None:
        self._worker = worker
        self._call_seconds = call_seconds
        self._queue = worker.metabase.queue
        self._claims = worker.claims
        self._arn = health.topic_arn
        self._failures = health.failures
        self._topic = worker.router.topic(self._arn)
        default = worker.retry_policy
        self._policy = policy_of(self._topic, default) if self._topic else default
        self._publish = self._publishing()
        self._ordered = self._topic is not None and self._topic.ordered
        """Whether messages stay in their places: one that fails holds up those behind it."""
        self._slow_at_ns = slow_at_ns(health)
        """When an answer last came slowly; 0 is never."""
        self._very_slow = is_very_slow(health)
        """Whether it answers, but needs longer than a first retry waits."""
        self._spent_seconds = 0.0
        """How long the last call took."""
        learnt = worker.flows.pop(self._arn, Flow(1) if self._failures else Flow())
        self._flow = learnt if answers(health) else Flow(1)
        """How many messages go out: one at first, to see whether it gets through, where the last did not."""
        self._tally = Tally()

    def run(self) -> Tally:
        """Go on until nothing is due, nothing gets through, or the time is over."""
        try:
            self._drain()
        finally:
            self._count()
        return self._tally

    def _drain(self) -> None:
        ends = time.monotonic() + TIME_SLICE_SECONDS
        while self._expire():
            self._claims.check(self._arn)
        while parked := self._queue.take(self._arn, time.time_ns(), self._flow.messages):
            self._claims.check(self._arn)
            found, failed = self._try(parked)
            self._tally += found
            if failed is not None:
                self._fail(failed)
                while self._expire():  # no claim is needed for this: nothing is published any more
                    continue
                break
            self._flow = self._flow.after(
                len(parked), len(parked) - found.parked, self._spent_seconds, self._call_seconds
            )
            if time.monotonic() > ends:
                self._report_answers(failures=1)
                break
        else:
            self._report_answers(failures=0)

    def _count(self) -> None:
        tally = self._tally
        tally.count()
        if tally.messages:
            log.info(
                "parked_redelivered", delivered=tally.delivered, parked=tally.parked, buried=tally.buried
            )

    def _try(self, parked: Sequence[Parked]) -> tuple[Tally, Retry | None]:
        """What became of them, and why the destination is taken for down if it is."""
        messages = [each.message for each in parked]
        waiting = Wait()
        outcomes = self._publish(messages, self._call_seconds)
        self._spent_seconds = waiting.seconds()
        if waiting.is_slow(len(messages), self._worker.settings.deadline_seconds):
            self._slow_at_ns = time.time_ns()
        found = sort_outcomes(messages, outcomes, time.time_ns())
        if found.delivered and not found.waiting:
            self._learn_pace()
        tried = zip(parked, outcomes, strict=True)
        self._queue.settle(
            settlement(((each.id, each.attempts, outcome) for each, outcome in tried), self._message_due_ns)
        )
        if found.delivered:
            self._failures = 0  # what fails from here on is a new outage
        failed = found.failure(ordered=self._ordered)
        return found.tally(), None if self._is_refusal(parked, found) else failed

    def _learn_pace(self) -> None:
        """All was answered: so it is known how long that takes, and an outage before it is over."""
        first_seconds = self._worker.settings.retry_deadline_seconds
        if min(self._call_seconds, self._spent_seconds) > first_seconds:
            self._very_slow, self._slow_at_ns = True, time.time_ns()
        elif not self._very_slow:
            self._call_seconds = first_seconds

    def _is_refusal(self, parked: Sequence[Parked], found: Sorted) -> bool:
        """Whether the destination works, and only keeps refusing messages that it has refused before."""
        refused = all(retry.of_message for retry in found.retries) and all(each.attempts for each in parked)
        return refused and self._failures == 0 and not self._ordered

    def _fail(self, failed: Retry) -> None:
        """The destination is down, once more: leave it alone for a while."""
        failures = self._failures + 1
        log.warning("topic_failed", topic=self._arn, failures=failures, reason=failed.reason)
        if is_critical(failures):  # before it is written down: dying in between raises it twice, not never
            self._claims.check(self._arn)
            raise_alarm(
                TopicHealth(self._arn, failures, reason=failed.reason), self._worker.settings.alert_url
            )
        self._claims.give_up(TopicHealth(self._arn, failures, self._due_ns(failures, failed), failed.reason))

    def _expire(self) -> bool:
        """Bury some of what has waited too long or was tried too often; whether there may be more."""
        policy = self._policy
        if not policy.ends:
            return False
        lived_ns = policy.time_to_live_seconds * 1_000_000_000
        expired = self._queue.expire(
            self._arn,
            parked_before_ns=time.time_ns() - lived_ns if lived_ns else 0,
            more_attempts_than=policy.max_retries or None,
            limit=MOST_MESSAGES,
        )
        self._tally += Tally(buried=len(expired))
        for message in expired:
            log_burial(message, "time_to_live or max_retries")
        return len(expired) == MOST_MESSAGES

    def _message_due_ns(self, attempts: int, retry: Retry) -> int:
        return 0 if self._ordered else self._due_ns(attempts, retry)

    def _due_ns(self, attempts: int, retry: Retry) -> int:
        luck = random.random()  # noqa: S311 - it guards nothing
        return due_ns(self._policy, attempts, retry, luck, self._spent_seconds)

    def _report_answers(self, *, failures: int) -> None:
        """It takes messages. One that was slow lately stays here: a batch would wait for it, or in vain."""
        is_slow = not is_quick_again(self._slow_at_ns)
        if is_slow or failures:
            self._worker.flows[self._arn] = self._flow
        self._claims.give_up(
            slow_health(self._arn, self._slow_at_ns, very=self._very_slow)
            if is_slow
            else TopicHealth(self._arn, failures)
        )

    def _publishing(self) -> Publish:
        """How to publish: a deleted topic still gets what was meant for it, an unknown one nothing."""
        if self._topic is None:
            return always(Rejected("the topic does not exist"))
        return publishing(self._worker.drain_publishers, self._topic)
