"""One call to an AMQP publisher, as it goes over a channel that is its own for that time.

    exchange is there? --> window of unanswered messages --> broker
                                 ^                             |
                                 +-- confirms, in any order ---+

All of it runs in the thread of the connection, except `wait`, which is for the caller. A call ends once: with
an outcome for each message, with a `Failure`, or when the caller goes away.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event
from typing import Any

import pika

from bucketwire.event.message import Message
from bucketwire.publish.amqp_batch import Batch
from bucketwire.publish.amqp_channel import AmqpChannel
from bucketwire.publish.amqp_failure import Failure, TooLarge, unexpected_failure
from bucketwire.publish.headers import EVENT_ID, KEY

CE_PREFIXES = ("ce-", "cloudEvents:")
"""What stands before the attributes of a CloudEvent, each sent under both names: of Knative's binding for
RabbitMQ, and of CloudEvents' for AMQP 1.0, as which a consumer of the same queue may read it."""

_PERSISTENT = 2


@dataclass(frozen=True, slots=True)
class Target:
    """Where the messages of a topic go, and what the broker is to answer."""

    exchange: str
    routing_key: str
    confirms: bool
    """Whether it answers for each message."""
    mandatory: bool
    """Whether it returns what no queue takes."""


class Call:
    """A batch on its way to a target."""

    def __init__(self, target: Target, batch: Batch) -> None:
        self.target = target
        self._ask_channel: Callable[[Call], None] = lambda _: None
        self.failure: Failure | None = None
        self.has_sent = False
        """Whether anything was sent, which may arrive."""
        self.channel: AmqpChannel | None = None
        self._batch = batch
        self._ended = Event()

    @property
    def ended(self) -> bool:
        """Whether nothing more will happen."""
        return self._ended.is_set()

    def begin(self, ask_channel: "Callable[[Call], None]") -> None:
        """Ask for a channel, now and whenever one is lost that the call can do without."""
        self._ask_channel = ask_channel
        if not self.ended:
            ask_channel(self)

    def wait(self, seconds: float) -> bool:
        """Block until it has ended, but no longer than that; whether it has."""
        return self._ended.wait(seconds)

    def end(self, failure: Failure | None = None) -> None:
        """Nothing more is sent. Calling it twice is harmless."""
        if not self.ended:
            self.failure = failure
            self._ended.set()

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """End this call alone with whatever goes wrong: others on the connection go on."""
        try:
            yield
        except Exception as problem:  # noqa: BLE001 nobody knows of which kind
            self.end(unexpected_failure(problem))

    @property
    def is_answered(self) -> bool:
        """Whether each message has its outcome, so that nothing more can come for it."""
        return self._batch.is_answered

    def go_on(self, channel: AmqpChannel) -> None:
        """Send what has no outcome over this channel, which is open."""
        self.channel = channel
        channel.check(self.target.exchange, self._fill_window)

    def closed(self, failure: Failure) -> None:
        """The channel is no more. Without what was too large the call may go on over another."""
        self.channel = None
        if isinstance(failure, TooLarge) and self._batch.reject_larger(failure.limit_bytes):
            self._ask_channel(self)
        else:
            self.end(failure)

    def confirmed(self, tag: int, *, multiple: bool, accepted: bool) -> None:
        """The broker's word on one message, or on all up to it."""
        if self._batch.confirmed(tag, multiple=multiple, accepted=accepted):
            self._fill_window()

    def returned(self, message_id: str) -> None:
        """No queue was there for this message; its confirmation follows."""
        self._batch.returned(message_id)

    def _fill_window(self) -> None:
        """Keep the window full; end when all is answered."""
        channel = self.channel
        if channel is None or self.ended:
            return
        with self.blamed():
            while (place := self._batch.next_place()) is not None:
                self._send(place, channel)
            if not self._batch.in_flight:
                self.end()
            elif not self.target.confirms:
                channel.check(self.target.exchange, self._all_read)

    def _all_read(self) -> None:
        """The answer to a question shows that the broker has read all that was sent before it."""
        self._batch.all_read()
        self._fill_window()

    def _send(self, place: int, channel: AmqpChannel) -> None:
        target, message = self.target, self._batch.messages[place]
        try:
            tag = channel.send(
                target.exchange, target.routing_key, message.body, _properties(message), target.mandatory
            )
        except ValueError:
            self._batch.unfit(place)
        else:
            self.has_sent = True
            self._batch.sent(place, tag)


def _properties(message: Message) -> Any:
    """What travels beside the body."""
    headers = {EVENT_ID: message.event_id}
    if message.key:
        headers[KEY] = message.key
    for prefix in CE_PREFIXES:
        headers |= {prefix + name: value for name, value in message.cloudevent.items()}
    return pika.BasicProperties(
        content_type=message.content_type,
        delivery_mode=_PERSISTENT,
        message_id=message.event_id,
        timestamp=message.committed_at_ns // 1_000_000_000 or None,
        headers=headers,
    )
