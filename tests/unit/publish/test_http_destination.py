"""How a topic's endpoint is read, and that its password stays inside. No request is sent."""

from urllib.parse import unquote

import pytest
from hypothesis import given, strategies

from bucketwire.errors import ConfigError
from bucketwire.publish import open_publisher
from bucketwire.publish.connections import Connections
from bucketwire.publish.http import HttpPublisher
from bucketwire.publish.http_request import destination_from_topic, header_value
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
    assert destination_from_topic(topic(endpoint)).url == url


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
    assert destination_from_topic(topic("https://host/", **{"verify-ssl": value})).peer.verifies is verifies


SECRET = "whsec_" + "c2VjcmV0" * 4


def test_no_repr_shows_the_password_or_the_secret() -> None:
    publisher = HttpPublisher(topic("http://user:hunter2@host/", **{"signing-secret": SECRET}), Connections())
    shown = repr(publisher) + repr(publisher._destination)
    for secret in ("hunter2", SECRET, "c2VjcmV0", "secretsecret", "dXNlcjpodW50ZXIy"):
        assert secret not in shown


@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        ("signing-secret", "hunter2"),
        ("signing-secret", ""),
    ],
)
def test_an_attribute_that_can_never_work_is_named(attribute: str, value: str) -> None:
    with pytest.raises(ConfigError) as raised:
        open_publisher(topic("https://host/", **{attribute: value}), Connections())
    assert str(raised.value).startswith(f"{attribute} of topic videos ")
    assert "hunter2" not in str(raised.value)
    assert raised.value.__context__ is None


def test_authorities_have_no_effect_without_tls() -> None:
    trusting = destination_from_topic(topic("http://host/", **{"ca-location": "/no/such/file.pem"}))
    assert trusting == destination_from_topic(topic("http://host/"))


@pytest.mark.parametrize(
    ("one", "other", "together"),
    [
        ("https://host/a", "https://HOST:443/b?c", True),
        ("https://user:old@host/", "https://user:new@host/", True),
        ("https://host/", "http://host/", False),
        ("https://host/", "https://host:444/", False),
        ("https://host/", "https://guest/", False),
        ("https://host/", "https://user@host/", False),
    ],
)
def test_topics_share_connections_to_the_same_peer(one: str, other: str, *, together: bool) -> None:
    peers = {destination_from_topic(topic(endpoint)).peer for endpoint in (one, other)}
    assert len(peers) == (1 if together else 2)


@pytest.mark.parametrize("attribute", ["verify-ssl", "ca-location"])
def test_topics_that_trust_differently_share_nothing(attribute: str) -> None:
    value = {"verify-ssl": "false", "ca-location": __file__}[attribute]
    trusting = destination_from_topic(topic("https://host/", **{attribute: value}))
    assert trusting.peer != destination_from_topic(topic("https://host/")).peer


@pytest.mark.parametrize(
    ("text", "encoded"),
    [
        ("photos/2026/a_b-c.d~e.jpg", "photos/2026/a_b-c.d~e.jpg"),
        ("!#$&'()*+,:;=?@[]^`{|}<>\\", "!#$&'()*+,:;=?@[]^`{|}<>\\"),
        ('a b"c%d', "a%20b%22c%25d"),
        ("Euro € 😀", "Euro%20%E2%82%AC%20%F0%9F%98%80"),
        ("a\r\nX-Evil: 1\0\x7f", "a%0D%0AX-Evil:%201%00%7F"),
        ("", ""),
    ],
)
def test_header_values_are_encoded_as_cloudevents_says(text: str, encoded: str) -> None:
    assert header_value(text) == encoded


@given(strategies.text())
def test_any_header_value_is_printable_and_can_be_read_back(text: str) -> None:
    value = header_value(text)
    assert value.isascii()
    assert value.isprintable()
    assert " " not in value
    assert unquote(value) == text
