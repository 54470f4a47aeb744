"""Messages to a Kafka topic, through one producer of librdkafka for each cluster, shared by all topics on it.

    publish --> produce all --> librdkafka --> brokers
       ^                            |
       +---- outcome of each -------+      a thread of the producer collects the answers

An acknowledged message is `Delivered`; one too large for the topic is `Rejected`; everything else is
`Retry`, also what the owner must mend: a missing topic, wrong credentials, a certificate. When no broker can
be reached, all messages under way get the cause at once. With `kafka-ack-level=none` a message that was sent
is `Delivered`.
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from confluent_kafka import KafkaException

from bucketwire.errors import ConfigError
from bucketwire.event.message import Message
from bucketwire.event.topic import Topic
from bucketwire.publish.base import Outcome, Retry, no_answer
from bucketwire.publish.connections import Connections
from bucketwire.publish.kafka_failure import TOO_LARGE
from bucketwire.publish.kafka_guard import BrokersGuard
from bucketwire.publish.kafka_producer import Batch, KafkaClient
from bucketwire.publish.kafka_settings import Cluster, cluster_from_topic, kafka_topic_name
from bucketwire.publish.pem_files import UNUSABLE, UnusableFile


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
        unanswered = no_answer(deadline_seconds)
        if not messages or deadline_seconds <= 0:
            return [unanswered] * len(messages)
        if self._guard and (refusal := self._guard.refusal(deadline_seconds)):
            return [refusal] * len(messages)
        outcomes = self._send(self._cluster, messages, until, unanswered)
        # a broker refuses the batch that is too large, and with it messages that are not
        refused = [place for place, outcome in enumerate(outcomes) if outcome is TOO_LARGE]
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
        batch = Batch(len(messages))
        open_client = partial(KafkaClient, cluster, private_allowed=self._connections.private_allowed)
        try:
            with self._connections.shared(cluster, open_client) as client:
                client.send(self._name, messages, batch, until)
        except (KafkaException, UnusableFile):  # of making the producer: the former's text may name files
            batch.give_up(Retry(UNUSABLE))
        missing = batch.dead or unanswered
        return [outcome or missing for outcome in batch.outcomes]


def _guard(topic: Topic, cluster: Cluster) -> BrokersGuard:
    if topic.attributes.get("oauth-token-endpoint"):  # librdkafka calls it, and no one can look where
        raise ConfigError(
            f"oauth-token-endpoint of topic {topic.name} is refused where private endpoints are forbidden"
        )
    return BrokersGuard(cluster.hosts())
