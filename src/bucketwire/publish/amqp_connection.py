"""A connection to an AMQP broker that one thread at a time may use, with one channel in it.

    open(exchange) --> send, send, send ... --> wait until the listener is content

pika works only inside these calls. Between them nobody answers heartbeats: a connection that has rested for
longer than the broker waits for one is not used again. One that turns out dead before anything was sent is
replaced at once, once. What closes the channel leaves the connection as it is.
"""

import logging
import time
from collections.abc import Callable
from typing import Any, Protocol

import pika

from bucketwire.publish.amqp_broker import HEARTBEAT_SECONDS, Broker
from bucketwire.publish.amqp_failure import Failure, channel_failure, connection_failure
from bucketwire.publish.amqp_wire import Wire

_UNREADABLE = "the trusted certificates cannot be read"
_BLOCKED = "the broker takes no messages for now: it is short of memory or disk"


class NoAnswer(Exception):
    """The time is over. The connection was given up, as an answer may still be on its way."""


class Listener(Protocol):
    """Whom the broker's answers are told to."""

    def confirmed(self, tag: int, *, multiple: bool, accepted: bool) -> bool:
        """The broker's word on one message, or on all up to it; whether to end the wait."""
        ...

    def returned(self, message_id: str) -> None:
        """No queue was there for this message; its confirmation follows."""
        ...


class AmqpConnection:
    """Connects when it is first opened. With `confirms` the broker answers for each message."""

    def __init__(self, broker: Broker, *, confirms: bool, private_allowed: bool = True) -> None:
        # pika tells of each failure in several lines and with stack traces; here they are outcomes
        logging.getLogger("pika").setLevel(logging.CRITICAL)
        self._broker = broker
        self._confirms = confirms
        self._private_allowed = private_allowed
        self._wire: Wire | None = None
        self._channel: Any = None
        self._listener: Listener | None = None
        self._failure: Failure | None = None
        self._sent = 0
        self._used_at = 0.0

    def open(self, exchange: str, listener: Listener, give_up_at: float) -> None:
        """Be ready to send to the exchange, which is there; `Failure` or `NoAnswer` when that cannot be."""
        self._listener = listener
        if time.monotonic() - self._used_at >= HEARTBEAT_SECONDS:
            self._abort()
        was_open = self._wire is not None
        try:
            self._prepare(exchange, give_up_at)
        except Failure:
            if not was_open or self._wire is not None:
                raise
            self._prepare(exchange, give_up_at)

    def check(self, exchange: str, give_up_at: float) -> None:
        """Ask for the exchange. The answer also shows that the broker has read all that was sent before."""
        self._ask(
            lambda note: self._channel.exchange_declare(exchange, passive=True, callback=note), give_up_at
        )

    def send(
        self,
        exchange: str,
        routing_key: str,
        body: bytes,
        properties: pika.BasicProperties,
        *,
        mandatory: bool,
    ) -> int:
        """Put a message on its way; its delivery tag. `ValueError` when it cannot be written in AMQP."""
        if self._failure:
            raise self._failure
        try:
            self._channel.basic_publish(exchange, routing_key, body, properties, mandatory)
        except pika.exceptions.ShortStringTooLong as problem:
            raise ValueError from problem
        self._sent += 1
        return self._sent

    def wait(self, done: Callable[[], bool], give_up_at: float) -> None:
        """Let the broker speak until `done`; `Failure` when that cannot come any more, `NoAnswer` in time."""
        while not done():
            if self._failure or self._wire is None:
                raise self._failure or NoAnswer
            remaining = give_up_at - time.monotonic()
            if remaining <= 0:
                blocked = self._wire.blocked
                self._abort()
                raise Failure(_BLOCKED) if blocked else NoAnswer
            self._wire.run(remaining)
        self._used_at = time.monotonic()

    def close(self) -> None:
        """Take leave of the broker, if it answers soon. Calling it twice is harmless."""
        wire, self._wire, self._channel = self._wire, None, None
        if wire is not None:
            wire.close()

    def _prepare(self, exchange: str, give_up_at: float) -> None:
        try:
            wire = self._wire or self._connect(give_up_at)
            if self._channel is None or not self._channel.is_open:
                self._open_channel(wire, give_up_at)
            self.check(exchange, give_up_at)
        except Failure:
            self._drop_if_lost()
            raise

    def _connect(self, give_up_at: float) -> Wire:
        self._failure = None
        try:
            parameters = self._broker.parameters()
        except OSError:  # of ssl too
            raise Failure(_UNREADABLE) from None
        wire = Wire(parameters, self._on_lost, private_allowed=self._private_allowed)
        self._wire = wire
        self.wait(lambda: wire.is_open, give_up_at)
        return wire

    def _open_channel(self, wire: Wire, give_up_at: float) -> None:
        self._failure, self._sent = None, 0

        def open_channel(note: Callable[[object], None]) -> None:
            self._channel = wire.channel(note)
            self._channel.add_on_close_callback(self._on_channel_closed)
            self._channel.add_on_return_callback(self._on_return)

        self._ask(open_channel, give_up_at)
        if self._confirms:
            self._ask(
                lambda note: self._channel.confirm_delivery(self._on_confirm, callback=note), give_up_at
            )

    def _ask(self, question: Callable[[Callable[[object], None]], object], give_up_at: float) -> None:
        """Put a question to the broker, and wait for the answer."""
        answers: list[object] = []

        def note(answer: object) -> None:
            answers.append(answer)
            self._wake()

        question(note)
        self.wait(lambda: bool(answers), give_up_at)

    def _abort(self) -> None:
        wire, self._wire, self._channel = self._wire, None, None
        if wire is not None:
            wire.abort()

    def _drop_if_lost(self) -> None:
        if self._wire is not None and not self._wire.is_open:
            self._abort()

    def _wake(self) -> None:
        if self._wire is not None:
            self._wire.stop()

    def _on_lost(self, error: BaseException) -> None:
        self._failure = self._failure or connection_failure(error)

    def _on_channel_closed(self, _: object, error: BaseException) -> None:
        self._failure = self._failure or channel_failure(error)
        self._wake()

    def _on_confirm(self, frame: Any) -> None:
        answer = frame.method
        accepted = isinstance(answer, pika.spec.Basic.Ack)
        if self._listener and self._listener.confirmed(
            answer.delivery_tag, multiple=answer.multiple, accepted=accepted
        ):
            self._wake()

    def _on_return(self, _channel: object, _method: object, properties: Any, _body: bytes) -> None:
        if self._listener:
            self._listener.returned(properties.message_id)
