"""Messages to a topic of Google Pub/Sub: requests of many messages, all in flight at once over one channel.

    messages --> runs of a request's size --> lanes --> channel --> Pub/Sub
                                                ^          |
                                                +-- answer-+    until all are answered or the time is over

A lane sends one run at a time. Without `ordering` each run has a lane of its own; with `ordering=key` each
object key has one, so messages about a key stay in order, and what follows one that failed is not sent. A run
that is refused as invalid is divided until the guilty message stands alone: only that one is `Rejected`.
What an owner can mend (topic missing, no permission) is `Retry`, and so is all else.

Which Pub/Sub, and as whom, is said by `PubsubSettings`. The channel belongs to the process, however many its
topics, and is replaced once it fails. A publisher serves one thread at a time.
"""

import os
import time
from collections import deque
from collections.abc import Iterator, Sequence
from queue import Empty, SimpleQueue
from typing import Any

from google.api_core.gapic_v1.routing_header import to_grpc_metadata
from google.pubsub_v1.types import PublishRequest
from grpc import StatusCode

from bucketwire.errors import ConfigError, Unavailable
from bucketwire.event.arn import valid_pubsub_names
from bucketwire.event.message import Message
from bucketwire.event.topic import Topic
from bucketwire.publish.base import Delivered, Outcome, Rejected, Retry, no_answer
from bucketwire.publish.connections import Connections
from bucketwire.publish.headers import CONTENT_TYPE, EVENT_ID, KEY
from bucketwire.publish.pubsub_client import PubsubClient, PubsubSettings, settings_from_environment
from bucketwire.publish.pubsub_failure import FOR_ALL, retry_of_failure

CE_PREFIX = "ce-"
"""What stands before the attributes of a CloudEvent."""
MESSAGES_A_REQUEST = 250
"""A quarter of what Pub/Sub takes: more at once is hardly faster, and a refused run is soon divided."""
BYTES_A_REQUEST = 1_000_000
"""A larger message travels alone."""
MESSAGE_LIMIT_BYTES = 10_000_000
"""The largest request that Pub/Sub takes, and so the largest message with its attributes."""
IN_FLIGHT = 32
"""Requests open at once for one call."""
IN_FLIGHT_BYTES = 20_000_000
"""No further request is sent while this much is unanswered."""

_ATTRIBUTES, _NAME_BYTES, _VALUE_BYTES = 100, 256, 1024  # the most that Pub/Sub takes
_FRAME_BYTES = 32
"""More than the fields around a message, or around an attribute with a name of ours, take on the wire."""
_DELIVERED = Delivered()
_INVALID = Rejected("Pub/Sub refuses the message as invalid")
_BEHIND = Retry("an earlier message about the same key was not taken")

_Request = PublishRequest.pb()
_Lane = deque[list[int]]
"""Runs of places in the batch, to be sent one after the other."""


class PubsubPublisher:
    """Publishes to the topic of the `push-endpoint`, which has the form `pubsub://PROJECT/TOPIC`.

    Raises `ConfigError` when Google would allow no such names.
    """

    def __init__(
        self, topic: Topic, connections: Connections, settings: PubsubSettings | None = None
    ) -> None:
        self._topic = _path_from_topic(topic)
        self._ordered = topic.ordered
        self._routing = (to_grpc_metadata((("topic", self._topic),)),)  # type: ignore[no-untyped-call]
        self._connections = connections
        self._settings = settings or settings_from_environment(os.environ)

    def publish(self, messages: Sequence[Message], deadline_seconds: float) -> list[Outcome]:
        """Publish the messages; see `Publisher.publish`."""
        give_up_at = time.monotonic() + deadline_seconds
        batch = _Batch(messages, ordered=self._ordered)
        key = ("pubsub", self._settings)
        with self._connections.shared(key, lambda: PubsubClient(self._settings)) as client:
            try:
                self._exchange(client, batch, give_up_at)
            except TimeoutError:
                pass  # the credentials are still being looked for: nothing was sent
            except Unavailable as problem:
                batch.dead = Retry(problem.message)
        unanswered = batch.dead or no_answer(deadline_seconds)
        return [outcome or unanswered for outcome in batch.outcomes]

    def close(self) -> None:
        """Nothing to do: the channel belongs to the process, and is closed when no topic uses it."""

    def _exchange(self, client: PubsubClient, batch: "_Batch", give_up_at: float) -> None:
        """Send and collect until all is answered or the time is over; give up a channel that fails."""
        if not batch.waiting or give_up_at <= time.monotonic():
            return
        channel = client.channel(give_up_at - time.monotonic())
        done: SimpleQueue[Any] = SimpleQueue()
        try:
            while (remaining := give_up_at - time.monotonic()) > 0:
                for lane in batch.take():
                    request = self._request(batch.messages[place] for place in lane[0])
                    answer = channel.publish.future(request, timeout=remaining, metadata=self._routing)
                    batch.in_flight[answer] = lane
                    answer.add_done_callback(done.put)
                if not batch.in_flight:
                    break
                batch.answered(done.get(timeout=remaining))
        except Empty:
            pass  # the time is over
        finally:
            for answer in batch.in_flight:
                answer.cancel()
        if batch.lost:
            client.give_up(channel)

    def _request(self, messages: Iterator[Message]) -> Any:
        request = _Request(topic=self._topic)
        for message in messages:
            ordering_key = message.key if self._ordered else ""
            request.messages.add(
                data=message.body, attributes=_attributes(message), ordering_key=ordering_key
            )
        return request


class _Batch:
    """The messages of one call: what waits, what is in flight, and the outcomes so far."""

    def __init__(self, messages: Sequence[Message], *, ordered: bool) -> None:
        self.messages = messages
        self.outcomes: list[Outcome | None] = [None] * len(messages)
        self.in_flight: dict[Any, _Lane] = {}
        self.dead: Retry | None = None
        """Why nothing more is sent, once that is so."""
        self._ordered = ordered
        self._sizes: list[int] = []
        self._bytes_in_flight = 0
        self._unavailable = False
        self._answers = 0
        self.waiting = deque(self._lanes())

    @property
    def lost(self) -> bool:
        """Whether the channel is of no use: it says so, or there was no answer of any kind."""
        return self._unavailable or (bool(self.in_flight) and not self._answers)

    def take(self) -> Iterator[_Lane]:
        """Lanes whose first run may be sent now."""
        while self.waiting and self.dead is None and len(self.in_flight) < IN_FLIGHT:
            if self._bytes_in_flight >= IN_FLIGHT_BYTES:
                return
            lane = self.waiting.popleft()
            self._bytes_in_flight += self._size(lane[0])
            yield lane

    def answered(self, answer: Any) -> None:
        """Note what became of a run, and let its lane go on."""
        lane = self.in_flight.pop(answer)
        run = lane.popleft()
        self._bytes_in_flight -= self._size(run)
        match answer.code():
            case StatusCode.OK:
                self._answers += 1
                self._acknowledge(run, len(answer.result().message_ids))
            case StatusCode.INVALID_ARGUMENT:
                self._answers += 1
                self._divide(run, lane)
            case StatusCode.DEADLINE_EXCEEDED:
                lane.clear()
            case _:
                self._fail(run, lane, answer)
        if lane:
            self.waiting.append(lane)

    def _acknowledge(self, run: list[int], count: int) -> None:
        outcome = _DELIVERED if count == len(run) else Retry("Pub/Sub did not acknowledge every message")
        for place in run:
            self.outcomes[place] = outcome

    def _divide(self, run: list[int], lane: _Lane) -> None:
        """Somewhere in the run is a message that is invalid."""
        if len(run) == 1:
            self.outcomes[run[0]] = _INVALID
            return
        halves = run[: len(run) // 2], run[len(run) // 2 :]
        if self._ordered:
            lane.extendleft(reversed(halves))
        else:
            self.waiting.extend(deque([half]) for half in halves)

    def _fail(self, run: list[int], lane: _Lane, answer: Any) -> None:
        retry = retry_of_failure(answer)
        for place in run:
            self.outcomes[place] = retry
        for later in lane:
            for place in later:
                self.outcomes[place] = _BEHIND
        lane.clear()
        self._unavailable |= answer.code() is StatusCode.UNAVAILABLE
        if answer.code() in FOR_ALL:
            self.dead = retry

    def _size(self, run: list[int]) -> int:
        return sum(self._sizes[place] for place in run)

    def _lanes(self) -> Iterator[_Lane]:
        """All that can be sent, in runs; what Pub/Sub could never take has its outcome already."""
        by_key: dict[str, list[int]] = {}
        for place, message in enumerate(self.messages):
            size, unfit = _measure(message)
            self._sizes.append(size)
            if unfit:
                self.outcomes[place] = Rejected(unfit)
            else:
                by_key.setdefault(message.key if self._ordered else "", []).append(place)
        for places in by_key.values():
            runs = self._runs(places)
            if self._ordered:
                yield deque(runs)
            else:
                yield from (deque([run]) for run in runs)

    def _runs(self, places: list[int]) -> Iterator[list[int]]:
        run: list[int] = []
        size = 0
        for place in places:
            size += self._sizes[place]
            if run and (len(run) == MESSAGES_A_REQUEST or size > BYTES_A_REQUEST):
                yield run
                run, size = [], self._sizes[place]
            run.append(place)
        yield run


def _path_from_topic(topic: Topic) -> str:
    project, _, name = topic.endpoint.partition("://")[2].partition("/")
    if not valid_pubsub_names(project, name):  # it is not shown: it may hold what looked like a password
        raise ConfigError(f"push-endpoint of topic {topic.name} must have the form pubsub://PROJECT/TOPIC")
    return f"projects/{project}/topics/{name}"


def _attributes(message: Message) -> dict[str, str]:
    """What travels beside the body; CloudEvents attributes are named as Google's binding has it."""
    attributes = {EVENT_ID: message.event_id, CONTENT_TYPE: message.content_type}
    if message.key:  # a test event is about none
        attributes[KEY] = message.key
    for name, value in message.cloudevent.items():
        attributes[CE_PREFIX + name] = value
    return attributes


def _measure(message: Message) -> tuple[int, str | None]:
    """The bytes that the message takes in a request, at most, and why Pub/Sub would never take it, if so."""
    extra = message.cloudevent
    try:
        names = [_utf8_bytes(name) + len(CE_PREFIX) for name in extra]
        values = [_utf8_bytes(value) for value in _values(message)]
    except UnicodeEncodeError:
        return 0, "an attribute is not valid Unicode"
    if max(values) > _VALUE_BYTES or (extra and (len(values) > _ATTRIBUTES or max(names) > _NAME_BYTES)):
        return 0, "more or longer attributes than Pub/Sub takes"
    key_bytes = values[1]  # once more, as the ordering key
    size = len(message.body) + sum(values) + sum(names) + key_bytes + _FRAME_BYTES * (1 + len(values))
    return size, "larger than the 10 MB that Pub/Sub takes" if size > MESSAGE_LIMIT_BYTES else None


def _values(message: Message) -> tuple[str, ...]:
    return (message.event_id, message.key, message.content_type, *message.cloudevent.values())


def _utf8_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())
