"""A producer of librdkafka for each cluster, with a thread that collects its answers, shared by many calls.

    call --> client --> producer --> brokers
      ^                    |
      +----- answers ------+      told to the batch of the call by the producer's thread

A call whose messages are unanswered at the deadline leaves its producer to the calls that still use it; the
last of them throws away what is left in it, and returns when that is done. So nothing is sent after that,
except what was on the wire already. A producer that had worked before is then replaced, with its connections;
one that never did goes on connecting, so that a deadline too short to connect in is met the next time.

What is left in one producer must not be sent behind what a new one sends: so the next call for the same Kafka
topic waits until it is thrown away.
"""

import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from threading import Event, Lock, Thread

from confluent_kafka import KafkaError, KafkaException, Producer

from bucketwire.event.message import Message
from bucketwire.log import get_logger
from bucketwire.publish.base import Delivered, Outcome, Retry
from bucketwire.publish.headers import CONTENT_TYPE, EVENT_ID, KEY
from bucketwire.publish.kafka_failure import connection_reason, outcome_of
from bucketwire.publish.kafka_scout import ListenersGuard
from bucketwire.publish.kafka_settings import Cluster

CE_PREFIX = "ce_"
"""What stands before the attributes of a CloudEvent."""
TURN_SECONDS = 0.5
"""How long a producer's thread waits for answers before it looks whether it is still wanted."""

_ROOM_SECONDS = 0.01
_HASTE_SECONDS = 0.02
_CLEAR_SECONDS = 0.2
"""How long a call may wait, behind its deadline, until its messages are thrown away. It takes milliseconds;
but a thread of librdkafka that looks up a name does nothing else. It throws them away before it sends."""
_DELIVERED = Delivered()
_THROWN_AWAY = (KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT)  # noqa: SLF001 so librdkafka names them


class Batch:
    """The outcomes of one call. The producer's thread writes them, and the caller what is not even sent.

    Each of the two counts for itself and then looks at the other's count, so neither needs a lock.
    """

    __slots__ = ("_answers", "_ended", "_expected", "_thrown_away", "_withheld", "dead", "outcomes")

    def __init__(self, size: int) -> None:
        self.outcomes: list[Outcome | None] = [None] * size
        self.dead: Retry | None = None
        """Why no answer is expected any more, once none is."""
        self._answers = 0
        self._expected = size
        self._withheld = 0
        self._thrown_away = False
        self._ended = Event()

    @property
    def answered(self) -> bool:
        """Whether every message has its outcome."""
        return self._answers == self._expected and not self._thrown_away

    @property
    def cleared(self) -> bool:
        """Whether the producer has none of the messages any more."""
        return self._answers == self._expected - self._withheld

    def answer(self, place: int, error: KafkaError | None, _: object) -> None:
        """What became of one message; for the producer's thread alone. One thrown away has no outcome."""
        if error is not None and error.code() in _THROWN_AWAY:
            self._thrown_away = True
        else:
            self.outcomes[place] = _DELIVERED if error is None else outcome_of(error)
        self._answers += 1
        if self.cleared:
            self._ended.set()

    def refuse(self, place: int, error: KafkaError) -> None:
        """The message cannot be sent; for the caller alone."""
        self.outcomes[place] = outcome_of(error)
        self._expected -= 1
        if self.cleared:
            self._ended.set()

    def withhold(self, count: int) -> None:
        """So many messages are not handed over any more, and get no answer; for the caller alone."""
        self._withheld = count

    def give_up(self, cause: Retry) -> None:
        """Wait no longer."""
        self.dead = cause
        self._ended.set()

    def wait(self, seconds: float) -> bool:
        """Block until all are answered or none will be, but no longer than that; whether it is so."""
        return self._ended.wait(seconds)

    def clear(self, seconds: float) -> None:
        """Block until the producer has none of the messages any more, also of a batch that was given up."""
        self._ended.clear()
        if not self.cleared:
            self._ended.wait(seconds)


class KafkaClient:
    """The producer for a cluster; a new one after it has failed. Threads may call at once."""

    def __init__(self, cluster: Cluster, *, private_allowed: bool = True) -> None:
        self._cluster = cluster
        self._listeners = None if private_allowed else ListenersGuard(cluster)
        self._lock = Lock()
        self._producer: _Producer | None = None
        self._behind: dict[str, _Producer] = {}
        """By Kafka topic, the producer in which a call has left messages, as others were still at work."""

    def send(self, name: str, messages: Sequence[Message], batch: Batch, until: float) -> None:
        """Produce the messages and wait for their answers.

        `KafkaException` or `UnusableFile` when there can be no producer.
        """
        if self._listeners and (refusal := self._listeners.refusal(until)):
            self.close()
            batch.give_up(refusal)
            return
        if not self._is_clear(name, until):
            return
        producer = self._joined(batch)
        try:
            producer.produce(name, messages, batch, until)
            producer.wait(name, batch, until)
        finally:
            producer.leave(batch)
            if not batch.cleared:
                self._behind[name] = producer

    def close(self) -> None:
        """Let the producer go, when the last call that uses it has ended."""
        with self._lock:
            if self._producer is not None:
                self._producer.retire()
            self._producer = None

    def _is_clear(self, name: str, until: float) -> bool:
        """Wait until a producer that failed has nothing for the Kafka topic any more; whether it is so."""
        producer = self._behind.get(name)
        if producer is None:
            return True
        if not producer.clear(until):
            return False
        with self._lock:
            if self._behind.get(name) is producer:
                del self._behind[name]
        return True

    def _joined(self, batch: Batch) -> "_Producer":
        with self._lock:
            if self._producer is None or not self._producer.join(batch):
                self._producer = _Producer(self._cluster, batch)
            return self._producer


class _Producer:
    """A producer of librdkafka, the thread that collects its answers, and the batches under way."""

    def __init__(self, cluster: Cluster, batch: Batch) -> None:
        self._failed = False
        """Whether new batches must go elsewhere."""
        self._batches = {batch}
        self._lock = Lock()
        self._unused = False
        self._answered = False
        """Whether answers have ever come."""
        self._lost = False
        """Whether the connection was lost after the last of them."""
        self._leftovers: list[Batch] = []
        """Those that were left unanswered."""
        self._clear = Event()
        """Set when it has failed and nothing is left in it."""
        self._cause: KafkaError | None = None
        configuration = {**cluster.configuration(), "error_cb": self._note_error, "log.queue": True}
        self._producer = Producer(configuration, logger=_Log())
        Thread(target=self._collect, name="kafka-answers", daemon=True).start()

    def join(self, batch: Batch) -> bool:
        """Let the batch be under way here; not if this producer has failed."""
        with self._lock:
            if self._failed:
                return False
            self._batches.add(batch)
            return True

    def leave(self, batch: Batch) -> None:
        """The batch is not waited for any more. When it was the last, return when nothing is left here."""
        with self._lock:
            self._batches.discard(batch)
            if not batch.answered:
                self._leftovers.append(batch)
                self._failed = self._failed or self._answered
            else:
                self._answered, self._lost = True, False
            leftovers = self._throw_away()
        until = time.monotonic() + _CLEAR_SECONDS
        for left in leftovers:  # without the lock, which the thread that tells them may want
            left.clear(max(0.0, until - time.monotonic()))
        with self._lock:
            self._tidy()

    def clear(self, until: float) -> bool:
        """Whether nothing is left in it, by then. One that has not failed keeps the order, and is clear."""
        return not self._failed or self._clear.wait(max(0.0, until - time.monotonic()))

    def retire(self) -> None:
        """Take no new batches."""
        with self._lock:
            self._failed = True
            self._tidy()

    def _throw_away(self) -> list[Batch]:
        """When no batch is under way, throw away what was left: the batches that will hear of it.

        The library has turned its `blocking` round: by default it does not wait until that is done, and if it
        did, no thread of Python would run meanwhile.
        """
        if self._batches or not self._leftovers:
            return []
        self._producer.purge()
        leftovers, self._leftovers = self._leftovers, []
        return leftovers

    def _tidy(self) -> None:
        """Once it has failed, end when no batch is under way."""
        if self._failed and not self._batches:
            self._unused = True
            self._clear.set()

    def produce(self, name: str, messages: Sequence[Message], batch: Batch, until: float) -> None:
        """Hand over the messages, as fast as there is room for them."""
        produce, answer = self._producer.produce, batch.answer
        for place, message in enumerate(messages):
            while True:
                try:
                    produce(
                        name,
                        message.body,
                        message.partition_key,
                        on_delivery=partial(answer, place),
                        timestamp=message.committed_at_ns // 1_000_000,
                        headers=_headers(message),
                    )
                except BufferError:
                    if batch.wait(_ROOM_SECONDS) or time.monotonic() >= until:
                        batch.withhold(len(messages) - place)
                        return
                    continue
                except KafkaException as refused:
                    batch.refuse(place, refused.args[0])
                break

    def wait(self, name: str, batch: Batch, until: float) -> None:
        """Block until the batch has ended or the time has come.

        librdkafka cannot send before it has a producer id. It asks for one twice a second, and whenever it
        hears about a topic: so ask about the topic as long as the producer does not work.
        """
        while (remaining := until - time.monotonic()) > 0 and not batch.wait(min(remaining, _HASTE_SECONDS)):
            if self._lost or not self._answered:
                with suppress(KafkaException):  # no answer in this short time
                    self._producer.list_topics(name, timeout=min(remaining, _HASTE_SECONDS))

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
            self._give_up(Retry(connection_reason(self._cause)))

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


def _headers(message: Message) -> dict[str, str | bytes | None]:
    headers: dict[str, str | bytes | None] = {
        CONTENT_TYPE: message.content_type,
        EVENT_ID: message.event_id,
    }
    if message.key:  # a test event is about no object
        headers[KEY] = message.key
    if message.cloudevent:
        headers |= {CE_PREFIX + name: value for name, value in message.cloudevent.items()}
    return headers
