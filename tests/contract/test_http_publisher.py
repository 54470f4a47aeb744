"""What only the HTTP publisher promises, against a real server on the loopback."""

import base64
import os
import resource
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import msgspec
import pytest
from cloudevents.core.bindings.http import HTTPMessage, from_http_event

from bucketwire import __version__
from bucketwire.publish.base import Delivered, Outcome, Rejected, Retry
from bucketwire.publish.connections import Connections
from bucketwire.publish.http import FAILURES_TO_GIVE_UP, HttpPublisher
from bucketwire.publish.http_client import IN_FLIGHT
from bucketwire.publish.http_outcome import RETRY_AFTER_LIMIT_SECONDS
from factories import message, topic
from services.http_endpoint import HttpEndpoint, Mode

LONG_SECONDS = 30.0


@pytest.fixture
def endpoint() -> Iterator[HttpEndpoint]:
    with HttpEndpoint() as opened:
        yield opened


def publish(
    url: str, count: int = 1, deadline_seconds: float = LONG_SECONDS, **attributes: str
) -> list[Outcome]:
    publisher = HttpPublisher(topic(url, **attributes), Connections())
    try:
        return publisher.publish([message(f"event-{n}") for n in range(count)], deadline_seconds)
    finally:
        publisher.close()


def test_a_request_says_what_it_carries_and_who_sends_it(endpoint: HttpEndpoint) -> None:
    sent = msgspec.structs.replace(message("event-7"), content_type="application/cloudevents+json")
    HttpPublisher(topic(endpoint.url + "/a/../b?c=%20d"), Connections()).publish([sent], LONG_SECONDS)
    (event,) = endpoint.events()
    assert (event.method, event.path) == ("POST", "/hook/a/../b?c=%20d")
    assert event.headers["content-type"] == "application/cloudevents+json"
    assert event.headers["bucketwire-event-id"] == "event-7"
    assert event.headers["user-agent"] == f"bucketwire/{__version__}"
    assert "authorization" not in event.headers
    assert "expect" not in event.headers


def test_userinfo_becomes_basic_authentication(endpoint: HttpEndpoint) -> None:
    assert publish(endpoint.url.replace("//", "//j%C3%B6rg:p%40ss%3Aword@")) == [Delivered()]
    (event,) = endpoint.events()
    scheme, credentials = event.headers["authorization"].split(" ")
    assert (scheme, base64.b64decode(credentials).decode()) == ("Basic", "jörg:p@ss:word")
    assert event.headers["host"] == f"127.0.0.1:{endpoint.port}"


def test_the_key_travels_beside_the_body(endpoint: HttpEndpoint) -> None:
    sent = msgspec.structs.replace(message(), key='a b/"ü"\r\n100%.txt')
    HttpPublisher(topic(endpoint.url), Connections()).publish([sent], LONG_SECONDS)
    (event,) = endpoint.events()
    assert event.headers["bucketwire-key"] == "a%20b/%22%C3%BC%22%0D%0A100%25.txt"


def test_a_message_about_no_object_has_no_key(endpoint: HttpEndpoint) -> None:
    sent = msgspec.structs.replace(message(), key="")
    HttpPublisher(topic(endpoint.url), Connections()).publish([sent], LONG_SECONDS)
    (event,) = endpoint.events()
    assert "bucketwire-key" not in event.headers


def test_cloudevents_attributes_travel_as_headers(endpoint: HttpEndpoint) -> None:
    attributes = {
        "specversion": "1.0",
        "id": "event-1",
        "source": "/media",
        "type": "t",
        "subject": "ü b.txt",
    }
    sent = msgspec.structs.replace(message(), cloudevent=attributes)
    HttpPublisher(topic(endpoint.url), Connections()).publish([sent], LONG_SECONDS)
    (received,) = endpoint.events()
    event = from_http_event(HTTPMessage(received.headers, received.body))
    assert event.get_attributes().items() >= {**attributes, "datacontenttype": "application/json"}.items()
    assert event.get_data() == {}
    assert received.headers["ce-subject"] == "%C3%BC%20b.txt"


def test_connections_are_kept_for_the_next_call(endpoint: HttpEndpoint) -> None:
    publisher = HttpPublisher(topic(endpoint.url), Connections())
    for _ in range(5):
        publisher.publish([message()] * 4, LONG_SECONDS)
    publisher.close()
    assert endpoint.attempts == 20
    assert endpoint.connections <= 4


def test_no_more_than_the_limit_is_in_flight(endpoint: HttpEndpoint) -> None:
    endpoint.mode = Mode.HANG
    publish(endpoint.url, count=200, deadline_seconds=0.3)
    assert endpoint.attempts <= IN_FLIGHT


def test_a_request_that_got_no_answer_does_not_keep_its_connection(endpoint: HttpEndpoint) -> None:
    publisher = HttpPublisher(topic(endpoint.url), Connections())
    endpoint.mode = Mode.HANG
    publisher.publish([message()], 0.2)
    endpoint.mode = Mode.OK
    assert publisher.publish([message()], LONG_SECONDS) == [Delivered()]
    assert endpoint.connections == 2


@pytest.mark.parametrize("status", [200, 201, 202, 204])
def test_success_of_any_kind_is_delivered(endpoint: HttpEndpoint, status: int) -> None:
    endpoint.mode, endpoint.status = Mode.REFUSE, status
    assert publish(endpoint.url) == [Delivered()]


@pytest.mark.parametrize("status", [304, 401, 404, 408, 429, 500, 503])
def test_any_other_status_is_retried(endpoint: HttpEndpoint, status: int) -> None:
    endpoint.mode, endpoint.status = Mode.REFUSE, status
    assert publish(endpoint.url) == [Retry(f"HTTP {status}")]


@pytest.mark.parametrize("status", [400, 409, 412, 415, 422])
def test_a_status_that_tells_of_the_message_says_little_of_the_endpoint(
    endpoint: HttpEndpoint, status: int
) -> None:
    endpoint.mode, endpoint.status = Mode.REFUSE, status
    assert publish(endpoint.url) == [Retry(f"HTTP {status}", of_message=True)]


def test_a_message_too_large_for_the_endpoint_is_rejected(endpoint: HttpEndpoint) -> None:
    endpoint.mode, endpoint.status = Mode.REFUSE, 413
    assert publish(endpoint.url) == [Rejected("HTTP 413: the message is too large for the endpoint")]


def test_a_redirect_is_not_followed(endpoint: HttpEndpoint) -> None:
    with HttpEndpoint() as elsewhere:
        endpoint.mode, endpoint.status = Mode.REFUSE, 307
        endpoint.answer_headers = {"Location": elsewhere.url}
        assert publish(endpoint.url) == [Retry("HTTP 307")]
        assert elsewhere.attempts == 0


def test_an_endpoint_that_is_gone_is_said_to_be(endpoint: HttpEndpoint) -> None:
    endpoint.mode, endpoint.status = Mode.REFUSE, 410
    assert publish(endpoint.url) == [Retry("410: the endpoint is gone for good")]


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_retry_after_in_seconds_is_honoured(endpoint: HttpEndpoint, status: int) -> None:
    endpoint.mode, endpoint.status = Mode.REFUSE, status
    endpoint.answer_headers = {"Retry-After": "7"}
    assert publish(endpoint.url) == [Retry(f"HTTP {status}", 7)]


@pytest.mark.parametrize("status", [307, 400, 404])
def test_retry_after_means_nothing_where_the_message_is_at_fault(endpoint: HttpEndpoint, status: int) -> None:
    endpoint.mode, endpoint.status = Mode.REFUSE, status
    endpoint.answer_headers = {"Retry-After": "7"}
    (outcome,) = publish(endpoint.url)
    assert isinstance(outcome, Retry)
    assert (outcome.reason, outcome.after_seconds) == (f"HTTP {status}", None)


def test_an_endpoint_that_asks_for_a_pause_gets_no_more_of_the_batch(endpoint: HttpEndpoint) -> None:
    endpoint.mode, endpoint.status = Mode.REFUSE, 429
    endpoint.answer_headers = {"Retry-After": "7"}
    assert publish(endpoint.url, count=500) == [Retry("HTTP 429", 7)] * 500
    assert endpoint.attempts <= IN_FLIGHT


def test_what_was_on_the_wire_when_a_pause_was_asked_for_keeps_its_own_outcome(
    endpoint: HttpEndpoint,
) -> None:
    endpoint.mode = Mode.HALF
    endpoint.answer_headers = {"Retry-After": "7"}
    outcomes = publish(endpoint.url, count=500)
    assert set(outcomes) == {Delivered(), Retry("HTTP 503", 7)}
    assert outcomes.count(Delivered()) == len(endpoint.events()) < 500


def test_a_pause_is_bounded(endpoint: HttpEndpoint) -> None:
    endpoint.mode = Mode.REFUSE
    endpoint.answer_headers = {"Retry-After": "99999999"}
    assert publish(endpoint.url) == [Retry("HTTP 503", RETRY_AFTER_LIMIT_SECONDS)]


def test_retry_after_as_a_date_is_honoured(endpoint: HttpEndpoint) -> None:
    endpoint.mode = Mode.REFUSE
    later = datetime.now(UTC) + timedelta(seconds=1000)
    endpoint.answer_headers = {"Retry-After": format_datetime(later, usegmt=True)}
    (outcome,) = publish(endpoint.url)
    assert isinstance(outcome, Retry)
    assert 900 < (outcome.after_seconds or 0) <= 1000


@pytest.mark.parametrize("value", ["soon", "-5", "0", "Thu, 01 Jan 1970 00:00:00 GMT"])
def test_a_retry_after_that_makes_no_sense_is_ignored(endpoint: HttpEndpoint, value: str) -> None:
    endpoint.mode = Mode.REFUSE
    endpoint.answer_headers = {"Retry-After": value}
    assert publish(endpoint.url) == [Retry("HTTP 503")]


def test_a_dead_endpoint_is_not_tried_for_every_message(endpoint: HttpEndpoint) -> None:
    endpoint.mode = Mode.CLOSE_EARLY
    outcomes = publish(endpoint.url, count=1000)
    assert outcomes == [Retry("connection closed without an answer")] * 1000
    assert endpoint.attempts <= IN_FLIGHT + FAILURES_TO_GIVE_UP


def test_nobody_listening_is_connection_refused(endpoint: HttpEndpoint) -> None:
    endpoint.mode = Mode.DOWN
    assert publish(endpoint.url, count=500) == [Retry("connection refused")] * 500


def test_an_endless_body_is_cut_and_the_status_counts(endpoint: HttpEndpoint) -> None:
    endpoint.mode = Mode.ENDLESS_BODY
    assert publish(endpoint.url) == [Delivered()]


def test_a_body_that_trickles_ends_at_the_deadline(endpoint: HttpEndpoint) -> None:
    endpoint.mode = Mode.TRICKLE
    assert publish(endpoint.url, deadline_seconds=0.2) == [Retry("no answer within 0.2 s")]


def test_endless_headers_are_no_answer(endpoint: HttpEndpoint) -> None:
    endpoint.mode = Mode.ENDLESS_HEADERS
    (outcome,) = publish(endpoint.url)
    assert isinstance(outcome, Retry)


def test_proxies_of_the_environment_are_not_used(
    endpoint: HttpEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert publish(endpoint.url) == [Delivered()]


def test_a_message_that_would_break_out_of_its_header_is_rejected_alone(endpoint: HttpEndpoint) -> None:
    publisher = HttpPublisher(topic(endpoint.url), Connections())
    outcomes = publisher.publish([message("a\r\nX-Evil: 1"), message("fine")], LONG_SECONDS)
    publisher.close()
    assert [type(outcome) for outcome in outcomes] == [Rejected, Delivered]
    assert [event.headers["bucketwire-event-id"] for event in endpoint.events()] == ["fine"]


def test_sockets_beyond_the_reach_of_select_work_too(endpoint: HttpEndpoint) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most != resource.RLIM_INFINITY and most < 2048:
        pytest.skip("needs a hard limit of 2048 open files: ulimit -Hn")
    resource.setrlimit(resource.RLIMIT_NOFILE, (2048, most))
    fillers = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    try:
        endpoint.mode = Mode.SLOW
        assert publish(endpoint.url, count=100) == [Delivered()] * 100
    finally:
        for filler in fillers:
            os.close(filler)
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_waiting_for_an_answer_takes_no_processor_time(endpoint: HttpEndpoint) -> None:
    endpoint.mode = Mode.HANG
    publisher = HttpPublisher(topic(endpoint.url), Connections())
    before = time.thread_time()
    publisher.publish([message()] * 10, 1.0)
    assert time.thread_time() - before < 0.25
    publisher.close()
