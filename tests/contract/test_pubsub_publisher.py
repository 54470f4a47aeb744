"""What only the Pub/Sub publisher promises, against Google's emulator."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import google.auth
import grpc
import msgspec
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from grpc import StatusCode

from bucketwire import __version__
from bucketwire.event.message import Message
from bucketwire.event.topic import topic_named_by
from bucketwire.publish.base import Delivered, Rejected, Retry
from bucketwire.publish.connections import Connections
from bucketwire.publish.pubsub import IN_FLIGHT, MESSAGE_LIMIT_BYTES, MESSAGES_A_REQUEST, PubsubPublisher
from bucketwire.publish.pubsub_client import PubsubSettings
from contract.destinations.pubsub import PubsubDestination
from factories import message, topic
from services.certificates import Certificates, make_certificates
from services.http_endpoint import Mode
from services.proxy import Condition
from services.pubsub import PROJECT, PubsubGate, Refusal
from wire import until

LONG_SECONDS = 30.0


@pytest.fixture
def destination() -> Iterator[PubsubDestination]:
    opened = PubsubDestination()
    yield opened
    opened.close()


@pytest.fixture
def connections() -> Iterator[Connections]:
    opened = Connections()
    yield opened
    opened.close()


@pytest.fixture
def publisher(destination: PubsubDestination, connections: Connections) -> PubsubPublisher:
    return PubsubPublisher(destination.topic(), connections)


@pytest.fixture
def ordered(destination: PubsubDestination, connections: Connections) -> PubsubPublisher:
    return PubsubPublisher(destination.topic(ordering="key"), connections)


def batch(count: int) -> list[Message]:
    return [message(f"event-{number}", body=b"%d" % number) for number in range(count)]


def about(key: str, number: int) -> Message:
    return Message("arn", f"event-{number}", key, b"%d" % number)


def ids(request: Any) -> list[str]:
    return [each.attributes["bucketwire-event-id"] for each in request.messages]


def test_what_a_message_is_travels_beside_it(
    destination: PubsubDestination, publisher: PubsubPublisher
) -> None:
    sent = Message(
        "arn", "event-7", "a/ü 1.mp4", b"body", "text/plain", cloudevent={"id": "7", "type": "put"}
    )
    assert publisher.publish([sent], LONG_SECONDS) == [Delivered()]
    (received,) = destination.emulator.pull(destination.name)
    assert (received.data, received.ordering_key) == (b"body", "")
    assert dict(received.attributes) == {
        "bucketwire-event-id": "event-7",
        "bucketwire-key": "a/ü 1.mp4",
        "content-type": "text/plain",
        "ce-id": "7",
        "ce-type": "put",
    }


def test_a_request_says_who_sends_it_and_which_topic_it_is_for(
    destination: PubsubDestination, publisher: PubsubPublisher
) -> None:
    publisher.publish(batch(1), LONG_SECONDS)
    (metadata,) = destination.gate.metadata
    assert metadata["user-agent"].startswith(f"bucketwire/{__version__} ")
    assert destination.name in metadata["x-goog-request-params"]


def test_a_topic_that_an_arn_names_is_published_to(
    destination: PubsubDestination, connections: Connections
) -> None:
    named = topic_named_by(f"arn:gcp:pubsub::{PROJECT}:{destination.name}")
    assert named is not None
    assert PubsubPublisher(named, connections).publish(batch(3), LONG_SECONDS) == [Delivered()] * 3
    assert sorted(destination.received()) == [b"0", b"1", b"2"]


def test_a_topic_that_does_not_exist_is_the_owners_to_mend(
    destination: PubsubDestination, connections: Connections
) -> None:
    missing = PubsubPublisher(topic(f"pubsub://{PROJECT}/not-there"), connections)
    assert missing.publish(batch(100), LONG_SECONDS) == [Retry("the Pub/Sub topic does not exist")] * 100
    assert len(destination.gate.requests) == 1


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (StatusCode.PERMISSION_DENIED, "no permission to publish to the Pub/Sub topic"),
        (StatusCode.UNAUTHENTICATED, "Pub/Sub does not accept the credentials"),
        (StatusCode.RESOURCE_EXHAUSTED, "the quota of Pub/Sub is used up"),
        (StatusCode.UNAVAILABLE, "Pub/Sub is unavailable"),
    ],
)
def test_what_is_true_for_all_messages_is_not_asked_for_each(
    destination: PubsubDestination, publisher: PubsubPublisher, code: StatusCode, reason: str
) -> None:
    destination.gate.refuses = lambda _: Refusal(code)
    count = 2 * IN_FLIGHT * MESSAGES_A_REQUEST
    assert publisher.publish(batch(count), LONG_SECONDS) == [Retry(reason)] * count
    assert len(destination.gate.requests) <= IN_FLIGHT


@pytest.mark.parametrize("code", [StatusCode.INTERNAL, StatusCode.ABORTED, StatusCode.FAILED_PRECONDITION])
def test_what_befalls_one_request_is_of_no_consequence_for_the_others(
    destination: PubsubDestination, publisher: PubsubPublisher, code: StatusCode
) -> None:
    destination.gate.refuses = lambda request: Refusal(code) if "event-0" in ids(request) else None
    outcomes = publisher.publish(batch(3 * MESSAGES_A_REQUEST), LONG_SECONDS)
    assert outcomes[:MESSAGES_A_REQUEST] == [Retry(f"Pub/Sub answered {code.name}")] * MESSAGES_A_REQUEST
    assert outcomes[MESSAGES_A_REQUEST:] == [Delivered()] * 2 * MESSAGES_A_REQUEST


def status_details(code: int, *details: Any) -> tuple[tuple[str, bytes], ...]:
    packed = []
    for each in details:
        packed.append(AnyMessage())
        packed[-1].Pack(each)
    status = Status(code=code, message="refused by the gate", details=packed)
    return (("grpc-status-details-bin", status.SerializeToString()),)


@pytest.mark.parametrize(
    ("trailing_metadata", "after_seconds"),
    [
        (status_details(8, RetryInfo(retry_delay=Duration(seconds=7, nanos=500_000_000))), 7.5),
        (status_details(8, RetryInfo()), None),
        (status_details(8), None),
        (status_details(3, RetryInfo(retry_delay=Duration(seconds=7))), None),
        ((("grpc-status-details-bin", b"\xff\xff"),), None),
    ],
    ids=["a delay", "no delay", "no details", "another status", "garbage"],
)
def test_the_delay_that_pubsub_asks_for_is_honoured(
    destination: PubsubDestination,
    publisher: PubsubPublisher,
    trailing_metadata: tuple[tuple[str, bytes], ...],
    after_seconds: float | None,
) -> None:
    destination.gate.refuses = lambda _: Refusal(
        StatusCode.RESOURCE_EXHAUSTED, trailing_metadata=trailing_metadata
    )
    assert publisher.publish(batch(1), LONG_SECONDS) == [
        Retry("the quota of Pub/Sub is used up", after_seconds)
    ]


def invalid(*guilty: str) -> Any:
    """Refuse each request with one of these events in it."""
    return lambda request: Refusal(StatusCode.INVALID_ARGUMENT) if set(guilty) & set(ids(request)) else None


def test_one_invalid_message_is_rejected_alone(
    destination: PubsubDestination, publisher: PubsubPublisher
) -> None:
    destination.gate.refuses = invalid("event-77")
    outcomes = publisher.publish(batch(1000), LONG_SECONDS)
    assert outcomes.pop(77) == Rejected("Pub/Sub refuses the message as invalid")
    assert outcomes == [Delivered()] * 999
    assert len(destination.received()) == 999
    assert len(destination.gate.requests) < 30


def test_a_message_that_is_too_large_is_rejected_and_not_sent(
    destination: PubsubDestination, publisher: PubsubPublisher
) -> None:
    large = [message("large", body=b"x" * MESSAGE_LIMIT_BYTES), message("small")]
    largest = message("largest", body=b"x" * (MESSAGE_LIMIT_BYTES - 1000))
    outcomes = publisher.publish([*large, largest], LONG_SECONDS)
    assert outcomes == [Rejected("larger than the 10 MB that Pub/Sub takes"), Delivered(), Delivered()]
    assert sorted(len(body) for body in destination.received()) == [2, len(largest.body)]


@pytest.mark.parametrize(
    ("odd", "reason"),
    [
        ({"key": "\udcff"}, "an attribute is not valid Unicode"),
        ({"key": "ü" * 513}, "more or longer attributes than Pub/Sub takes"),
        ({"cloudevent": {"n" * 254: ""}}, "more or longer attributes than Pub/Sub takes"),
        ({"cloudevent": {f"n{n}": "" for n in range(98)}}, "more or longer attributes than Pub/Sub takes"),
    ],
    ids=["no unicode", "a long value", "a long name", "many"],
)
def test_attributes_that_pubsub_would_not_take_are_rejected_alone(
    publisher: PubsubPublisher, odd: dict[str, Any], reason: str
) -> None:
    messages = [msgspec.structs.replace(message(), **odd), message()]
    assert publisher.publish(messages, LONG_SECONDS) == [Rejected(reason), Delivered()]


def test_the_longest_key_is_taken(destination: PubsubDestination, ordered: PubsubPublisher) -> None:
    assert ordered.publish([about("ü" * 512, 1)], LONG_SECONDS) == [Delivered()]
    assert destination.received() == [b"1"]


def test_the_ordering_key_is_the_key_beside_the_body(
    destination: PubsubDestination, ordered: PubsubPublisher
) -> None:
    assert ordered.publish([about("a/ü 1.mp4", 1), about("", 2)], LONG_SECONDS) == [Delivered()] * 2
    found = [
        (each.ordering_key, dict(each.attributes)) for each in destination.emulator.pull(destination.name)
    ]
    assert sorted(key for key, _ in found) == ["", "a/ü 1.mp4"]
    assert all(beside.get("bucketwire-key", "") == key for key, beside in found)


def test_messages_about_one_key_stay_in_order(
    destination: PubsubDestination, ordered: PubsubPublisher
) -> None:
    messages = [about(f"key-{number % 3}", number) for number in range(3000)]
    assert ordered.publish(messages, LONG_SECONDS) == [Delivered()] * 3000
    for key in range(3):
        requests = [
            each for each in destination.gate.requests if each.messages[0].ordering_key == f"key-{key}"
        ]
        assert all(each.ordering_key == f"key-{key}" for request in requests for each in request.messages)
        arrived = [event for request in requests for event in ids(request)]
        assert arrived == [f"event-{number}" for number in range(key, 3000, 3)]


def test_what_follows_a_failed_message_about_the_same_key_is_not_sent(
    destination: PubsubDestination, ordered: PubsubPublisher
) -> None:
    destination.gate.refuses = lambda request: (
        Refusal(StatusCode.ABORTED) if "event-0" in ids(request) else None
    )
    messages = [about("a", number) for number in range(600)] + [about("b", 600)]
    outcomes = ordered.publish(messages, LONG_SECONDS)
    assert outcomes[:MESSAGES_A_REQUEST] == [Retry("Pub/Sub answered ABORTED")] * MESSAGES_A_REQUEST
    behind = Retry("an earlier message about the same key was not taken")
    assert outcomes[MESSAGES_A_REQUEST:600] == [behind] * (600 - MESSAGES_A_REQUEST)
    assert outcomes[600] == Delivered()
    assert destination.received() == [b"600"]


def test_what_follows_an_invalid_message_about_the_same_key_is_sent_in_order(
    destination: PubsubDestination, ordered: PubsubPublisher
) -> None:
    destination.gate.refuses = invalid("event-3", "event-401")
    outcomes = ordered.publish([about("a", number) for number in range(600)], LONG_SECONDS)
    assert [place for place, outcome in enumerate(outcomes) if outcome != Delivered()] == [3, 401]
    assert destination.received() == [b"%d" % number for number in range(600) if number not in {3, 401}]


def test_no_more_than_the_limit_is_in_flight(
    destination: PubsubDestination, ordered: PubsubPublisher
) -> None:
    destination.behave(Mode.HANG)
    ordered.publish([about(f"key-{number}", number) for number in range(10 * IN_FLIGHT)], 0.3)
    destination.behave(Mode.OK)
    assert ordered.publish([about("last", 1)], LONG_SECONDS) == [Delivered()]
    assert len(destination.gate.requests) <= IN_FLIGHT + 1


def test_many_topics_share_one_connection(destination: PubsubDestination, connections: Connections) -> None:
    names = [destination.name, *(destination.emulator.create_topic() for _ in range(9))]
    endpoints = [topic(f"pubsub://{PROJECT}/{names[number % 10]}") for number in range(1200)]
    publishers = [PubsubPublisher(each, connections) for each in endpoints]
    with ThreadPoolExecutor(16) as threads:
        outcomes = list(threads.map(lambda each: each.publish(batch(1), LONG_SECONDS), publishers))
    assert outcomes == [[Delivered()]] * 1200
    assert len(connections) == 1
    assert destination.proxy.connections == 1


def test_nobody_listening_is_told_at_once(destination: PubsubDestination, publisher: PubsubPublisher) -> None:
    destination.behave(Mode.DOWN)
    outcomes = publisher.publish(batch(20_000), LONG_SECONDS)
    assert outcomes == [Retry("connection refused")] * 20_000


def test_a_connection_lost_in_the_middle_of_a_batch_is_retried_over_a_new_one(
    destination: PubsubDestination, publisher: PubsubPublisher
) -> None:
    def cut(request: Any) -> None:
        if "event-0" in ids(request):
            destination.proxy.cut()

    destination.gate.refuses = cut
    outcomes = publisher.publish(batch(100), LONG_SECONDS)
    assert outcomes == [Retry("connection lost")] * 100
    destination.behave(Mode.OK)
    assert publisher.publish(batch(100), LONG_SECONDS) == [Delivered()] * 100


def test_a_channel_that_was_given_up_leaves_no_connection_behind(
    destination: PubsubDestination, publisher: PubsubPublisher
) -> None:
    for _ in range(5):
        publisher.publish(batch(1), LONG_SECONDS)
        destination.proxy.condition = Condition.HANGS
        assert publisher.publish(batch(1), 0.1) == [Retry("no answer within 0.1 s")]
        destination.proxy.condition = Condition.WORKS
    assert publisher.publish(batch(1), LONG_SECONDS) == [Delivered()]
    until(lambda: destination.proxy.open_connections == 1, LONG_SECONDS, lambda: "connections are left")


FORKING = """
import os, sys
from bucketwire.publish.base import Delivered
from bucketwire.publish.connections import Connections
from bucketwire.publish.pubsub import PubsubPublisher
from factories import message, topic

publisher = PubsubPublisher(topic(sys.argv[1]), Connections())
publish = lambda: publisher.publish([message()] * 10, 30) == [Delivered()] * 10
assert publish()
children = []
for _ in range(4):
    child = os.fork()
    if child == 0:
        os._exit(0 if publish() else 1)
    children.append(child)
    assert publish()
assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4
assert publish()
"""


def test_a_process_and_those_forked_from_it_all_publish(destination: PubsubDestination) -> None:
    tests = Path(__file__).parents[1]
    subprocess.run(
        [sys.executable, "-c", FORKING, destination.topic().endpoint],
        env={**os.environ, "PYTHONPATH": str(tests)},
        timeout=120,
        check=True,
    )
    assert len(destination.received()) == 100


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def service_account_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A service account's key, which signs its own tokens; its token server is not there."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    account = {
        "type": "service_account",
        "client_email": "bucketwire@tests.example",
        "private_key": key.decode(),
        "private_key_id": "1",
        "token_uri": "http://127.0.0.1:1/token",
        "project_id": PROJECT,
    }
    file = tmp_path / "account.json"
    file.write_text(json.dumps(account))
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
    return file


@pytest.fixture
def tls_gate(destination: PubsubDestination, certificates: Certificates) -> Iterator[PubsubGate]:
    pair = (certificates.server_key.read_bytes(), certificates.server_cert.read_bytes())
    with PubsubGate(destination.emulator.port, grpc.ssl_server_credentials([pair])) as gate:
        yield gate


@pytest.mark.usefixtures("service_account_file")
def test_an_untrusted_certificate_is_named_as_the_reason(
    destination: PubsubDestination, connections: Connections, tls_gate: PubsubGate
) -> None:
    settings = PubsubSettings(endpoint=f"127.0.0.1:{tls_gate.port}")
    publisher = PubsubPublisher(destination.topic(), connections, settings)
    outcomes = publisher.publish(batch(3), LONG_SECONDS)
    assert outcomes == [Retry("the certificate of Pub/Sub is not trusted")] * 3
    assert tls_gate.requests == []


TRUSTING = """
import sys
from bucketwire.publish.connections import Connections
from bucketwire.publish.pubsub import PubsubPublisher
from factories import message, topic

print(*PubsubPublisher(topic(sys.argv[1]), Connections()).publish([message()], 30))
"""


@pytest.fixture
def publish_trusting(
    destination: PubsubDestination,
    tls_gate: PubsubGate,
    certificates: Certificates,
    service_account_file: Path,
) -> Callable[..., str]:
    """Publishes in a process that trusts the gate's certificate: gRPC reads whom to trust but once."""

    def publish(**settings: str) -> str:
        environment = {
            **os.environ,
            "PYTHONPATH": str(Path(__file__).parents[1]),
            "PUBSUB_EMULATOR_HOST": "",
            "BUCKETWIRE_PUBSUB_ENDPOINT": f"127.0.0.1:{tls_gate.port}",
            "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": str(certificates.ca),
            "GOOGLE_APPLICATION_CREDENTIALS": str(service_account_file),
            **settings,
        }
        program = [sys.executable, "-c", TRUSTING, destination.topic().endpoint]
        ran = subprocess.run(
            program, env=environment, capture_output=True, text=True, timeout=120, check=True
        )
        return ran.stdout.strip()

    return publish


def test_the_service_account_of_the_environment_signs_the_requests(
    publish_trusting: Callable[..., str], tls_gate: PubsubGate
) -> None:
    assert publish_trusting() == "Delivered()"
    assert tls_gate.metadata[0]["authorization"].startswith("Bearer ")


def test_a_service_account_that_cannot_be_impersonated_is_named_as_the_reason(
    publish_trusting: Callable[..., str], tls_gate: PubsubGate
) -> None:
    outcome = publish_trusting(BUCKETWIRE_PUBSUB_SERVICE_ACCOUNT="events@tests.example")
    assert outcome == repr(Retry("no access token could be had with the Google credentials"))
    assert tls_gate.requests == []


def test_credentials_that_are_not_there_are_named_as_the_reason_until_they_are(
    connections: Connections, destination: PubsubDestination, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    publisher = PubsubPublisher(destination.topic(), connections, PubsubSettings(endpoint="127.0.0.1:1"))
    for file in (tmp_path / "missing.json", tmp_path):
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
        assert publisher.publish(batch(2), LONG_SECONDS) == [Retry("no Google credentials were found")] * 2


@pytest.mark.usefixtures("service_account_file")
def test_credentials_found_late_are_used(connections: Connections, destination: PubsubDestination) -> None:
    publisher = PubsubPublisher(destination.topic(), connections, PubsubSettings(endpoint="127.0.0.1:1"))
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/nothing/here.json")
        publisher.publish(batch(1), LONG_SECONDS)
    assert publisher.publish(batch(1), LONG_SECONDS) == [Retry("connection refused")]


def test_looking_for_credentials_ends_at_the_deadline(
    connections: Connections, destination: PubsubDestination, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = threading.Event()
    monkeypatch.setattr(google.auth, "default", lambda **_: found.wait(LONG_SECONDS))
    publisher = PubsubPublisher(destination.topic(), connections, PubsubSettings(endpoint="127.0.0.1:1"))
    assert publisher.publish(batch(2), 0.1) == [Retry("no answer within 0.1 s")] * 2
    found.set()
