"""What only the Kafka publisher promises, against a real broker; the basic cases on a mock cluster too."""

import os
import socket
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import msgspec
import pytest
from cloudevents.core.bindings.kafka import KafkaMessage, from_kafka_event
from confluent_kafka import Message as Received

from bucketwire.errors import ConfigError
from bucketwire.publish import kafka_producer, kafka_scout
from bucketwire.publish.base import Delivered, Outcome, Rejected, Retry
from bucketwire.publish.connections import Connections
from bucketwire.publish.kafka import KafkaPublisher
from bucketwire.publish.kafka_producer import KafkaClient
from bucketwire.publish.kafka_settings import LARGEST_MESSAGE_BYTES, QUEUE_KILOBYTES
from factories import message, topic
from golden.consumers import MODES, assert_is_the_event, cloudevent
from services.kafka import PASSWORD, USER, KafkaServer, kafka_server, read_topic
from services.kafka_liar import KafkaLiar
from services.kafka_mock import MockCluster
from services.proxy import Condition, Proxy
from services.token_endpoint import CLIENT, SECRET, TokenEndpoint

LONG_SECONDS = 30.0
LOGIN = {"user-name": USER, "password": PASSWORD}


@pytest.fixture
def server() -> Iterator[KafkaServer]:
    opened = kafka_server()
    yield opened
    opened.proxy.condition = Condition.WORKS


@pytest.fixture(params=["mock cluster", "broker"])
def cluster(request: pytest.FixtureRequest) -> Iterator[tuple[int, str, int]]:
    """A port to publish to, the name of a fresh topic there, and how many partitions it has."""
    if request.param == "broker":
        real = kafka_server()
        yield real.ports["DIRECT"], real.create_topic(partitions=4), 4
        return
    with MockCluster() as mock:
        yield mock.port, f"topic-{uuid.uuid4().hex}", 4


@pytest.fixture
def connections() -> Iterator[Connections]:
    opened = Connections()
    yield opened
    opened.close()


def read(port: int, name: str, count: int) -> list[Received]:
    """What the topic holds when it holds so many, of each partition in order."""
    until = time.monotonic() + LONG_SECONDS
    while len(found := read_topic(port, name)) < count:
        assert time.monotonic() < until, f"{len(found)} of {count} messages came"
    return found


def publish(
    server: KafkaServer, name: str, listener: str = "DIRECT", count: int = 1, **attributes: str
) -> list[Outcome]:
    connections = Connections()
    named = {key.replace("_", "-"): value for key, value in attributes.items()}
    try:
        where = topic(f"kafka://127.0.0.1:{server.ports[listener]}", name, **named)
        sent = [message(f"event-{number}") for number in range(count)]
        return KafkaPublisher(where, connections).publish(sent, LONG_SECONDS)
    finally:
        connections.close()


def test_a_message_arrives_with_its_key_its_time_and_its_headers(
    cluster: tuple[int, str, int], connections: Connections
) -> None:
    port, name, _ = cluster
    sent = msgspec.structs.replace(
        message("event-7", body=b""),
        key="víd eo.mp4",
        partition_key=b"media/video.mp4",
        committed_at_ns=1_763_238_280_123_456_789,
        cloudevent={"id": "event-7", "specversion": "1.0"},
    )
    publisher = KafkaPublisher(topic(f"kafka://127.0.0.1:{port}", name), connections)
    assert publisher.publish([sent], LONG_SECONDS) == [Delivered()]
    (found,) = read(port, name, 1)
    assert (found.key(), found.value()) == (b"media/video.mp4", b"")
    assert found.timestamp()[1] == 1_763_238_280_123
    assert found.headers() == [
        ("content-type", b"application/json"),
        ("bucketwire-event-id", b"event-7"),
        ("bucketwire-key", "víd eo.mp4".encode()),
        ("ce_id", b"event-7"),
        ("ce_specversion", b"1.0"),
    ]


@pytest.mark.parametrize("mode", MODES)
def test_a_consumer_of_cloudevents_reads_what_arrives(
    cluster: tuple[int, str, int], connections: Connections, mode: str
) -> None:
    port, name, _ = cluster
    sent = cloudevent(mode)
    KafkaPublisher(topic(f"kafka://127.0.0.1:{port}", name), connections).publish([sent], LONG_SECONDS)
    (found,) = read(port, name, 1)
    read_as = KafkaMessage(dict(found.headers()), found.key(), found.value())
    assert_is_the_event(from_kafka_event(read_as), sent)


def test_messages_of_one_key_stay_in_order_in_one_partition(
    cluster: tuple[int, str, int], connections: Connections
) -> None:
    port, name, partitions = cluster
    keys = [b"key-%d" % number for number in range(20)]
    sent = [
        msgspec.structs.replace(message(body=b"%s %d" % (key, number)), partition_key=key)
        for number in range(25)
        for key in keys
    ]
    publisher = KafkaPublisher(topic(f"kafka://127.0.0.1:{port}", name), connections)
    assert publisher.publish(sent, LONG_SECONDS) == [Delivered()] * 500
    found = read(port, name, 500)
    for key in keys:
        mine = [each for each in found if each.key() == key]
        assert [each.value() for each in mine] == [b"%s %d" % (key, number) for number in range(25)]
        assert len({each.partition() for each in mine}) == 1
    assert len({each.partition() for each in found}) == partitions


def test_without_acknowledgements_what_was_sent_is_delivered(
    cluster: tuple[int, str, int], connections: Connections
) -> None:
    port, name, _ = cluster
    where = topic(f"kafka://127.0.0.1:{port}", name, **{"kafka-ack-level": "none"})
    assert KafkaPublisher(where, connections).publish([message()] * 50, LONG_SECONDS) == [Delivered()] * 50
    assert len(read(port, name, 50)) == 50


def test_a_missing_topic_is_retried_and_gets_its_messages_once_it_is_there(
    server: KafkaServer, connections: Connections
) -> None:
    name = f"topic-{uuid.uuid4().hex}"
    publisher = KafkaPublisher(topic(f"kafka://127.0.0.1:{server.ports['DIRECT']}", name), connections)
    for _ in range(2):
        outcomes = publisher.publish([message()] * 20, LONG_SECONDS)
        assert outcomes == [Retry("the Kafka topic does not exist")] * 20
    server.create_topic(name)
    until = time.monotonic() + LONG_SECONDS
    while publisher.publish([message()], LONG_SECONDS) != [Delivered()]:
        assert time.monotonic() < until
    assert len(server.received(name)) == 1


def test_a_missing_topic_does_not_disturb_the_others(server: KafkaServer, connections: Connections) -> None:
    url = f"kafka://127.0.0.1:{server.proxy.port}"
    good = KafkaPublisher(topic(url, server.create_topic()), connections)
    assert good.publish([message()], LONG_SECONDS) == [Delivered()]
    before = server.proxy.connections
    KafkaPublisher(topic(url, "missing"), connections).publish([message()], LONG_SECONDS)
    assert good.publish([message()], LONG_SECONDS) == [Delivered()]
    assert server.proxy.connections == before


def test_a_topic_that_may_not_be_written_is_retried(server: KafkaServer) -> None:
    name = server.create_topic()
    server.allow_only(name, "User:bob")
    refused = Retry("no permission to write to the Kafka topic")
    assert publish(server, name, "SASL", count=3, **LOGIN) == [refused] * 3


def test_one_message_that_is_too_large_is_rejected_and_the_others_arrive(
    server: KafkaServer, connections: Connections
) -> None:
    name = server.create_topic()
    sent = [message(body=b"x" * (2_000_000 if number == 5 else 100)) for number in range(20)]
    where = topic(f"kafka://127.0.0.1:{server.ports['DIRECT']}", name)
    outcomes = KafkaPublisher(where, connections).publish(sent, LONG_SECONDS)
    rejected = Rejected("the message is too large for the Kafka topic")
    assert outcomes == [rejected if number == 5 else Delivered() for number in range(20)]
    assert len(server.received(name)) == 19


def test_messages_that_are_too_large_only_together_are_delivered(server: KafkaServer) -> None:
    name = server.create_topic(max_message_bytes="1000")
    assert publish(server, name, count=200) == [Delivered()] * 200
    assert len(server.received(name)) == 200


def test_a_message_larger_than_any_is_not_even_sent(server: KafkaServer, connections: Connections) -> None:
    where = topic(f"kafka://127.0.0.1:{server.ports['DIRECT']}", server.create_topic())
    sent = message(body=b"x" * (LARGEST_MESSAGE_BYTES + 1))
    (outcome,) = KafkaPublisher(where, connections).publish([sent], LONG_SECONDS)
    assert isinstance(outcome, Rejected)


def test_more_than_the_memory_for_messages_goes_through(
    server: KafkaServer, connections: Connections
) -> None:
    size_bytes = 4_000_000
    count = 2 * QUEUE_KILOBYTES * 1024 // size_bytes
    name = server.create_topic(max_message_bytes="8000000", retention_bytes="1", segment_bytes="8000000")
    where = topic(f"kafka://127.0.0.1:{server.ports['DIRECT']}", name)
    sent = [message(body=b"x" * size_bytes)] * count
    assert KafkaPublisher(where, connections).publish(sent, 2 * LONG_SECONDS) == [Delivered()] * count


@pytest.mark.parametrize("listener", ["SASL", "SASLSSL"])
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_user_with_a_password_is_let_in(server: KafkaServer, listener: str, mechanism: str) -> None:
    name = server.create_topic()
    secure = {"use-ssl": "true", "ca-location": str(server.certificates.ca)} if listener == "SASLSSL" else {}
    login = {**LOGIN, "mechanism": mechanism, **secure}
    assert publish(server, name, listener, **login) == [Delivered()]
    wrong = publish(server, name, listener, **{**login, "password": "not it"})
    assert wrong == [Retry("the broker refuses the credentials")]


def test_user_and_password_may_stand_in_the_endpoint(server: KafkaServer, connections: Connections) -> None:
    url = f"kafka://{USER}:pass%3A%20100%25%2Fword@127.0.0.1:{server.ports['SASL']}"
    publisher = KafkaPublisher(topic(url, server.create_topic()), connections)
    assert publisher.publish([message()], LONG_SECONDS) == [Delivered()]


def test_a_token_of_the_oauth_endpoint_lets_in(server: KafkaServer) -> None:
    name = server.create_topic()
    with TokenEndpoint() as tokens:
        login = {"mechanism": "OAUTHBEARER", "oauth-token-endpoint": tokens.url, "user-name": CLIENT}
        assert publish(server, name, "SASL", **login, password=SECRET) == [Delivered()]
        wrong = publish(server, name, "SASL", **login, password="not it")
    assert wrong == [Retry("no token from oauth-token-endpoint")]


@pytest.mark.parametrize(
    ("attributes", "outcome"),
    [
        ({"ca-location": "ca"}, Delivered()),
        ({"ca-location": "other_ca"}, Retry("the certificate of the broker is not trusted")),
        ({}, Retry("the certificate of the broker is not trusted")),
        ({"verify-ssl": "false"}, Delivered()),
        ({"ca-location": "no such file"}, Retry("the certificate or key files cannot be used")),
    ],
    ids=["right", "stranger", "none", "unverified", "missing"],
)
def test_the_certificate_of_the_broker_is_checked(
    server: KafkaServer, attributes: dict[str, str], outcome: Outcome
) -> None:
    name = server.create_topic()
    found = {key: str(getattr(server.certificates, value, value)) for key, value in attributes.items()}
    assert publish(server, name, "SSL", **{"use-ssl": "true"}, **found) == [outcome]


def test_a_broker_may_ask_for_a_certificate(server: KafkaServer) -> None:
    name = server.create_topic()
    trust = {"use-ssl": "true", "ca-location": str(server.certificates.ca)}
    mine = {
        "client-certificate-location": str(server.certificates.client_cert),
        "client-key-location": str(server.certificates.client_key),
    }
    assert publish(server, name, "MTLS", **trust, **mine) == [Delivered()]
    refused = Retry("the broker refuses the client certificate")
    assert publish(server, name, "MTLS", **trust) == [refused]


def test_tls_to_a_listener_without_it_is_retried(server: KafkaServer) -> None:
    (found,) = publish(server, "any", "DIRECT", **{"use-ssl": "true"})
    # librdkafka does not always say where the broker has hung up
    assert found in {Retry("TLS handshake failed"), Retry("no connection to any broker")}


def test_a_dead_cluster_is_found_out_long_before_the_deadline(connections: Connections) -> None:
    where = topic("kafka://127.0.0.1:1", **{"kafka-brokers": "127.0.0.1:2"})
    publisher = KafkaPublisher(where, connections)
    for _ in range(2):
        started = time.monotonic()
        assert publisher.publish([message()] * 3, LONG_SECONDS) == [Retry("connection refused")] * 3
        assert time.monotonic() - started < LONG_SECONDS / 2


def test_one_dead_broker_of_two_does_no_harm(server: KafkaServer, connections: Connections) -> None:
    name = server.create_topic()
    where = topic("kafka://127.0.0.1:1", name, **{"kafka-brokers": f"127.0.0.1:{server.ports['DIRECT']}"})
    assert KafkaPublisher(where, connections).publish([message()], LONG_SECONDS) == [Delivered()]


def test_a_connection_cut_in_the_middle_loses_and_doubles_nothing(
    server: KafkaServer, connections: Connections
) -> None:
    name = server.create_topic()
    publisher = KafkaPublisher(topic(f"kafka://127.0.0.1:{server.proxy.port}", name), connections)
    assert publisher.publish([message("first")], LONG_SECONDS) == [Delivered()]
    for number in range(5):
        server.proxy.cut()
        sent = [message(f"event-{number}-{each}", body=b"%d %d" % (number, each)) for each in range(100)]
        assert publisher.publish(sent, LONG_SECONDS) == [Delivered()] * 100
    bodies = [each.value() for each in server.received(name)]
    assert len(bodies) == len(set(bodies)) == 501


def test_a_deadline_too_short_to_connect_in_is_met_the_next_time(
    server: KafkaServer, connections: Connections
) -> None:
    server.proxy.condition = Condition.SLOW
    where = topic(f"kafka://127.0.0.1:{server.proxy.port}", server.create_topic())
    publisher = KafkaPublisher(where, connections)
    first = publisher.publish([message()], 0.05)
    assert first == [Retry("no answer within 0.05 s")]
    found = [publisher.publish([message()], 0.05 + 0.05 * number) for number in range(20)]
    assert [Delivered()] in found


def test_nothing_is_sent_after_its_deadline(server: KafkaServer, connections: Connections) -> None:
    name = server.create_topic()
    publisher = KafkaPublisher(topic(f"kafka://127.0.0.1:{server.proxy.port}", name), connections)
    server.proxy.condition = Condition.HANGS
    assert publisher.publish([message("late", body=b"late")], 0.1) == [Retry("no answer within 0.1 s")]
    server.proxy.condition = Condition.WORKS
    assert publisher.publish([message("in time", body=b"in time")], LONG_SECONDS) == [Delivered()]
    assert [each.value() for each in server.received(name)] == [b"in time"]


class Producers:
    """Remembers the producers that are made."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made: list[Any] = []
        self._make = kafka_producer.Producer
        monkeypatch.setattr(kafka_producer, "Producer", self.make)

    def make(self, *given: Any, **more: Any) -> Any:
        self.made.append(self._make(*given, **more))
        return self.made[-1]


def test_a_producer_that_failed_has_nothing_left_to_send_when_the_call_has_returned(
    server: KafkaServer, connections: Connections, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_producer, "_CLEAR_SECONDS", LONG_SECONDS)  # on a slow day too
    producers = Producers(monkeypatch)
    where = topic(f"kafka://127.0.0.1:{server.proxy.port}", server.create_topic())
    publisher = KafkaPublisher(where, connections)
    for number in range(5):
        server.proxy.condition = Condition.WORKS
        assert publisher.publish([message()], LONG_SECONDS) == [Delivered()]
        server.proxy.condition = Condition.HANGS
        found = publisher.publish([message(body=b"x" * 900_000)] * 20, 0.2)
        assert found == [Retry("no answer within 0.2 s")] * 20
        assert len(producers.made) == number + 1
        assert len(producers.made[-1]) < 5, (
            "the last answer and lines of the log may be there, but no messages"
        )


def test_a_call_returns_soon_after_its_deadline_when_messages_wait_for_room(
    server: KafkaServer, connections: Connections
) -> None:
    name = server.create_topic(max_message_bytes="8000000", retention_bytes="1", segment_bytes="8000000")
    publisher = KafkaPublisher(topic(f"kafka://127.0.0.1:{server.proxy.port}", name), connections)
    assert publisher.publish([message()], LONG_SECONDS) == [Delivered()]
    server.proxy.condition = Condition.HANGS
    count = 2 * QUEUE_KILOBYTES * 1024 // 4_000_000
    started = time.monotonic()
    found = publisher.publish([message(body=b"x" * 4_000_000)] * count, 0.5)
    assert found == [Retry("no answer within 0.5 s")] * count
    assert time.monotonic() - started < 0.5 + LONG_SECONDS / 10


def wait_for_call(connections: Connections, publisher: KafkaPublisher) -> None:
    """Until a call of the publisher's is at work on the producer that is there."""
    until = time.monotonic() + LONG_SECONDS
    with connections.shared(publisher._cluster, partial(KafkaClient, publisher._cluster)) as client:
        assert client._producer is not None
        while not client._producer._batches:
            assert time.monotonic() < until
            time.sleep(0.005)


def test_what_another_call_keeps_from_being_thrown_away_is_not_overtaken(
    server: KafkaServer, connections: Connections
) -> None:
    names = [server.create_topic(), server.create_topic()]
    url = f"kafka://127.0.0.1:{server.proxy.port}"
    publisher, other = (KafkaPublisher(topic(url, name), connections) for name in names)
    assert [each.publish([message()], LONG_SECONDS) for each in (publisher, other)] == [[Delivered()]] * 2
    server.proxy.condition = Condition.HANGS
    before = server.proxy.connections
    with ThreadPoolExecutor(1) as threads:
        slow = threads.submit(other.publish, [message()], 5.0)
        wait_for_call(connections, other)
        assert publisher.publish([message()], 0.2) == [Retry("no answer within 0.2 s")]
        assert publisher.publish([message()], 0.2) == [Retry("no answer within 0.2 s")]
        assert not slow.done()
        assert server.proxy.connections == before, "a new producer may be faster than the old one"
        assert slow.result() == [Retry("no answer within 5 s")]
    server.proxy.condition = Condition.WORKS
    assert publisher.publish([message()], LONG_SECONDS) == [Delivered()]


def test_a_hundred_topics_of_one_broker_share_its_connections(
    server: KafkaServer, connections: Connections
) -> None:
    server.create_topics(names := [f"topic-{uuid.uuid4().hex}" for _ in range(100)])
    before = server.proxy.connections
    for name in names:
        publisher = KafkaPublisher(topic(f"kafka://127.0.0.1:{server.proxy.port}", name), connections)
        assert publisher.publish([message()], LONG_SECONDS) == [Delivered()]
        publisher.close()
    assert len(connections) == 1
    assert server.proxy.connections - before <= 3


def test_connections_that_are_closed_are_gone(server: KafkaServer, connections: Connections) -> None:
    where = topic(f"kafka://127.0.0.1:{server.proxy.port}", server.create_topic())
    KafkaPublisher(where, connections).publish([message()], LONG_SECONDS)
    connections.close()
    until = time.monotonic() + LONG_SECONDS
    while server.proxy.open_connections:
        assert time.monotonic() < until
        time.sleep(0.05)


def test_a_forked_process_publishes_on_its_own(server: KafkaServer, connections: Connections) -> None:
    name = server.create_topic()
    publisher = KafkaPublisher(topic(f"kafka://127.0.0.1:{server.ports['DIRECT']}", name), connections)
    assert publisher.publish([message()], LONG_SECONDS) == [Delivered()]
    child = os.fork()
    if child == 0:
        outcomes = publisher.publish([message()] * 10, LONG_SECONDS)
        connections.close()
        os._exit(0 if outcomes == [Delivered()] * 10 else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert publisher.publish([message()], LONG_SECONDS) == [Delivered()]
    assert len(server.received(name)) == 12


def test_kerberos_is_refused_where_the_library_has_none(connections: Connections) -> None:
    try:
        KafkaPublisher(topic("kafka://127.0.0.1", mechanism="GSSAPI"), connections)
    except ConfigError as refused:
        assert "GSSAPI" in str(refused)  # noqa: PT017 with Kerberos there is no error


class Names:
    """A name server that lies about some names, to us but not to librdkafka."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **lies: str) -> None:
        self.lies = {"127.1": "8.8.8.8", **lies}
        self._look_up = socket.getaddrinfo
        monkeypatch.setattr(socket, "getaddrinfo", self.getaddrinfo)

    def getaddrinfo(self, host: Any, *given: Any, **more: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        if (lie := self.lies.get(name)) is None:
            return self._look_up(host, *given, **more)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (lie, 0))]


PRIVATE = Retry("the endpoint is in a private network")
BOOTSTRAP = "127.1"
"""For librdkafka the same as 127.0.0.1, which is what the broker advertises; for us a public address."""


@pytest.fixture
def guarded() -> Iterator[Connections]:
    opened = Connections(private_allowed=False)
    yield opened
    opened.close()


def test_brokers_that_advertise_a_private_address_get_nothing(
    server: KafkaServer, guarded: Connections, monkeypatch: pytest.MonkeyPatch
) -> None:
    Names(monkeypatch)
    name = server.create_topic()
    before = server.proxy.connections
    with Proxy(server.ports["PROXIED"]) as bootstrap:  # the broker advertises the other proxy
        publisher = KafkaPublisher(topic(f"kafka://{BOOTSTRAP}:{bootstrap.port}", name), guarded)
        for _ in range(2):
            assert publisher.publish([message()] * 3, LONG_SECONDS) == [PRIVATE] * 3
        assert bootstrap.connections
    assert server.proxy.connections == before
    assert server.received(name) == []


@pytest.mark.parametrize("level", ["broker", "none"])
@pytest.mark.parametrize("node", [2, 1, -1, -5])
def test_no_number_of_a_broker_hides_its_private_address(
    guarded: Connections, monkeypatch: pytest.MonkeyPatch, node: int, level: str
) -> None:
    Names(monkeypatch)
    with KafkaLiar(lambda it: [(1, BOOTSTRAP, it.port), (node, "127.0.0.1", it.hidden.port)]) as liar:
        where = topic(f"kafka://{BOOTSTRAP}:{liar.port}", **{"kafka-ack-level": level})
        assert KafkaPublisher(where, guarded).publish([message()] * 3, LONG_SECONDS) == [PRIVATE] * 3
        assert liar.hidden.questions == []


class Scouts:
    """Counts the producers that only ask where the brokers listen."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self._make = kafka_scout.Producer
        monkeypatch.setattr(kafka_scout, "Producer", self.make)

    def make(self, *given: Any) -> Any:
        self.count += 1
        return self._make(*given)


@pytest.mark.parametrize(("advertised", "outcome"), [("8.8.4.4", Delivered()), ("10.0.0.1", PRIVATE)])
def test_topics_of_one_cluster_share_one_look_at_where_it_listens(
    guarded: Connections, monkeypatch: pytest.MonkeyPatch, advertised: str, outcome: Outcome
) -> None:
    Names(monkeypatch, **{"127.0.0.1": advertised})
    scouts = Scouts(monkeypatch)
    with MockCluster() as mock, ThreadPoolExecutor(16) as threads:
        where = [topic(f"kafka://{BOOTSTRAP}:{mock.port}", f"topic-{number}") for number in range(16)]
        publishers = [KafkaPublisher(each, guarded) for each in where]
        for _ in range(2):
            found = threads.map(lambda each: each.publish([message()], LONG_SECONDS), publishers)
            assert list(found) == [[outcome]] * 16
        guarded.close()
    assert scouts.count == 1


def test_brokers_that_could_not_be_asked_are_asked_again(
    guarded: Connections, monkeypatch: pytest.MonkeyPatch
) -> None:
    Names(monkeypatch, **{"127.0.0.1": "8.8.4.4"})
    with MockCluster() as mock, Proxy(mock.port) as bootstrap:
        publisher = KafkaPublisher(topic(f"kafka://{BOOTSTRAP}:{bootstrap.port}"), guarded)
        bootstrap.condition = Condition.DOWN
        assert publisher.publish([message()], LONG_SECONDS) == [Retry("connection refused")]
        bootstrap.condition = Condition.WORKS
        assert publisher.publish([message()], LONG_SECONDS) == [Delivered()]
        guarded.close()


def test_brokers_that_advertise_public_addresses_get_everything(
    server: KafkaServer, guarded: Connections, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = Names(monkeypatch, **{"127.0.0.1": "8.8.4.4"})
    where = topic(f"kafka://{BOOTSTRAP}:{server.ports['DIRECT']}", server.create_topic())
    publisher = KafkaPublisher(where, guarded)
    assert publisher.publish([message()] * 3, LONG_SECONDS) == [Delivered()] * 3
    names.lies["127.0.0.1"] = "10.0.0.1"
    assert publisher.publish([message()], LONG_SECONDS) == [Delivered()]
    monkeypatch.setattr(kafka_scout, "KEPT_SECONDS", 0)
    assert publisher.publish([message()], LONG_SECONDS) == [PRIVATE]


def test_a_dead_cluster_is_found_out_with_the_guard_too(
    guarded: Connections, monkeypatch: pytest.MonkeyPatch
) -> None:
    Names(monkeypatch)
    publisher = KafkaPublisher(topic(f"kafka://{BOOTSTRAP}:1"), guarded)
    started = time.monotonic()
    assert publisher.publish([message()] * 3, LONG_SECONDS) == [Retry("connection refused")] * 3
    assert time.monotonic() - started < LONG_SECONDS / 2
