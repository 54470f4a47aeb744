"""Topics that are not persistent: the gateway delivers to them itself, before it answers.

    arns       goes into the origin of a mutation: "these I will deliver to"
    deliver    what the mutation has said of them, all topics at once, within a deadline

A push that fails is counted and logged, and the operation succeeds all the same. What the gateway has not
promised in a change's origin goes the persistent way: a topic that becomes synchronous, or stops being so,
loses nothing by it.

Topics that hang must not stall the others: `push_turns` says who may push to them. Routing has a thread of
its own, the only one that uses the router. The deadline is for both together.
"""

import asyncio
import math
import time
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Lock

from bucketwire.errors import BucketwireError
from bucketwire.event.change import ObjectChange
from bucketwire.event.dialect import Dialect
from bucketwire.event.message import Message
from bucketwire.event.topic import Topic
from bucketwire.gateway.push_turns import Shares
from bucketwire.log import get_logger, unforeseen
from bucketwire.metabase.base import Topics
from bucketwire.metainfo.all_topics import ChosenTopics
from bucketwire.metainfo.routing import Router
from bucketwire.metrics import count_messages, observe_deliveries
from bucketwire.publish.base import Delivered, Outcome, Rejected, Retry
from bucketwire.publish.publishers import Publishers

THREADS = 256
TOO_LATE = Rejected("its turn came after the deadline")
_LOOK_AGAIN_SECONDS = 1.0

log = get_logger("gateway")


class SynchronousTopics:
    """Knows which topics are not persistent. Threads may ask at once.

    When there is none it looks again once a second, or when it is told to: a new one gets its messages by the
    persistent way until then. When there are some, it looks at each change of any topic: one thread reads
    what has changed, and the others wait for it.
    """

    def __init__(self, topics: Topics, dialect: Dialect) -> None:
        self._topics = topics
        self._default = dialect.persistent_by_default
        self._chosen = ChosenTopics(topics, self._is_synchronous)
        self._reads = Lock()
        self._version = -1
        self._arns: frozenset[str] = frozenset()
        self._looked_at = 0.0

    def arns(self) -> frozenset[str]:
        """Their ARNs. Blocks."""
        if not self._arns and time.monotonic() - self._looked_at < _LOOK_AGAIN_SECONDS:
            return self._arns
        version = self._topics.version()
        if version > self._version:
            self._read(version)
        self._looked_at = time.monotonic()
        return self._arns

    def look_again(self) -> None:
        """A topic was changed here: the next write shall know."""
        self._looked_at = 0.0

    def _read(self, version: int) -> None:
        with self._reads:
            if version > self._version:  # nobody has read it meanwhile
                self._arns = frozenset(self._chosen.look())
                self._version = version

    def _is_synchronous(self, topic: Topic) -> bool:
        return (
            topic.deleted_at_ns is None
            and bool(topic.endpoint)
            and not topic.is_set("persistent", default=self._default)
        )


@dataclass(frozen=True, slots=True)
class _Routed:
    """What is to be pushed, by the topic's ARN, and what may not be."""

    topics: dict[str, Topic] = field(default_factory=dict)
    messages: defaultdict[str, list[Message]] = field(default_factory=lambda: defaultdict(list))
    refused: list[tuple[Message, Rejected]] = field(default_factory=list)


class Pushes:
    """Delivers what mutations have left to the gateway."""

    def __init__(self, router: Router, publishers: Publishers, deadline_seconds: float) -> None:
        self._router = router
        self._publishers = publishers
        self._deadline_seconds = deadline_seconds
        self._routing = ThreadPoolExecutor(1, thread_name_prefix="push-routing")
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="push")
        self._shares = Shares(THREADS)

    async def deliver(self, changes: Sequence[ObjectChange]) -> None:
        """Deliver, and return when each push has its outcome or the deadline has passed."""
        ends = time.monotonic() + self._deadline_seconds
        routed = await self._routed(changes)
        for message, refusal in routed.refused:
            _note([message], [refusal])
        await asyncio.gather(
            *(self._push_in_turn(topic, routed.messages[arn], ends) for arn, topic in routed.topics.items())
        )

    def close(self) -> None:
        """Stop; what is under way is given up."""
        self._routing.shutdown(wait=False, cancel_futures=True)
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _routed(self, changes: Sequence[ObjectChange]) -> _Routed:
        try:
            async with asyncio.timeout(self._deadline_seconds):
                return await asyncio.get_running_loop().run_in_executor(self._routing, self._route, changes)
        except TimeoutError:
            log.warning("push_failed", reason="no rules and topics within the deadline", changes=len(changes))
        except BucketwireError as error:
            log.warning("push_failed", reason=str(error), changes=len(changes))
        except Exception as error:  # noqa: BLE001 - logged, without its text
            _log_unforeseen(error, changes=len(changes))
        count_messages("push_failed", len(changes))
        return _Routed()

    def _route(self, changes: Sequence[ObjectChange]) -> _Routed:
        routed = _Routed()
        self._router.refresh()
        for change in changes:
            for (arn, refusal), message in self._router.route_pushed(change):
                topic = self._router.topic(arn)
                if refusal or topic is None:
                    routed.refused.append((message, Rejected(refusal)))
                else:
                    routed.topics[arn] = topic
                    routed.messages[arn].append(message)
        return routed

    async def _push_in_turn(self, topic: Topic, messages: Sequence[Message], ends: float) -> None:
        turns = self._shares.turns(topic)
        if refusal := await turns.take(ends - time.monotonic()):
            _note(messages, [Rejected(refusal)] * len(messages))
            return
        loop = asyncio.get_running_loop()
        push = loop.run_in_executor(self._threads, self._push, topic, messages, ends)
        push.add_done_callback(lambda ended: turns.give_back(failed=not ended.cancelled() and ended.result()))
        await asyncio.wait([push], timeout=max(0.0, ends - time.monotonic()) + 1)

    def _push(self, topic: Topic, messages: Sequence[Message], ends: float) -> bool:
        """Publish and note the outcomes; whether the topic has failed."""
        try:
            self._publishers.shrink()
            outcomes = self._published(topic, messages, ends)
            _note(messages, outcomes)
        except Exception as error:  # noqa: BLE001 - logged, without its text
            _log_unforeseen(error, topic=topic.arn, messages=len(messages))
            count_messages("push_failed", len(messages))
            return True
        return any(isinstance(outcome, Retry) for outcome in outcomes)

    def _published(self, topic: Topic, messages: Sequence[Message], ends: float) -> Sequence[Outcome]:
        # whole tenths of a second: the publishers' reasons name the deadline, and should be few
        seconds = math.ceil((ends - time.monotonic()) * 10) / 10
        if seconds <= 0:
            return [TOO_LATE] * len(messages)
        try:
            return self._publishers.get(topic).publish(messages, seconds)
        except BucketwireError as error:
            return [Rejected(str(error))] * len(messages)


def _log_unforeseen(error: Exception, **fields: str | int) -> None:
    log.error("push_failed", **unforeseen(error), **fields)


def _note(messages: Sequence[Message], outcomes: Sequence[Outcome]) -> None:
    now_ns = time.time_ns()
    delivered = []
    for message, outcome in zip(messages, outcomes, strict=True):
        if isinstance(outcome, Delivered):
            delivered.append(message.committed_at_ns)
        else:
            log.warning(
                "push_failed", topic=message.topic_arn, event_id=message.event_id, reason=outcome.reason
            )
    observe_deliveries(delivered, now_ns)
    count_messages("pushed", len(delivered))
    count_messages("push_failed", len(messages) - len(delivered))
