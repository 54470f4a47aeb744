"""Publishers: one module a destination, chosen by the scheme of the topic's endpoint."""

from bucketwire.errors import ConfigError
from bucketwire.event.topic import Topic
from bucketwire.publish.base import Publisher

SCHEMES = ("http", "https")


def open_publisher(topic: Topic) -> Publisher:
    """The publisher for the topic's endpoint; `ConfigError` when no module takes its scheme."""
    match topic.endpoint.partition("://")[0].lower():
        case "http" | "https":
            from bucketwire.publish.http import HttpPublisher

            return HttpPublisher(topic)
        case _:  # the endpoint is not shown: it may hold a password
            raise ConfigError(
                f"no publisher for the push-endpoint of topic {topic.name}: use one of {', '.join(SCHEMES)}"
            )
