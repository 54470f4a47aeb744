"""Brokers of Kafka in private networks. No producer is made, and no name server is asked."""

import socket
from threading import Event
from typing import Any

import pytest

from bucketwire.errors import ConfigError
from bucketwire.publish.base import Retry
from bucketwire.publish.connections import Connections
from bucketwire.publish.kafka import KafkaPublisher
from bucketwire.publish.kafka_guard import KEPT_SECONDS, BrokersGuard
from factories import message, topic

PRIVATE = Retry("the endpoint is in a private network")
LONG_SECONDS = 60.0


class Names:
    """A name server that counts what it is asked."""

    def __init__(self, **addresses: str) -> None:
        self.addresses = {name.encode(): address for name, address in addresses.items()}
        self.asked = 0

    def getaddrinfo(self, host: bytes, *_: object, **__: object) -> list[Any]:
        self.asked += 1
        if host not in self.addresses:
            raise socket.gaierror
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (self.addresses[host], 0))]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    names = Names(good="8.8.8.8", bad="10.0.0.1")
    monkeypatch.setattr(socket, "getaddrinfo", names.getaddrinfo)
    return names


@pytest.mark.parametrize(
    ("endpoint", "brokers"),
    [
        ("kafka://127.0.0.1:9092", ""),
        ("kafka://[::1]", ""),
        ("kafka://8.8.8.8", "10.0.0.1:9092"),
        ("kafka://8.8.8.8,127.0.0.1", ""),
        ("kafka://8.8.8.8", "[::ffff:127.0.0.1]:9092"),
    ],
)
def test_nothing_is_sent_when_any_broker_is_in_a_private_network(endpoint: str, brokers: str) -> None:
    publisher = KafkaPublisher(
        topic(endpoint, **{"kafka-brokers": brokers}), Connections(private_allowed=False)
    )
    assert publisher.publish([message()] * 3, LONG_SECONDS) == [PRIVATE] * 3


def test_a_token_endpoint_is_refused_by_name() -> None:
    login = {"mechanism": "OAUTHBEARER", "user-name": "id", "password": "s3cret"}
    where = topic("kafka://broker", **login, **{"oauth-token-endpoint": "https://s3cret.example/"})
    with pytest.raises(ConfigError, match=r"^oauth-token-endpoint of topic videos ") as refused:
        KafkaPublisher(where, Connections(private_allowed=False))
    assert "s3cret" not in str(refused.value)
    KafkaPublisher(where, Connections())


def test_a_host_that_cannot_be_told_is_refused() -> None:
    with pytest.raises(ConfigError, match="push-endpoint"):
        KafkaPublisher(topic("kafka://a b"), Connections(private_allowed=False))


def test_public_brokers_are_looked_up_once_in_a_while(names: Names) -> None:
    now = [0.0]
    guard = BrokersGuard(["good"], clock=lambda: now[0])
    assert [guard.refusal(LONG_SECONDS) for _ in range(3)] == [None] * 3
    assert names.asked == 1
    names.addresses[b"good"] = "192.168.0.1"
    now[0] = KEPT_SECONDS
    assert guard.refusal(LONG_SECONDS) == PRIVATE


def test_a_name_that_is_not_found_is_looked_up_again(names: Names) -> None:
    guard = BrokersGuard(["good", "new"])
    assert guard.refusal(LONG_SECONDS) == Retry("host name not found")
    names.addresses[b"new"] = "8.8.4.4"
    assert guard.refusal(LONG_SECONDS) is None


def test_a_slow_name_server_is_waited_for_no_longer_than_the_deadline(
    names: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = Event()
    slow: Any = lambda *given, **more: release.wait(LONG_SECONDS) and names.getaddrinfo(*given, **more)  # noqa: E731
    monkeypatch.setattr(socket, "getaddrinfo", slow)
    guard = BrokersGuard(["good"])
    late = Retry("the host names of the brokers were not found in time")
    assert [guard.refusal(0.01) for _ in range(3)] == [late] * 3
    release.set()
    assert guard.refusal(LONG_SECONDS) is None
    assert names.asked == 1
