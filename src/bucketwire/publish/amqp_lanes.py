"""The few connections to one AMQP broker, and over which of them a call goes.

One connection serves many calls, so a second is opened only when the first has plenty. One that is lost or
silent takes no more calls, and another takes its place; a call that had sent nothing yet goes over that one.
"""

from threading import Lock

from bucketwire.publish.amqp_batch import Batch
from bucketwire.publish.amqp_broker import Broker
from bucketwire.publish.amqp_call import Call, Target
from bucketwire.publish.amqp_connection import AmqpConnection

CALLS_A_LANE = 16
"""With so many under way over each connection, one more is opened."""


class Lanes:
    """At most `count` connections that take calls. Threads may call at once."""

    def __init__(self, broker: Broker, count: int, *, private_allowed: bool = True) -> None:
        self._broker = broker
        self._count = count
        self._private_allowed = private_allowed
        self._lock = Lock()
        self._connections: list[AmqpConnection] = []

    def send(self, target: Target, batch: Batch, give_up_at: float) -> Call:
        """Block until the batch has its outcomes or the time is over; `Failure` when they cannot come."""
        call = Call(target, batch)
        connection, was_open = self._join(call)
        connection.finish(call, give_up_at)
        if call.failure and call.failure.of_connection and was_open and not call.has_sent:
            call = Call(target, batch)
            connection, _ = self._join(call)
            connection.finish(call, give_up_at)
        if call.failure:
            raise call.failure
        return call

    def close(self) -> None:
        """Take leave of the broker. Calling it twice is harmless."""
        with self._lock:
            connections, self._connections = self._connections, []
        for connection in connections:
            connection.close()

    def _join(self, call: Call) -> tuple[AmqpConnection, bool]:
        """The connection that has taken the call, and whether it was open."""
        with self._lock:
            while True:
                connection = self._choose()
                was_open = connection.is_open
                if connection.join(call):
                    return connection, was_open

    def _choose(self) -> AmqpConnection:
        self._connections = [each for each in self._connections if each.is_usable]
        for connection in self._connections:
            if connection.calls < min(CALLS_A_LANE, connection.channel_limit):
                return connection
        if len(self._connections) < self._count:
            self._connections.append(AmqpConnection(self._broker, private_allowed=self._private_allowed))
            return self._connections[-1]
        return min(self._connections, key=lambda each: each.calls)
