"""Publishers: one module a destination, chosen by the scheme of the topic's endpoint."""

from collections.abc import Callable

from bucketwire.errors import ConfigError
from bucketwire.event.topic import Topic
from bucketwire.publish.base import Publisher
from bucketwire.publish.connections import Connections

SCHEMES = ("http", "https", "amqp", "amqps", "kafka", "pubsub")


def open_publisher(topic: Topic, connections: Connections) -> Publisher:
    """The publisher for the topic's endpoint; `ConfigError` when there can be none, here or at all."""
    return publisher_kind(topic.scheme, topic.name)(topic, connections)


def may_be_slow(topic: Topic) -> bool:
    """Whether the destination may do work of its own before it answers, as HTTP endpoints do.

    Brokers do not. Topics of one broker share connections, on which a long call would hold up the others.
    """
    return topic.scheme in {"http", "https"}


def publisher_kind(scheme: str, name: str) -> Callable[[Topic, Connections], Publisher]:
    """What publishes to such an endpoint; `ConfigError` when nothing does, or its library is missing."""
    try:
        match scheme:
            case "http" | "https":
                from bucketwire.publish.http import HttpPublisher

                return HttpPublisher
            case "amqp" | "amqps":
                from bucketwire.publish.amqp import AmqpPublisher

                return AmqpPublisher
            case "kafka":
                from bucketwire.publish.kafka import KafkaPublisher

                return KafkaPublisher
            case "pubsub":
                from bucketwire.publish.pubsub import PubsubPublisher

                return PubsubPublisher
    except ImportError as problem:
        extra = "amqp" if scheme == "amqps" else scheme
        raise ConfigError(
            f"{scheme}:// needs more than is installed: install Bucketwire with the extra {extra}"
        ) from problem
    if not scheme:
        raise ConfigError(f"topic {name} has no push-endpoint")
    # the endpoint is not shown: it may hold a password
    raise ConfigError(f"no publisher for the push-endpoint of topic {name}: use one of {', '.join(SCHEMES)}")
