"""The contract of a publisher: each test runs on every destination listed here."""

import threading
import time
from collections.abc import Iterator, Sequence

import pytest

import documented
from bucketwire.event.message import Message
from bucketwire.publish import open_publisher
from bucketwire.publish.base import Delivered, Publisher, Retry
from bucketwire.publish.connections import Connections
from contract.destinations.amqp import AmqpDestination
from contract.destinations.base import Destination
from contract.destinations.http import HttpDestination
from contract.destinations.kafka import KafkaDestination
from contract.destinations.pubsub import PubsubDestination
from factories import message
from services.http_endpoint import Mode

LONG_SECONDS = 30.0
SHORT_SECONDS = 0.3
SECRET = "whsec_" + 32 * "A"


DESTINATIONS: dict[str, type[Destination]] = {
    "http": HttpDestination,
    "amqp": AmqpDestination,
    "kafka": KafkaDestination,
    "pubsub": PubsubDestination,
}
FAILURES = [(name, mode) for name, kind in DESTINATIONS.items() for mode in kind.failures]


@pytest.fixture(params=DESTINATIONS)
def endpoint(request: pytest.FixtureRequest) -> Iterator[Destination]:
    opened = DESTINATIONS[request.param]()
    yield opened
    opened.close()


@pytest.fixture
def connections() -> Iterator[Connections]:
    opened = Connections()
    yield opened
    opened.close()


@pytest.fixture
def publisher(endpoint: Destination, connections: Connections) -> Iterator[Publisher]:
    opened = open_publisher(endpoint.topic(), connections)
    yield opened
    opened.close()


def batch(count: int) -> list[Message]:
    return [message(event_id=f"event-{number}", body=b'{"n": %d}' % number) for number in range(count)]


def bodies(messages: Sequence[Message]) -> set[bytes]:
    return {each.body for each in messages}


def test_every_message_arrives_as_it_is(endpoint: Destination, publisher: Publisher) -> None:
    messages = batch(300)
    assert publisher.publish(messages, LONG_SECONDS) == [Delivered()] * 300
    assert sorted(endpoint.received()) == sorted(each.body for each in messages)


@pytest.mark.parametrize(
    "body", [b"", b"\x00\xff\r\n\r\n", b"x" * 3_000_000], ids=["empty", "binary", "large"]
)
def test_a_body_is_not_touched(endpoint: Destination, publisher: Publisher, body: bytes) -> None:
    assert publisher.publish([message(body=body)], LONG_SECONDS) == [Delivered()]
    assert endpoint.received() == [body]


def test_what_arrives_is_what_the_asyncapi_document_says(
    endpoint: Destination, connections: Connections
) -> None:
    publisher = open_publisher(endpoint.topic(**{"signing-secret": SECRET}), connections)
    sent = documented.messages()
    seen: set[str] = set()
    for each in sent.values():
        assert publisher.publish([each], LONG_SECONDS) == [Delivered()]
    for name, headers, body in zip(sent, endpoint.beside(), endpoint.received(), strict=True):
        documented.assert_documented(endpoint.channel, name, headers, body)
        seen |= headers.keys()
    assert documented.names(endpoint.channel) - seen <= {"authorization"}  # where the URL has a user


def test_no_messages_give_no_outcomes(endpoint: Destination, publisher: Publisher) -> None:
    assert publisher.publish([], LONG_SECONDS) == []
    assert endpoint.received() == []


def test_publishing_twice_sends_twice(endpoint: Destination, publisher: Publisher) -> None:
    publisher.publish(batch(3), LONG_SECONDS)
    publisher.publish(batch(3), LONG_SECONDS)
    assert sorted(endpoint.received()) == sorted([each.body for each in batch(3)] * 2)


def test_a_slow_destination_is_waited_for(endpoint: Destination, publisher: Publisher) -> None:
    endpoint.behave(Mode.SLOW)
    assert publisher.publish(batch(100), LONG_SECONDS) == [Delivered()] * 100


@pytest.mark.parametrize(("endpoint", "mode"), FAILURES, indirect=["endpoint"])
def test_what_is_not_acknowledged_is_retried(endpoint: Destination, publisher: Publisher, mode: Mode) -> None:
    endpoint.behave(mode)
    outcomes = publisher.publish(batch(100), LONG_SECONDS)
    assert len(outcomes) == 100
    assert all(isinstance(outcome, Retry) and outcome.reason for outcome in outcomes)
    assert endpoint.received() == []


def test_what_is_unanswered_at_the_deadline_is_retried(endpoint: Destination, publisher: Publisher) -> None:
    endpoint.behave(Mode.HANG)
    started = time.monotonic()
    outcomes = publisher.publish(batch(100), SHORT_SECONDS)
    assert outcomes == [Retry(f"no answer within {SHORT_SECONDS} s")] * 100
    assert SHORT_SECONDS <= time.monotonic() - started < LONG_SECONDS


def test_with_no_time_at_all_everything_is_retried(publisher: Publisher) -> None:
    assert publisher.publish(batch(3), 0) == [Retry("no answer within 0 s")] * 3


def test_outcomes_stand_in_the_order_of_the_messages(endpoint: Destination, publisher: Publisher) -> None:
    endpoint.behave(Mode.HALF)
    messages = batch(200)
    outcomes = publisher.publish(messages, LONG_SECONDS)
    delivered = [each for each, outcome in zip(messages, outcomes, strict=True) if outcome == Delivered()]
    assert len(delivered) == 100
    assert bodies(delivered) == set(endpoint.received())


@pytest.mark.parametrize(
    ("endpoint", "mode"), [*FAILURES, *((name, Mode.HANG) for name in DESTINATIONS)], indirect=["endpoint"]
)
def test_a_destination_that_is_well_again_gets_everything(
    endpoint: Destination, publisher: Publisher, mode: Mode
) -> None:
    publisher.publish(batch(100), LONG_SECONDS)
    endpoint.behave(mode)
    publisher.publish(batch(100), SHORT_SECONDS)
    endpoint.behave(Mode.OK)
    again = [message(event_id=f"again-{n}", body=b'{"again": %d}' % n) for n in range(100)]
    assert publisher.publish(again, LONG_SECONDS) == [Delivered()] * 100
    assert bodies(again) <= set(endpoint.received())


def test_many_publishers_work_at_once_in_one_process(endpoint: Destination, connections: Connections) -> None:
    outcomes = []

    def deliver() -> None:
        publisher = open_publisher(endpoint.topic(), connections)
        outcomes.extend(publisher.publish(batch(50), LONG_SECONDS))
        publisher.close()

    threads = [threading.Thread(target=deliver) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes == [Delivered()] * 400
    assert len(endpoint.received()) == 400


def test_closing_twice_is_harmless(endpoint: Destination, connections: Connections) -> None:
    publisher = open_publisher(endpoint.topic(), connections)
    publisher.publish(batch(3), LONG_SECONDS)
    publisher.close()
    publisher.close()
    assert len(endpoint.received()) == 3
