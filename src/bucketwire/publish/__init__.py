"""Publishers: one module a destination, chosen by the scheme of the topic's endpoint."""

from urllib.parse import urlsplit

from bucketwire.errors import ConfigError
from bucketwire.event.topic import Topic
from bucketwire.publish.base import Publisher

SCHEMES = ("http", "https")


def open_publisher(topic: Topic) -> Publisher:
    """The publisher for the topic's endpoint; `ConfigError` when no module takes its scheme."""
    match urlsplit(topic.endpoint).scheme:
        case "http" | "https":
            from bucketwire.publish.http import HttpPublisher

            return HttpPublisher(topic)
        case scheme:
            raise ConfigError(
                f"no publisher for {scheme or 'an empty'} endpoint: use one of {', '.join(SCHEMES)}"
            )
