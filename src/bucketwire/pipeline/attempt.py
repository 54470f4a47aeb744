"""One call of a publisher, for which a batch waits only so long.

    answered in time    the batch writes down what became of the messages
    late                they are parked and the topic is left alone, so that the batch can end; the call goes
                        on, and what has come of it in the end is written down in the queue

So a destination that is slow for a moment holds up nobody, and does not get its messages twice.
"""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, wait

from bucketwire.errors import Unavailable
from bucketwire.event.message import Message
from bucketwire.event.topic import Topic
from bucketwire.metabase.values import TopicHealth
from bucketwire.metrics import count_messages
from bucketwire.pipeline.outcomes import log, settlement, sort_outcomes
from bucketwire.pipeline.pace import slow_health
from bucketwire.pipeline.publishing import Publish
from bucketwire.pipeline.worker import MOST_LATE, Worker
from bucketwire.publish.backoff import RetryPolicy, policy_of
from bucketwire.publish.base import Outcome, Retry

LONGEST_WAIT_SECONDS = 3_600.0
CLAIM_SECONDS = 1.0
"""For so much longer than a call may take, nobody else tries the topic."""


class Attempt:
    """A call under way."""

    def __init__(self, worker: Worker, topic: Topic, publish: Publish, messages: Sequence[Message]) -> None:
        self._worker = worker
        self._queue = worker.metabase.queue
        self._topic = topic
        self._messages = messages
        settings = worker.settings
        longest_seconds = (
            settings.retry_deadline_seconds if len(worker.late) < MOST_LATE else settings.deadline_seconds
        )
        self._began = time.monotonic()
        self._claimed_ns = later_ns(longest_seconds + CLAIM_SECONDS)
        self._call: Future[list[Outcome]] = worker.attempts.submit(publish, messages, longest_seconds)

    def outcomes(self, seconds: float) -> list[Outcome] | None:
        """What became of the messages; None when that is not known in time."""
        return self._call.result() if wait([self._call], seconds).done else None

    def let_go(self, reason: str) -> None:
        """Park the messages, whatever becomes of the call."""
        if self._call.cancel():  # it had not even begun, which is no fault of the topic
            self._queue.park(self._messages, due_at_ns=0, attempts=0, reason=reason)
            return
        self._queue.report(self._claimed(reason), seen=TopicHealth(self._topic.arn))
        # Others may tell of the topic meanwhile. Where order matters nobody else is there, and a later time
        # would put these messages behind those that follow.
        due_at_ns = 0 if self._topic.ordered else self._claimed_ns
        self._queue.park(self._messages, due_at_ns=due_at_ns, attempts=0, reason=reason)
        self._worker.late.add(self._call)
        self._call.add_done_callback(self._settle)

    def _claimed(self, reason: str = "") -> TopicHealth:
        return TopicHealth(self._topic.arn, 1, self._claimed_ns, reason)

    def _settle(self, call: Future[list[Outcome]]) -> None:
        try:
            self._write_down(call.result())
        except Unavailable as error:  # they are parked: when the claim ends they are tried again
            log.warning("late_answers_not_settled", topic=self._topic.arn, reason=error.message)
        finally:
            self._worker.late.discard(call)

    def _write_down(self, outcomes: list[Outcome]) -> None:
        topic, spent_seconds = self._topic, time.monotonic() - self._began
        policy = policy_of(topic, self._worker.retry_policy)
        found = sort_outcomes(self._messages, outcomes, time.time_ns())
        failed = found.failure(ordered=topic.ordered)
        self._worker.receipts.note(found.delivered)
        # When to try again is for the topic's health to say, where the destination is down or order matters.
        by_health = failed is not None or topic.ordered
        tried = self._still_parked(outcomes)
        self._queue.settle(
            settlement(tried, lambda attempts, retry: 0 if by_health else due_ns(policy, attempts, retry))
        )
        count_messages("delivered", len(found.delivered))
        health = (
            slow_health(topic.arn) if failed is None else first_failure(topic, failed, policy, spent_seconds)
        )
        self._queue.report(health, seen=self._claimed())

    def _still_parked(self, outcomes: list[Outcome]) -> Iterator[tuple[int, int, Outcome]]:
        """What is not there any more has expired meanwhile, or was taken up by another."""
        ids = self._queue.find(self._topic.arn, [message.event_id for message in self._messages])
        for message, outcome in zip(self._messages, outcomes, strict=True):
            if (number := ids.get(message.event_id)) is not None:
                yield number, 0, outcome


def first_failure(
    topic: Topic, failed: Retry, policy: RetryPolicy, spent_seconds: float = 0.0
) -> TopicHealth:
    """The health of a topic that has failed once, after so long."""
    return TopicHealth(topic.arn, 1, due_ns(policy, 1, failed, spent_seconds=spent_seconds), failed.reason)


def due_ns(
    policy: RetryPolicy, attempts: int, retry: Retry, luck: float = 0.0, spent_seconds: float = 0.0
) -> int:
    """When to try again after that many failed attempts: as the policy says, or the destination, if later."""
    wait_seconds = max(policy.delay_seconds(attempts, luck, spent_seconds), retry.after_seconds or 0.0)
    return later_ns(min(wait_seconds, LONGEST_WAIT_SECONDS))


def later_ns(seconds: float) -> int:
    """The time in so many seconds."""
    return time.time_ns() + int(seconds * 1e9)
