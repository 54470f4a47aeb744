"""pika's connection to a broker together with the loop that drives it, in the one thread that calls `run`.

It connects while the loop runs, tells once when it is lost, and can be cut off at any moment, also while it
connects. Addresses are looked up by pika's own thread, and asked about before they are called: see `guard`.
"""

import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import pika
from pika.adapters.select_connection import IOLoop
from pika.adapters.utils.connection_workflow import AMQPConnectorException
from pika.adapters.utils.selector_ioloop_adapter import SelectorIOServicesAdapter

from bucketwire.publish.amqp_failure import ForbiddenAddress
from bucketwire.publish.guard import forbidden

_CLOSE_SECONDS = 0.5
_CUT_SECONDS = 0.01
_GIVEN_UP = pika.exceptions.ConnectionClosedByClient(200, "given up")


class Wire:
    """One connection, from its first byte to its end. `on_lost` gets what pika says of it."""

    def __init__(
        self,
        parameters: pika.ConnectionParameters,
        on_lost: Callable[[BaseException], None],
        *,
        private_allowed: bool,
    ) -> None:
        self._on_lost = on_lost
        self._loop = IOLoop()
        self._connection: Any = None
        self._ended = False
        self.blocked = False
        """Whether the broker has said that it takes no messages for now."""
        services = SelectorIOServicesAdapter(self._loop) if private_allowed else _PublicOnly(self._loop)
        self._opening: Any = _Connection.begin(
            parameters, lambda each: self._begin(each, services), services, self._on_opened
        )

    @property
    def is_open(self) -> bool:
        """Whether channels can be opened and used."""
        return self._connection is not None and bool(self._connection.is_open)

    @property
    def heard_at(self) -> float:
        """When anything last came from the broker, on the clock of `time.monotonic`; long ago if never."""
        return -math.inf if self._connection is None else float(self._connection.heard_at)

    @property
    def channel_limit(self) -> float:
        """How many channels there can be at once; the broker has its say before it is open."""
        return math.inf if self._connection is None else float(self._connection.params.channel_max)

    def channel(self, on_open: Callable[[object], None]) -> Any:
        """A new channel of pika's, which is open when `on_open` is called; `NoFreeChannels` at the limit."""
        return self._connection.channel(on_open_callback=on_open)

    def run(self, seconds: float) -> None:
        """Let pika work until it is open or lost or `wake` is called, but no longer than that."""
        timer = self._loop.call_later(seconds, self._loop.stop)
        self._loop.start()
        self._loop.remove_timeout(timer)

    def wake(self) -> None:
        """End `run`, or the next one at once; any thread may call it, until the wire is closed."""
        self._loop.add_callback_threadsafe(self._loop.stop)

    def close(self) -> None:
        """Take leave of the broker, if it answers soon; cut the connection in any case. For one call only."""
        if self.is_open:
            self._connection.close()
            self._run_until_ended()
        self.abort()

    def abort(self) -> None:
        """Cut the connection. For one call only."""
        give_up_at = time.monotonic() + _CLOSE_SECONDS
        while not self._ended and time.monotonic() < give_up_at:
            self._cut()
            self.run(_CUT_SECONDS)
        self._loop.close()

    def _cut(self) -> None:
        """Give up what is there now; where a host has several addresses, pika may go on to the next."""
        if self._connection is not None and self._connection.has_stream:
            self._connection.abort()
        elif self._opening is not None:
            with suppress(AMQPConnectorException):
                self._opening.abort()

    def _run_until_ended(self) -> None:
        give_up_at = time.monotonic() + _CLOSE_SECONDS
        while not self._ended and (remaining := give_up_at - time.monotonic()) > 0:
            self.run(remaining)

    def _begin(self, parameters: pika.ConnectionParameters, services: Any) -> Any:
        """For each address that is tried."""
        self._connection = _Connection(parameters, custom_ioloop=services, internal_connection_workflow=False)
        return self._connection

    def _on_opened(self, result: Any) -> None:
        self._opening = None
        if not isinstance(result, _Connection):
            self._end(result)
            return
        result.add_on_close_callback(lambda _, error: self._end(error))
        result.add_on_connection_blocked_callback(lambda *_: self._note(blocked=True))
        result.add_on_connection_unblocked_callback(lambda *_: self._note(blocked=False))
        self._loop.stop()

    def _end(self, error: BaseException) -> None:
        self._ended = True
        self._on_lost(error)
        self._loop.stop()

    def _note(self, *, blocked: bool) -> None:
        self.blocked = blocked


class _Connection(pika.SelectConnection):  # type: ignore[misc]  # pika's types are not read
    """pika's, which can also be cut off: its own `close` waits for the broker. It notes when it hears."""

    heard_at = -math.inf

    @classmethod
    def begin(
        cls,
        parameters: pika.ConnectionParameters,
        factory: Callable[[pika.ConnectionParameters], Any],
        services: Any,
        on_done: Callable[[Any], None],
    ) -> Any:
        """Start to connect; what is returned can be aborted."""
        return cls._start_connection_workflow(
            connection_configs=[parameters],
            connection_factory=factory,
            nbio=services,
            workflow=None,
            on_done=on_done,
        )

    def _on_data_available(self, data_in: bytes) -> None:
        self.heard_at = time.monotonic()
        super()._on_data_available(data_in)

    @property
    def has_stream(self) -> bool:
        """Whether there is a socket to close."""
        return self._transport is not None

    def abort(self) -> None:
        """Close the socket, once the loop runs. pika's own way to end a handshake fails."""
        self._terminate_stream(_GIVEN_UP)


class _PublicOnly(SelectorIOServicesAdapter):  # type: ignore[misc]  # likewise
    """Finds no addresses but those of the public internet."""

    def getaddrinfo(self, host: str, port: int, on_done: Callable[[Any], None], **hints: int) -> Any:
        """Look the name up; see pika's `AbstractIOServices`."""
        return super().getaddrinfo(host, port, lambda found: on_done(_allowed(found)), **hints)


def _allowed(found: Sequence[Any] | BaseException) -> Sequence[Any] | BaseException:
    if isinstance(found, BaseException):
        return found
    return [each for each in found if not forbidden(each[4][0])] or ForbiddenAddress()
