"""Topics that are not persistent: the gateway delivers to them itself, before it answers.

    arns       goes into the origin of a mutation: "these I will deliver to"
    deliver    what the mutation has said of them, all topics at once, within a deadline

A push that fails is counted and logged, and the operation succeeds all the same. What the gateway has not
promised in a change's origin goes the persistent way: a topic that becomes synchronous, or stops being so,
loses nothing by it.

A topic that hangs must not use up all threads: it has so many pushes under way at once, and others wait for
their turn, without a thread, until their deadline.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock

from bucketwire.errors import BucketwireError
from bucketwire.event.change import ObjectChange
from bucketwire.event.dialect import Dialect
from bucketwire.event.message import Message
from bucketwire.log import get_logger
from bucketwire.metabase.base import Topics
from bucketwire.metainfo.routing import Router
from bucketwire.metrics import count_messages, observe_deliveries
from bucketwire.publish.base import Delivered, Outcome, Rejected
from bucketwire.publish.publishers import Publishers

THREADS = 64
UNDER_WAY = 16
"""Pushes to one topic at once."""
_LOOK_AGAIN_SECONDS = 1.0
_TOPICS_A_LOOK = 1_000

log = get_logger("gateway")


class SynchronousTopics:
    """Knows which topics are not persistent.

    When there is none it looks again once a second, or when it is told to: a new one gets its messages by the
    persistent way until then. When there are some, it looks at each change of any topic.
    """

    def __init__(self, topics: Topics, dialect: Dialect) -> None:
        self._topics = topics
        self._default = dialect.persistent_by_default
        self._version: int | None = None
        self._arns: frozenset[str] = frozenset()
        self._looked_at = 0.0

    def arns(self) -> frozenset[str]:
        """Their ARNs. Blocks."""
        if not self._arns and time.monotonic() - self._looked_at < _LOOK_AGAIN_SECONDS:
            return self._arns
        version = self._topics.version()
        if version != self._version:
            self._arns = self._found()
            self._version = version
        self._looked_at = time.monotonic()
        return self._arns

    def look_again(self) -> None:
        """A topic was changed here: the next write shall know."""
        self._looked_at = 0.0

    def _found(self) -> frozenset[str]:
        found: set[str] = set()
        after = ""
        while page := self._topics.owned_by(None, after=after, limit=_TOPICS_A_LOOK):
            found.update(
                topic.arn
                for topic in page
                if topic.endpoint and not topic.is_set("persistent", default=self._default)
            )
            after = page[-1].arn
        return frozenset(found)


class Pushes:
    """Delivers what mutations have left to the gateway."""

    def __init__(self, router: Router, publishers: Publishers, deadline_seconds: float) -> None:
        self._router = router
        self._publishers = publishers
        self._deadline_seconds = deadline_seconds
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="push")
        self._lock = Lock()
        self._turns: defaultdict[str, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(UNDER_WAY))

    async def deliver(self, changes: Sequence[ObjectChange]) -> None:
        """Deliver, and return when each push has its outcome or the deadline has passed."""
        loop = asyncio.get_running_loop()
        by_topic = await loop.run_in_executor(self._threads, self._messages, changes)
        await asyncio.gather(*(self._push_in_turn(arn, messages) for arn, messages in by_topic.items()))

    def close(self) -> None:
        """Stop; what is under way is given up."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _messages(self, changes: Sequence[ObjectChange]) -> dict[str, list[Message]]:
        by_topic: dict[str, list[Message]] = defaultdict(list)
        try:
            with self._lock:
                self._router.refresh()
                for change in changes:
                    for (arn, refusal), message in self._router.route_pushed(change):
                        if refusal:
                            self._note([message], [Rejected(refusal)])
                        else:
                            by_topic[arn].append(message)
        except BucketwireError as error:
            log.warning("push_failed", reason=str(error), changes=len(changes))
            count_messages("push_failed", len(changes))
            return {}
        return by_topic

    async def _push_in_turn(self, arn: str, messages: Sequence[Message]) -> None:
        ends, turn = time.monotonic() + self._deadline_seconds, self._turns[arn]
        try:
            async with asyncio.timeout(self._deadline_seconds):
                await turn.acquire()
        except TimeoutError:
            self._note(messages, [Rejected("too many pushes to this topic are under way")] * len(messages))
            return
        loop = asyncio.get_running_loop()
        push = loop.run_in_executor(self._threads, self._push, arn, messages, ends)
        push.add_done_callback(lambda _: turn.release())
        await asyncio.wait([push], timeout=max(0.0, ends - time.monotonic()) + 1)

    def _push(self, arn: str, messages: Sequence[Message], ends: float) -> None:
        self._note(messages, self._published(arn, messages, ends))
        self._publishers.shrink()

    def _published(self, arn: str, messages: Sequence[Message], ends: float) -> Sequence[Outcome]:
        topic = self._router.topic(arn)
        if topic is None:
            return [Rejected("the topic does not exist")] * len(messages)
        try:
            return self._publishers.get(topic).publish(messages, max(0.0, ends - time.monotonic()))
        except BucketwireError as error:
            return [Rejected(str(error))] * len(messages)

    def _note(self, messages: Sequence[Message], outcomes: Sequence[Outcome]) -> None:
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
