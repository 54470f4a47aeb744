"""Libraries of destinations are extras: what is not installed is refused by name, and the rest works."""

import sys

import pytest

from bucketwire.errors import ConfigError
from bucketwire.publish import open_publisher, publisher_kind
from bucketwire.publish.connections import Connections
from factories import topic

EXTRAS = [
    ("amqp", "amqp", "pika"),
    ("amqps", "amqp", "pika"),
    ("kafka", "kafka", "confluent_kafka"),
    ("pubsub", "pubsub", "google.cloud"),
]


@pytest.mark.parametrize(("scheme", "extra", "library"), EXTRAS)
def test_a_missing_library_is_a_clear_error_and_http_works_without_it(
    scheme: str, extra: str, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in list(sys.modules):
        if name.startswith((f"bucketwire.publish.{extra}", library, "google.pubsub", "google.api_core")):
            monkeypatch.delitem(sys.modules, name)
    for name in (library, "google.pubsub_v1", "google.api_core"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ConfigError, match=f"the extra {extra}"):
        publisher_kind(scheme, "videos")
    open_publisher(topic("http://127.0.0.1:1/"), Connections()).close()


def test_a_topic_without_an_endpoint_has_no_publisher() -> None:
    with pytest.raises(ConfigError, match="topic videos has no push-endpoint"):
        open_publisher(topic("", name="videos"), Connections())
