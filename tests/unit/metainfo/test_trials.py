"""Destinations tried out with a real endpoint."""

from collections.abc import Iterator

import pytest

from bucketwire.metainfo.test_event import Trials
from bucketwire.publish.connections import Connections
from factories import message, topic
from services.http_endpoint import HttpEndpoint, Mode

SLOW_DAY_SECONDS = 30.0


@pytest.fixture
def endpoint() -> Iterator[HttpEndpoint]:
    with HttpEndpoint() as endpoint:
        yield endpoint


def test_what_is_acknowledged_has_no_reason(endpoint: HttpEndpoint) -> None:
    trials = Trials(Connections())
    assert trials.start(topic(endpoint.url), message()).result(SLOW_DAY_SECONDS) == ""
    assert [each.body for each in endpoint.events()] == [b"{}"]
    trials.close()
    trials.close()


def test_what_is_not_answered_in_time_has_failed_and_so_has_what_waits_behind_it(
    endpoint: HttpEndpoint,
) -> None:
    endpoint.mode = Mode.HANG
    trials = Trials(Connections(), limit_seconds=0.2, at_once=1)
    started = [trials.start(topic(endpoint.url), message()) for _ in range(3)]
    reasons = [each.result(SLOW_DAY_SECONDS) for each in started]
    assert reasons == ["no answer within 0.2 s"] * 3
    trials.close()


def test_an_endpoint_that_no_publisher_serves_is_a_reason() -> None:
    trials = Trials(Connections())
    reason = trials.start(topic("gopher://someone:pass-word@host/"), message()).result(SLOW_DAY_SECONDS)
    assert "no publisher" in reason
    assert "pass-word" not in reason
    trials.close()
