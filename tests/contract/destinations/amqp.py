"""An exchange of a real RabbitMQ with one queue behind a proxy, for the contract suite."""

from itertools import count
from typing import ClassVar

from bucketwire.event.topic import Topic
from factories import topic
from services.http_endpoint import Mode
from services.proxy import Condition, Proxy
from services.rabbitmq import rabbitmq_server

HALF = 100
"""Of the 200 messages that the suite sends to a destination that refuses half."""

_NUMBERS = count()
_CONDITIONS = {Mode.SLOW: Condition.SLOW, Mode.HANG: Condition.HANGS, Mode.DOWN: Condition.DOWN}


class AmqpDestination:
    """REFUSE is a queue that is full, HALF one that gets full in the middle."""

    channel: ClassVar[str] = "amqp"
    failures: ClassVar[tuple[Mode, ...]] = (Mode.REFUSE, Mode.DOWN)

    def __init__(self) -> None:
        self._server = rabbitmq_server()
        self._proxy = Proxy(self._server.port).start()
        self.exchange = f"exchange-{next(_NUMBERS)}"
        self._kept: list[tuple[bytes, dict[str, str]]] = []
        with self._server.channel() as channel:
            channel.exchange_declare(self.exchange, "direct")
        self._bind_queue()

    def topic(self, **attributes: str) -> Topic:
        url = self._server.url(port=self._proxy.port)
        return topic(url, **{"amqp-exchange": self.exchange, **attributes})

    def behave(self, mode: Mode) -> None:
        self._proxy.condition = _CONDITIONS.get(mode, Condition.WORKS)
        self._collect()
        self._bind_queue({Mode.REFUSE: 0, Mode.HALF: HALF}.get(mode))

    def received(self) -> list[bytes]:
        self._collect()
        return [body for body, _ in self._kept]

    def beside(self) -> list[dict[str, str]]:
        self._collect()
        return [headers for _, headers in self._kept]

    def close(self) -> None:
        self._proxy.stop()
        with self._server.channel() as channel:
            channel.queue_delete(self.exchange)
            channel.exchange_delete(self.exchange)

    def _collect(self) -> None:
        with self._server.channel() as channel:
            while (found := channel.basic_get(self.exchange, auto_ack=True))[0] is not None:
                self._kept.append((found[2], found[1].headers))

    def _bind_queue(self, room: int | None = None) -> None:
        """A new queue; one with limited room refuses what is too much."""
        limits = {} if room is None else {"x-max-length": room, "x-overflow": "reject-publish"}
        with self._server.channel() as channel:
            channel.queue_delete(self.exchange)
            channel.queue_declare(self.exchange, arguments=limits)
            channel.queue_bind(self.exchange, self.exchange, "videos")
