"""Messages to a Kafka topic, through one producer of librdkafka for each cluster, shared by all topics on it.

    publish --> produce all --> librdkafka --> brokers
       ^                            |
       +---- outcome of each -------+      a thread of the producer collects the answers

An acknowledged message is `Delivered`; one too large for the topic is `Rejected`; everything else is
`Retry`, also what the owner must mend: a missing topic, wrong credentials, a certificate. When no broker can
be reached, all messages under way get the cause at once. With `kafka-ack-level=none` a message that was sent
is `Delivered`.

A call whose messages are unanswered at the deadline leaves its producer to the calls that still use it; the
last of them throws away what is left in it. So nothing is sent later than that, except what was on the wire
already. A producer that had worked before is then replaced, with its connections; one that never did goes on
connecting, so that a deadline too short to connect in is met the next time.
"""

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from threading import Event, Lock, Thread
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

from bucketwire.errors import ConfigError
from bucketwire.event.message import Message
from bucketwire.event.topic import Topic
from bucketwire.log import get_logger
from bucketwire.publish.base import Delivered, Outcome, Rejected, Retry
from bucketwire.publish.connections import Connections
from bucketwire.publish.kafka_guard import BrokersGuard
from bucketwire.publish.kafka_settings import Cluster, cluster_from_topic, kafka_topic_name

TURN_SECONDS = 0.5
"""How long a producer's thread waits for answers before it looks whether it is still wanted."""

_ROOM_SECONDS = 0.01
_HASTE_SECONDS = 0.02
_DELIVERED = Delivered()
_TOO_LARGE = Rejected("the message is too large for the Kafka topic")
_MISSING = Retry("the Kafka topic does not exist")
_OUTCOMES: dict[int, Outcome] = {
    KafkaError.MSG_SIZE_TOO_LARGE: _TOO_LARGE,
    KafkaError.RECORD_LIST_TOO_LARGE: _TOO_LARGE,
    KafkaError.UNKNOWN_TOPIC_OR_PART: _MISSING,
    KafkaError._UNKNOWN_TOPIC: _MISSING,  # noqa: SLF001 so librdkafka names its own errors
    KafkaError.TOPIC_AUTHORIZATION_FAILED: Retry("no permission to write to the Kafka topic"),
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: Retry("no permission for an idempotent producer"),
}
_CAUSES = (  # of having no connection, by what librdkafka's text has in it
    ("certificate verify failed", "the certificate of the broker is not trusted"),
    ("alert bad certificate", "the broker refuses the client certificate"),
    ("alert certificate required", "the broker refuses the client certificate"),
    ("alert unknown ca", "the broker refuses the client certificate"),
    ("SSL handshake failed", "TLS handshake failed"),
    ("OAUTHBEARER token", "no token from oauth-token-endpoint"),
    ("Connection refused", "connection refused"),
)


class KafkaPublisher:
    """Publishes to the Kafka topic of the same name.

    Raises `ConfigError` when its attributes can never work. Any number of threads may publish at once.
    """

    def __init__(self, topic: Topic, connections: Connections) -> None:
        self._name = kafka_topic_name(topic)
        self._cluster = cluster_from_topic(topic)
        self._connections = connections
        self._guard = None if connections.private_allowed else _guard(topic, self._cluster)

    def publish(self, messages: Sequence[Message], deadline_seconds: float) -> list[Outcome]:
        """Produce the messages; see `Publisher.publish`."""
        until = time.monotonic() + deadline_seconds
        unanswered = Retry(f"no answer within {deadline_seconds:g} s")
        if not messages or deadline_seconds <= 0:
            return [unanswered] * len(messages)
        if self._guard and (refusal := self._guard.refusal(deadline_seconds)):
            return [refusal] * len(messages)
        outcomes = self._send(self._cluster, messages, until, unanswered)
        # a broker refuses the batch that is too large, and with it messages that are not
        refused = [place for place, outcome in enumerate(outcomes) if outcome is _TOO_LARGE]
        if refused:
            alone = replace(self._cluster, one_a_batch=True)
            again = self._send(alone, [messages[place] for place in refused], until, unanswered)
            for place, outcome in zip(refused, again, strict=True):
                outcomes[place] = outcome
        return outcomes

    def close(self) -> None:
        """Nothing is held here: the connections belong to all topics of the cluster."""

    def _send(
        self, cluster: Cluster, messages: Sequence[Message], until: float, unanswered: Retry
    ) -> list[Outcome]:
        batch = _Batch(len(messages))
        try:
            with self._connections.shared(cluster, partial(_Client, cluster)) as client:
                client.send(self._name, messages, batch, until)
        except KafkaException:  # of making the producer: its text may name files
            batch.give_up(Retry("the certificate or key files cannot be used"))
        missing = batch.dead or unanswered
        return [outcome or missing for outcome in batch.outcomes]


class _Batch:
    """The outcomes of one call. The producer's thread writes them, and the caller what is not even sent."""

    def __init__(self, size: int) -> None:
        self.outcomes: list[Outcome | None] = [None] * size
        self.dead: Retry | None = None
        """Why no answer is expected any more, once none is."""
        self._unanswered = size
        self._lock = Lock()
        self._ended = Event()

    @property
    def answered(self) -> bool:
        """Whether every message has its outcome."""
        return self._unanswered == 0

    def answer(self, place: int, error: KafkaError | None, _: object = None) -> None:
        """What became of one message."""
        self.outcomes[place] = _DELIVERED if error is None else _outcome_of(error)
        with self._lock:
            self._unanswered -= 1
        if self._unanswered == 0:
            self._ended.set()

    def give_up(self, cause: Retry) -> None:
        """Wait no longer."""
        self.dead = cause
        self._ended.set()

    def wait(self, seconds: float) -> bool:
        """Block until all are answered or none will be, but no longer than that; whether it is so."""
        return self._ended.wait(seconds)


class _Client:
    """The producer for a cluster; a new one after it has failed. Threads may call at once."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._lock = Lock()
        self._producer: _Producer | None = None

    def send(self, name: str, messages: Sequence[Message], batch: _Batch, until: float) -> None:
        """Produce the messages and wait for their answers; `KafkaException` when there can be no producer."""
        producer = self._joined(batch)
        try:
            producer.produce(name, messages, batch, until)
            producer.wait(name, batch, until)
        finally:
            producer.leave(batch)

    def _joined(self, batch: _Batch) -> "_Producer":
        with self._lock:
            if self._producer is None or not self._producer.join(batch):
                self._producer = _Producer(self._cluster, batch)
            return self._producer

    def close(self) -> None:
        """Let the producer go, when the last call that uses it has ended."""
        with self._lock:
            if self._producer is not None:
                self._producer.retire()
            self._producer = None


class _Producer:
    """A producer of librdkafka, the thread that collects its answers, and the batches under way."""

    def __init__(self, cluster: Cluster, batch: _Batch) -> None:
        self._failed = False
        """Whether new batches must go elsewhere."""
        self._batches = {batch}
        self._lock = Lock()
        self._unused = False
        self._answered = False
        """Whether answers have ever come."""
        self._lost = False
        """Whether the connection was lost after the last of them."""
        self._leftovers = False
        self._cause: KafkaError | None = None
        configuration = {**cluster.configuration(), "error_cb": self._note_error, "log.queue": True}
        self._producer = Producer(configuration, logger=_Log())
        Thread(target=self._collect, name="kafka-answers", daemon=True).start()

    def join(self, batch: _Batch) -> bool:
        """Let the batch be under way here; not if this producer has failed."""
        with self._lock:
            if self._failed:
                return False
            self._batches.add(batch)
            return True

    def leave(self, batch: _Batch) -> None:
        """The batch is not waited for any more."""
        with self._lock:
            self._batches.discard(batch)
            if not batch.answered:
                self._leftovers = True
                self._failed = self._failed or self._answered
            else:
                self._answered, self._lost = True, False
            self._tidy()

    def retire(self) -> None:
        """Take no new batches."""
        with self._lock:
            self._failed = True
            self._tidy()

    def _tidy(self) -> None:
        """When no batch is under way: end, or throw away what was left and go on connecting."""
        if self._batches:
            return
        if self._failed:
            self._unused = True
        elif self._leftovers:
            self._producer.purge()
            self._leftovers = False

    def produce(self, name: str, messages: Sequence[Message], batch: _Batch, until: float) -> None:
        """Hand over the messages, as fast as there is room for them."""
        for place, message in enumerate(messages):
            while not self._has_taken(name, message, partial(batch.answer, place)):
                if batch.wait(_ROOM_SECONDS) or time.monotonic() >= until:
                    return

    def wait(self, name: str, batch: _Batch, until: float) -> None:
        """Block until the batch has ended or the time has come.

        librdkafka cannot send before it has a producer id. It asks for one twice a second, and whenever it
        hears about a topic: so ask about the topic as long as the producer does not work.
        """
        while (remaining := until - time.monotonic()) > 0 and not batch.wait(min(remaining, _HASTE_SECONDS)):
            if self._lost or not self._answered:
                with suppress(KafkaException):  # no answer in this short time
                    self._producer.list_topics(name, timeout=min(remaining, _HASTE_SECONDS))

    def _has_taken(self, name: str, message: Message, answer: partial[None]) -> bool:
        try:
            self._producer.produce(
                name,
                message.body,
                message.partition_key,
                on_delivery=answer,
                timestamp=message.committed_at_ns // 1_000_000,
                headers=_headers(message),
            )
        except BufferError:
            return False
        except KafkaException as refused:
            answer(refused.args[0])
        return True

    def _collect(self) -> None:
        """Take answers until nobody wants any; then let go of what is left, and of the connections."""
        while not self._unused:
            self._producer.poll(TURN_SECONDS)
        self._producer.purge()
        self._producer.close()

    def _note_error(self, error: KafkaError) -> None:
        """A cause is reported first, then, again and again, that all brokers are down."""
        if error.code() != KafkaError._ALL_BROKERS_DOWN:  # noqa: SLF001
            self._cause = error
            if error.fatal():
                self.retire()
            if error.code() != KafkaError._AUTHENTICATION:  # noqa: SLF001 one broker speaks for all here
                return
        if self._answered and self._batches and not self._lost:
            self._lost = True  # librdkafka makes a new connection and repeats what is due
        else:
            self._give_up(Retry(_reason(self._cause)))

    def _give_up(self, cause: Retry) -> None:
        with self._lock:
            self._failed = True
            for batch in self._batches:
                batch.give_up(cause)
            self._tidy()


class _Log:
    """Where librdkafka's lines go. They are for those who look for a fault: outcomes tell what matters."""

    def log(self, _level: int, _form: str, facility: str, _client: str, text: str) -> None:
        """As of the standard library's loggers."""
        get_logger("kafka").debug("librdkafka", facility=facility, text=text)


def _guard(topic: Topic, cluster: Cluster) -> BrokersGuard:
    if topic.attributes.get("oauth-token-endpoint"):  # librdkafka calls it, and no one can look where
        raise ConfigError(
            f"oauth-token-endpoint of topic {topic.name} is refused where private endpoints are forbidden"
        )
    return BrokersGuard(cluster.hosts())


def _headers(message: Message) -> list[tuple[str, Any]]:
    headers = [("content-type", message.content_type), ("bucketwire-event-id", message.event_id)]
    if message.key:  # a test event is about no object
        headers.append(("bucketwire-key", message.key))
    if message.cloudevent:
        headers += [(f"ce_{name}", value) for name, value in message.cloudevent.items()]
    return headers


def _outcome_of(error: KafkaError) -> Outcome:
    return _OUTCOMES.get(error.code()) or Retry(f"Kafka error {error.name()}")


def _reason(cause: KafkaError | None) -> str:
    """Why there is no connection. librdkafka's own text is not passed on: it has addresses in it."""
    if cause is None:
        return "no connection to any broker"
    if cause.code() == KafkaError._RESOLVE:  # noqa: SLF001
        return "host name not found"
    for part, reason in _CAUSES:
        if part in cause.str():
            return reason
    if cause.code() == KafkaError._AUTHENTICATION:  # noqa: SLF001
        return "the broker refuses the credentials"
    return "no connection to any broker"
