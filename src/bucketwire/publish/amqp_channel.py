"""A channel of an AMQP connection: one call at a time speaks over it, many stand side by side.

For the thread of the connection alone. What closes a channel leaves the connection as it is.
"""

from collections.abc import Callable
from typing import Any, Protocol

import pika

from bucketwire.publish.amqp_failure import Failure, channel_failure
from bucketwire.publish.amqp_wire import Wire


class Listener(Protocol):
    """Whom the broker's answers are told to."""

    def confirmed(self, tag: int, *, multiple: bool, accepted: bool) -> None:
        """The broker's word on one message, or on all up to it."""
        ...

    def returned(self, message_id: str) -> None:
        """No queue was there for this message; its confirmation follows."""
        ...

    def closed(self, failure: Failure) -> None:
        """The channel is no more."""
        ...


class AmqpChannel:
    """Opens itself and then calls `on_open`. With `confirms` the broker answers for each message.

    `on_gone` is called at its end; pika frees its number only after that. `NoFreeChannels` at the limit.
    """

    def __init__(
        self,
        wire: Wire,
        *,
        confirms: bool,
        on_open: Callable[["AmqpChannel"], None],
        on_gone: Callable[[], None],
        listener: Listener,
    ) -> None:
        self.confirms = confirms
        self.listener: Listener | None = listener
        self._sent = 0
        self._on_open = on_open
        self._on_gone = on_gone
        self._channel = wire.channel(self._opened)
        self._channel.add_on_close_callback(self._closed)
        self._channel.add_on_return_callback(self._returned)

    @property
    def is_open(self) -> bool:
        """Whether it can be used."""
        return bool(self._channel.is_open)

    def check(self, exchange: str, on_found: Callable[[], None]) -> None:
        """Ask for the exchange. A broker that has none closes the channel."""
        self._channel.exchange_declare(exchange, passive=True, callback=lambda _: on_found())

    def send(self, exchange: str, routing_key: str, body: bytes, properties: Any, mandatory: bool) -> int:  # noqa: FBT001 as it goes on to pika
        """Put a message on its way; its delivery tag. `ValueError` when it cannot be written in AMQP."""
        try:
            self._channel.basic_publish(exchange, routing_key, body, properties, mandatory)
        except pika.exceptions.ShortStringTooLong as problem:
            raise ValueError from problem
        self._sent += 1
        return self._sent

    def close(self) -> None:
        """Listen no more, and tell the broker."""
        self.listener = None
        if self._channel.is_open:
            self._channel.close()

    def _opened(self, _: object) -> None:
        if self.confirms:
            self._channel.confirm_delivery(self._confirmed, callback=lambda _: self._on_open(self))
        else:
            self._on_open(self)

    def _closed(self, _: object, error: BaseException) -> None:
        listener, self.listener = self.listener, None
        if listener:
            listener.closed(channel_failure(error))
        self._on_gone()

    def _confirmed(self, frame: Any) -> None:
        answer = frame.method
        if self.listener:
            accepted = isinstance(answer, pika.spec.Basic.Ack)
            self.listener.confirmed(answer.delivery_tag, multiple=answer.multiple, accepted=accepted)

    def _returned(self, _channel: object, _method: object, properties: Any, _body: bytes) -> None:
        if self.listener:
            self.listener.returned(properties.message_id)
