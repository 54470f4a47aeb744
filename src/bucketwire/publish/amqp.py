"""Messages to an exchange of an AMQP 0.9.1 broker, over a few connections that all topics share.

    messages --> call --> channel of a shared connection --> exchange
       ^                            |
       +----- outcome of each ------+

`amqp-exchange` names the exchange; the routing key is the name of the topic. `amqp-ack-level` says what
counts as `Delivered`: that the broker has read the message (`none`), has taken charge of it (`broker`), or
has put it into a queue (`routable`). A message longer than the broker allows is `Rejected`; all else is
`Retry`, as the exchange, the permissions and the queues can be mended. What was unconfirmed when a batch was
interrupted is `Retry` too, and may arrive twice.

A broker that cannot put messages into one queue may stop reading from the connection they came over. So a
topic whose messages got no answer goes over a connection apart, shared with others like it, until they do.
"""

import time
from collections.abc import Sequence
from enum import StrEnum

from bucketwire.errors import ConfigError
from bucketwire.event.message import Message
from bucketwire.event.topic import Topic
from bucketwire.publish.amqp_batch import Batch
from bucketwire.publish.amqp_broker import broker_from_topic
from bucketwire.publish.amqp_call import Target
from bucketwire.publish.amqp_failure import Failure
from bucketwire.publish.amqp_lanes import Lanes
from bucketwire.publish.base import Outcome, Retry, no_answer
from bucketwire.publish.connections import Connections

LANES = 4
"""Connections to one broker, for topics that get answers; one more for those that do not."""

_SHORT_STRING_BYTES = 255


class AckLevel(StrEnum):
    """What the broker must have done with a message before it counts as delivered."""

    NONE = "none"
    BROKER = "broker"
    ROUTABLE = "routable"


class AmqpPublisher:
    """Publishes to `amqp-exchange`. `ConfigError` when the endpoint or an attribute can never work."""

    def __init__(self, topic: Topic, connections: Connections) -> None:
        self._broker = broker_from_topic(topic)
        level = _ack_level(topic)
        self._target = Target(
            exchange=_short(topic.attributes.get("amqp-exchange", ""), "amqp-exchange", topic),
            routing_key=_short(topic.name, "name", topic),
            confirms=level is not AckLevel.NONE,
            mandatory=level is AckLevel.ROUTABLE,
        )
        self._ordered = topic.ordered
        self._connections = connections
        self._hangs = False
        """Whether the last messages that were sent got no answer."""

    def publish(self, messages: Sequence[Message], deadline_seconds: float) -> list[Outcome]:
        """Publish the messages; see `Publisher.publish`."""
        give_up_at = time.monotonic() + deadline_seconds
        batch = Batch(messages, self._target.routing_key, ordered=self._ordered)
        unanswered = no_answer(deadline_seconds)
        if messages and deadline_seconds > 0:
            try:
                self._hangs = self._deliver(batch, give_up_at)
            except Failure as failure:
                unanswered = Retry(failure.reason)
        return [outcome or unanswered for outcome in batch.outcomes]

    def close(self) -> None:
        """Nothing to give up: the connections are shared, and closed when nobody uses them."""

    def _deliver(self, batch: Batch, give_up_at: float) -> bool:
        """Whether some were sent and got no answer; `Failure` when none can come any more.

        One that hung before may not even get to send: others that hang hold up the connection apart.
        """
        hung = self._hangs  # another thread may find out more meanwhile
        with self._connections.shared(("amqp", self._broker, hung), lambda: self._open(hung=hung)) as lanes:
            call = lanes.send(self._target, batch, give_up_at)
        return not call.is_answered and (call.has_sent or hung)

    def _open(self, *, hung: bool) -> Lanes:
        return Lanes(self._broker, 1 if hung else LANES, private_allowed=self._connections.private_allowed)


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
