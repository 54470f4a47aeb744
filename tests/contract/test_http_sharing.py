"""How HTTP topics share connections, against a real server: across topics, threads and forks."""

import json
import ssl
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bucketwire.publish.base import Delivered, Retry
from bucketwire.publish.connections import Connections
from bucketwire.publish.http import HttpPublisher
from bucketwire.publish.http_client import IN_FLIGHT
from factories import message, topic
from services.certificates import Certificates, make_certificates
from services.http_endpoint import HttpEndpoint, Mode

LONG_SECONDS = 30.0


@pytest.fixture
def endpoint() -> Iterator[HttpEndpoint]:
    with HttpEndpoint() as opened:
        yield opened


@pytest.fixture
def connections() -> Iterator[Connections]:
    opened = Connections(idle_seconds=0)
    yield opened
    opened.close()


def test_a_hundred_topics_on_one_host_use_the_connections_of_one(
    endpoint: HttpEndpoint, connections: Connections
) -> None:
    for number in range(100):
        publisher = HttpPublisher(topic(f"{endpoint.url}/{number}"), connections)
        assert publisher.publish([message()] * 4, LONG_SECONDS) == [Delivered()] * 4
        publisher.close()
    assert len(connections) == 1
    assert endpoint.connections <= 4


def test_nothing_of_one_topic_is_sent_to_the_next(endpoint: HttpEndpoint, connections: Connections) -> None:
    secret = {"signing-secret": "whsec_" + "c2VjcmV0" * 4}
    with_user = endpoint.url.replace("//", "//user:{}@")
    first = HttpPublisher(topic(with_user.format("old") + "/a?b=c", **secret), connections)
    second = HttpPublisher(topic(with_user.format("new")), connections)
    first.publish([message(body=b"a long body")], LONG_SECONDS)
    second.publish([message(body=b"short")], LONG_SECONDS)
    before, after = endpoint.events()
    assert before.connection == after.connection
    assert (after.path, after.body) == ("/hook", b"short")
    assert before.headers.keys() - after.headers.keys() == {
        "webhook-id", "webhook-timestamp", "webhook-signature"
    }  # fmt: skip
    assert before.headers["authorization"] != after.headers["authorization"]


def test_topics_with_and_without_a_user_do_not_share(
    endpoint: HttpEndpoint, connections: Connections
) -> None:
    HttpPublisher(topic(endpoint.url.replace("//", "//user:word@")), connections).publish(
        [message()], LONG_SECONDS
    )
    HttpPublisher(topic(endpoint.url), connections).publish([message()], LONG_SECONDS)
    with_user, without = endpoint.events()
    assert with_user.connection != without.connection
    assert "authorization" not in without.headers


def test_threads_may_use_one_publisher_at_once(endpoint: HttpEndpoint, connections: Connections) -> None:
    publisher = HttpPublisher(topic(endpoint.url), connections)
    endpoint.mode = Mode.SLOW
    with ThreadPoolExecutor(4) as threads:
        outcomes = list(threads.map(lambda _: publisher.publish([message()] * 10, LONG_SECONDS), range(16)))
    assert outcomes == [[Delivered()] * 10] * 16
    assert len(connections) <= 4
    assert endpoint.connections <= 40


def test_idle_connections_are_closed_and_opened_again(
    endpoint: HttpEndpoint, connections: Connections
) -> None:
    publisher = HttpPublisher(topic(endpoint.url), connections)
    publisher.publish([message()], LONG_SECONDS)
    connections.close_idle()
    assert len(connections) == 0
    assert publisher.publish([message()], LONG_SECONDS) == [Delivered()]
    assert endpoint.connections == 2


def test_a_topic_that_hangs_takes_no_connection_from_another(
    endpoint: HttpEndpoint, connections: Connections
) -> None:
    publisher = HttpPublisher(topic(endpoint.url), connections)
    endpoint.mode = Mode.HANG
    hanging = threading.Thread(target=publisher.publish, args=([message()] * IN_FLIGHT, 1.0))
    hanging.start()
    assert publisher.publish([message()], 0.2) == [Retry("no answer within 0.2 s")]
    endpoint.mode = Mode.OK
    assert publisher.publish([message()], LONG_SECONDS) == [Delivered()]
    hanging.join()


def test_1200_topics_in_32_threads_use_few_connections_and_files(
    endpoint: HttpEndpoint, connections: Connections
) -> None:
    publishers = [HttpPublisher(topic(f"{endpoint.url}/{n}", name=f"t{n}"), connections) for n in range(1200)]
    before = open_files()
    with ThreadPoolExecutor(32) as threads:
        outcomes = list(threads.map(lambda each: each.publish([message()] * 5, LONG_SECONDS), publishers))
    assert outcomes == [[Delivered()] * 5] * 1200
    received = Counter(event.path for event in endpoint.events())
    assert received == {f"/hook/{number}": 5 for number in range(1200)}
    assert len(connections) <= 32
    assert endpoint.connections <= 32 * 5
    # both ends of each connection are in this process; a client has a few files of its own
    assert open_files() - before <= 2 * 32 * 5 + 4 * 32
    connections.close()
    assert len(connections) == 0


def open_files() -> int:
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.exists() else 0


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("tls"))


def test_a_forked_process_opens_its_own_connections_and_leaves_the_others_alone(
    certificates: Certificates,
) -> None:
    """Over TLS, where closing a connection says so on the wire."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.server_cert, certificates.server_key)
    with HttpEndpoint(tls=context) as endpoint:
        command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKING]
        done = subprocess.run(
            [*command, endpoint.url, str(certificates.ca)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout) == ["Delivered()"] * 2
        parent, child, grown_child, parent_again = (event.connection for event in endpoint.events())
        assert parent == parent_again
        assert child == grown_child
        assert child != parent


FORKING = """
import gc, json, os, sys
from bucketwire.event.message import Message
from bucketwire.event.topic import Topic
from bucketwire.publish.connections import Connections
from bucketwire.publish.http import HttpPublisher

url, ca = sys.argv[1:]
connections = Connections()
publisher = HttpPublisher(Topic("arn", "t", "o", {"push-endpoint": url, "ca-location": ca}), connections)

def publish():
    return [repr(each) for each in publisher.publish([Message("arn", "event-1", "k", b"{}")], 20)]

outcomes = publish()
child = os.fork()
if child == 0:
    outcomes = publish() + publish()
    connections.close()
    gc.collect()
    os._exit(0 if outcomes == ["Delivered()"] * 2 else 1)
assert os.waitpid(child, 0)[1] == 0
print(json.dumps(outcomes + publish()))
"""
