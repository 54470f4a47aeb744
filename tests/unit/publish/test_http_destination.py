"""How a topic's endpoint is read, and that its password stays inside. No request is sent."""

import pytest

from bucketwire.errors import ConfigError
from bucketwire.publish import open_publisher
from bucketwire.publish.connections import Connections
from bucketwire.publish.http import HttpPublisher, _destination_from_topic
from factories import topic


@pytest.mark.parametrize(
    ("endpoint", "url"),
    [
        ("http://example.com", "http://example.com/"),
        ("HTTPS://Example.com:8443/a/b?c=d#e", "https://example.com:8443/a/b?c=d"),
        ("http://user:word@[::1]:80/x", "http://[::1]:80/x"),
        ("http://bücher.example/ü?ö=%20", "http://xn--bcher-kva.example/%C3%BC?%C3%B6=%20"),
        ("http://example.com/a b", "http://example.com/a%20b"),
    ],
)
def test_the_url_is_made_plain(endpoint: str, url: str) -> None:
    assert _destination_from_topic(topic(endpoint)).url == url


@pytest.mark.parametrize(
    "endpoint",
    [
        "http://", "http:///path", "http://user:hunter2@", "http://user:hunter2@host:port/",
        "http://user:hunter2@host:99999/", "http://user:hunter2@[::1/", "http://user:hunter2@a℀b/",
        "ftp://user:hunter2@host/", "hunter2", "", "hunter2@host",
    ],
)  # fmt: skip
def test_an_unusable_endpoint_is_an_error_that_does_not_show_it(endpoint: str) -> None:
    with pytest.raises(ConfigError) as raised:
        open_publisher(topic(endpoint, name="videos"), Connections())
    assert "videos" in str(raised.value)
    assert "hunter2" not in str(raised.value)
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__ or raised.value.__context__ is None


@pytest.mark.parametrize(
    ("value", "verifies"), [("true", True), ("false", False), ("False", False), ("", True)]
)
def test_only_false_switches_verification_off(value: str, *, verifies: bool) -> None:
    assert _destination_from_topic(topic("https://host/", **{"verify-ssl": value})).verifies is verifies


def test_no_repr_shows_the_password() -> None:
    publisher = HttpPublisher(topic("http://user:hunter2@host/"), Connections())
    assert "hunter2" not in repr(publisher) + repr(publisher._destination)
    publisher.close()
