"""Messages to an exchange of an AMQP 0.9.1 broker, over a connection shared by all topics that lead there.

    messages --> exchange is there? --> window of unanswered messages --> broker
                                              ^                             |
                                              +-- confirms, in any order ---+

`amqp-exchange` names the exchange; the routing key is the name of the topic. `amqp-ack-level` says what
counts as `Delivered`: that the broker has read the message (`none`), has taken charge of it (`broker`), or
has put it into a queue (`routable`). A message longer than the broker allows is `Rejected`; all else is
`Retry`, as the exchange, the permissions and the queues can be mended. What was unconfirmed when a batch was
interrupted is `Retry` too, and may arrive twice.
"""

import time
from collections import defaultdict, deque
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from enum import StrEnum
from itertools import takewhile

import pika

from bucketwire.errors import ConfigError
from bucketwire.event.message import Message
from bucketwire.event.topic import Topic
from bucketwire.publish.amqp_broker import broker_from_topic
from bucketwire.publish.amqp_connection import AmqpConnection, NoAnswer
from bucketwire.publish.amqp_failure import Failure, TooLarge
from bucketwire.publish.base import Delivered, Outcome, Rejected, Retry
from bucketwire.publish.connections import Connections

WINDOW_MESSAGES = 1000
WINDOW_BYTES = 8 * 1024 * 1024
"""At most so much is unanswered at a time; one message may be longer."""

_PERSISTENT = 2
_SHORT_STRING_BYTES = 255
_DELIVERED = Delivered()
_REFUSED = Retry("the broker did not accept the message")


class AckLevel(StrEnum):
    """What the broker must have done with a message before it counts as delivered."""

    NONE = "none"
    BROKER = "broker"
    ROUTABLE = "routable"


class AmqpPublisher:
    """Publishes to `amqp-exchange`. `ConfigError` when the endpoint or an attribute can never work."""

    def __init__(self, topic: Topic, connections: Connections) -> None:
        self._broker = broker_from_topic(topic)
        self._exchange = _short(topic.attributes.get("amqp-exchange", ""), "amqp-exchange", topic)
        self._routing_key = _short(topic.name, "name", topic)
        self._ack_level = _ack_level(topic)
        self._connections = connections

    def publish(self, messages: Sequence[Message], deadline_seconds: float) -> list[Outcome]:
        """Publish the messages; see `Publisher.publish`."""
        give_up_at = time.monotonic() + deadline_seconds
        batch = _Batch(messages, self._routing_key)
        unanswered = Retry(f"no answer within {deadline_seconds:g} s")
        if messages and deadline_seconds > 0:
            with self._connection() as connection, suppress(NoAnswer):
                try:
                    self._deliver(batch, connection, give_up_at)
                except Failure as failure:
                    unanswered = Retry(failure.reason)
        return [outcome or unanswered for outcome in batch.outcomes]

    def close(self) -> None:
        """Nothing to give up: the connections are shared, and closed when nobody uses them."""

    def _connection(self) -> AbstractContextManager[AmqpConnection]:
        confirms = self._ack_level is not AckLevel.NONE
        allowed = self._connections.private_allowed
        return self._connections.alone(
            ("amqp", self._broker, confirms),
            lambda: AmqpConnection(self._broker, confirms=confirms, private_allowed=allowed),
        )

    def _deliver(self, batch: "_Batch", connection: AmqpConnection, give_up_at: float) -> None:
        """Send until each message has its outcome; again, without those that the broker finds too large."""
        while True:
            try:
                connection.open(self._exchange, batch, give_up_at)
                self._send(batch, connection, give_up_at)
            except TooLarge as problem:
                if not batch.reject_larger(problem.limit_bytes):
                    raise
            else:
                return

    def _send(self, batch: "_Batch", connection: AmqpConnection, give_up_at: float) -> None:
        """Keep the window full until all is answered."""
        while self._fill_window(batch, connection):
            if self._ack_level is AckLevel.NONE:
                connection.check(self._exchange, give_up_at)
                batch.all_read()
            else:
                connection.wait(batch.wants_more, give_up_at)

    def _fill_window(self, batch: "_Batch", connection: AmqpConnection) -> bool:
        """Whether anything is on its way."""
        mandatory = self._ack_level is AckLevel.ROUTABLE
        while (place := batch.next_place()) is not None:
            message = batch.messages[place]
            try:
                tag = connection.send(
                    self._exchange,
                    self._routing_key,
                    message.body,
                    _properties(message),
                    mandatory=mandatory,
                )
            except ValueError:
                batch.unfit(place)
            else:
                batch.sent(place, tag)
        return batch.in_flight


class _Batch:
    """The messages of one call: which are on their way, and the outcomes so far."""

    def __init__(self, messages: Sequence[Message], routing_key: str) -> None:
        self.messages = messages
        self.outcomes: list[Outcome | None] = [None] * len(messages)
        self._unroutable = Retry(f"no queue is bound for the routing key {routing_key}")
        self._unsent = deque(range(len(messages)))
        self._places: dict[int, int] = {}
        """By delivery tag, in the order of sending."""
        self._by_id: defaultdict[str, deque[int]] = defaultdict(deque)
        self._bytes = 0

    @property
    def in_flight(self) -> bool:
        """Whether any message is unanswered."""
        return bool(self._places)

    def next_place(self) -> int | None:
        """The place of the next message to send, if there is one and room for it."""
        if not self._unsent or len(self._places) >= WINDOW_MESSAGES:
            return None
        place = self._unsent[0]
        if self._places and self._bytes + len(self.messages[place].body) > WINDOW_BYTES:
            return None
        return self._unsent.popleft()

    def sent(self, place: int, tag: int) -> None:
        """It is on its way."""
        self._places[tag] = place
        self._by_id[self.messages[place].event_id].append(place)
        self._bytes += len(self.messages[place].body)

    def unfit(self, place: int) -> None:
        """It cannot be written down in AMQP, and was not sent."""
        self.outcomes[place] = Rejected("content type or event id is not fit for AMQP")

    def wants_more(self) -> bool:
        """Whether all is answered, or half of the window while more is to be sent."""
        if not self._unsent:
            return not self._places
        return len(self._places) <= WINDOW_MESSAGES // 2 and self._bytes <= WINDOW_BYTES // 2

    def all_read(self) -> None:
        """What is on its way has reached the broker."""
        if self._places:
            self.confirmed(next(reversed(self._places)), multiple=True, accepted=True)

    def confirmed(self, tag: int, *, multiple: bool, accepted: bool) -> bool:
        """The broker has answered for one message, or for all up to it; see `Listener`."""
        tags = list(takewhile(lambda each: each <= tag, self._places)) if multiple else [tag]
        for place in [self._places.pop(each) for each in tags if each in self._places]:
            self._bytes -= len(self.messages[place].body)
            self._by_id[self.messages[place].event_id].remove(place)
            self.outcomes[place] = self.outcomes[place] or (_DELIVERED if accepted else _REFUSED)
        return self.wants_more()

    def returned(self, message_id: str) -> None:
        """The broker found no queue for it; among equal ids, returns come in the order of sending."""
        place = next((place for place in self._by_id[message_id] if self.outcomes[place] is None), None)
        if place is not None:
            self.outcomes[place] = self._unroutable

    def reject_larger(self, limit_bytes: int) -> bool:
        """Reject what is too large, and make ready to send anew what has no answer; whether any was."""
        rejected = Rejected(f"larger than the {limit_bytes} bytes that the broker takes")
        waiting = [place for place, outcome in enumerate(self.outcomes) if outcome is None]
        large = {place for place in waiting if len(self.messages[place].body) > limit_bytes}
        for place in large:
            self.outcomes[place] = rejected
        self._places.clear()
        self._by_id.clear()
        self._bytes = 0
        self._unsent = deque(place for place in waiting if place not in large)
        return bool(large)


def _properties(message: Message) -> pika.BasicProperties:
    """What travels beside the body."""
    headers = {"bucketwire-event-id": message.event_id}
    if message.key:
        headers["bucketwire-key"] = message.key
    for name, value in message.cloudevent.items():
        headers[f"cloudEvents:{name}"] = value
    return pika.BasicProperties(
        content_type=message.content_type,
        delivery_mode=_PERSISTENT,
        message_id=message.event_id,
        timestamp=message.committed_at_ns // 1_000_000_000 or None,
        headers=headers,
    )


def _ack_level(topic: Topic) -> AckLevel:
    try:
        return AckLevel(topic.attributes.get("amqp-ack-level", AckLevel.BROKER).lower())
    except ValueError:
        raise ConfigError(
            f"amqp-ack-level of topic {topic.name} must be one of {', '.join(AckLevel)}"
        ) from None


def _short(text: str, attribute: str, topic: Topic) -> str:
    if not 0 < len(text.encode()) <= _SHORT_STRING_BYTES:
        raise ConfigError(
            f"{attribute} of topic {topic.name} must have 1 to {_SHORT_STRING_BYTES} bytes for AMQP"
        )
    return text
