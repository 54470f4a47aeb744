"""A connection to an AMQP broker that many calls share, each over a channel of its own, driven by one thread.

    send(call) --> tasks --> thread of the connection --> channel of the call --> broker
        ^                          |
        +------- call ended -------+

pika works in that thread only, which also answers heartbeats while the connection rests. A connection ends
when it is lost, when it is closed, and when a call got no answer in time and nothing else came lately either:
then it takes no more calls, and those under way have until their own deadlines. A call that is merely not
answered loses its channel alone. With as many channels as the broker allows, a call waits for one that rests.
"""

import logging
import time
from collections import deque
from collections.abc import Callable
from threading import Lock, Thread

from pika.exceptions import NoFreeChannels

from bucketwire.publish.amqp_broker import Broker
from bucketwire.publish.amqp_call import Call
from bucketwire.publish.amqp_channel import AmqpChannel
from bucketwire.publish.amqp_failure import Failure, connection_failure
from bucketwire.publish.amqp_wire import Wire
from bucketwire.publish.pem_files import UNUSABLE, UnusableFile

_TURN_SECONDS = 60.0
_CLOSE_SECONDS = 2.0
_SILENCE_SECONDS = 1.0
"""So long, or half of its time if that is less, a call must have heard nothing to give up the connection."""

_LOST = "connection lost"
_BLOCKED = "the broker takes no messages for now: it is short of memory or disk"


class AmqpConnection:
    """Connects by itself. `Failure` when the broker's certificates cannot be read."""

    def __init__(self, broker: Broker, *, private_allowed: bool = True) -> None:
        # pika tells of each failure in several lines and with stack traces; here they are outcomes
        logging.getLogger("pika").setLevel(logging.CRITICAL)
        try:
            parameters = broker.parameters()
        except UnusableFile:
            raise Failure(UNUSABLE) from None
        self._lock = Lock()
        self._calls: set[Call] = set()
        self._tasks: deque[Callable[[], None]] = deque()
        self._resting: list[AmqpChannel] = []
        self._waiting: deque[Call] = deque()
        """Calls without a channel, in the order of their coming."""
        self._failure: Failure | None = None
        self._leaving = False
        """Whether it takes no more calls, and ends with the last one."""
        self._closed = False
        self._ended = False
        self._wire = Wire(parameters, self._on_lost, private_allowed=private_allowed)
        self._thread = Thread(target=self._drive, name="amqp", daemon=True)
        self._thread.start()

    @property
    def calls(self) -> int:
        """How many are under way."""
        return len(self._calls)

    @property
    def channel_limit(self) -> float:
        """How many can be under way without waiting for each other."""
        return self._wire.channel_limit

    @property
    def is_usable(self) -> bool:
        """Whether it takes calls."""
        return not (self._leaving or self._closed or self._failure)

    @property
    def is_open(self) -> bool:
        """Whether the broker has let us in."""
        return self._wire.is_open

    def join(self, call: Call) -> bool:
        """Let the call be under way here; not if the connection takes no more."""
        with self._lock:
            if not self.is_usable:
                return False
            self._calls.add(call)
        self._do(lambda: call.begin(self._begin))
        return True

    def finish(self, call: Call, give_up_at: float) -> None:
        """Block until the call has ended or the time is over; it leaves the connection then."""
        began_at = time.monotonic()
        if not call.wait(give_up_at - began_at):
            blocked, now = self._wire.blocked, time.monotonic()
            silent = now - self._wire.heard_at >= min(_SILENCE_SECONDS, (now - began_at) / 2)
            self._leaving = self._leaving or blocked or silent
            call.end(Failure(_BLOCKED) if blocked else None)
        elif call.failure and call.failure.of_connection:  # the thread may not have come to say so
            self._leaving = True
        with self._lock:
            self._calls.discard(call)
        self._do(lambda: self._release(call))

    def close(self) -> None:
        """Take leave of the broker, if it answers soon. Calling it twice is harmless."""
        self._closed = True
        self._do(lambda: None)
        self._thread.join(_CLOSE_SECONDS)

    def _do(self, task: Callable[[], None]) -> None:
        with self._lock:
            if not self._ended:
                self._tasks.append(task)
                self._wire.wake()

    def _drive(self) -> None:
        """Until it is lost, closed, or left by its last call."""
        try:
            while not self._is_over():
                self._wire.run(_TURN_SECONDS)
                while self._wire.is_open and self._tasks:
                    self._tasks.popleft()()
        finally:
            self._end(self._failure or Failure(_LOST, of_connection=True))

    def _is_over(self) -> bool:
        return bool(self._failure or self._closed or (self._leaving and not self._calls))

    def _end(self, failure: Failure) -> None:
        """Tell all who still wait, and give up what is left."""
        with self._lock:
            self._ended, self._failure = True, failure
            calls = list(self._calls)
        for call in calls:
            call.end(failure)
        if self._leaving:
            self._wire.abort()
        else:
            self._wire.close()

    def _begin(self, call: Call) -> None:
        """Give the call a channel, now or when it is its turn."""
        self._waiting.append(call)
        self._lend()

    def _lend(self) -> None:
        """Give channels to those who wait, as far as there are any."""
        while self._waiting:
            call = self._waiting.popleft()
            with call.blamed():
                if not call.ended and not self._lend_to(call):
                    self._waiting.appendleft(call)
                    return

    def _lend_to(self, call: Call) -> bool:
        """Give it one that rests, or a new one. If there can be none, one of the other kind makes room."""
        self._resting = [channel for channel in self._resting if channel.is_open]
        for channel in self._resting:
            if channel.confirms == call.target.confirms:
                self._resting.remove(channel)
                channel.listener = call
                call.go_on(channel)
                return True
        try:
            self._open_for(call)
        except NoFreeChannels:
            if self._resting:
                self._resting.pop().close()
            return False
        return True

    def _open_for(self, call: Call) -> None:
        AmqpChannel(
            self._wire,
            confirms=call.target.confirms,
            on_open=lambda opened: self._lend_new(opened, call),
            on_gone=self._note_gone,
            listener=call,
        )

    def _lend_new(self, channel: AmqpChannel, call: Call) -> None:
        if call.ended:
            self._rest(channel)
        else:
            with call.blamed():
                call.go_on(channel)

    def _release(self, call: Call) -> None:
        """Keep the channel of a call that has all its answers; for others some may still come."""
        channel, call.channel = call.channel, None
        if channel is None:
            return
        with call.blamed():
            if call.is_answered and channel.is_open:
                self._rest(channel)
            else:
                channel.close()

    def _rest(self, channel: AmqpChannel) -> None:
        channel.listener = None
        self._resting.append(channel)
        self._lend()

    def _note_gone(self) -> None:
        """Its number is free a moment later."""
        if self._waiting:
            self._do(self._lend)

    def _on_lost(self, error: BaseException) -> None:
        self._failure = self._failure or connection_failure(error)
