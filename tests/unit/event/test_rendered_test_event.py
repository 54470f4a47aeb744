"""The bytes of the test event, and what stands beside them."""

import json
from typing import Any

import pytest
from cloudevents.core.bindings.http import HTTPMessage, from_http_event

from bucketwire.event.dialect import AWS, CEPH, STORJ, Dialect
from bucketwire.event.formats.test_event import Trial, render_test_event
from bucketwire.event.message import Message
from factories import topic

TRIAL = Trial("media", "us-east-1", 1_763_238_280_123_456_789, "4F1D0A2B3C4D5E6F", "host-id")
ASKED = {"RequestId": "4F1D0A2B3C4D5E6F", "HostId": "host-id"}


def composed(dialect: Dialect = AWS, **attributes: str) -> Message:
    return render_test_event(TRIAL, topic(**attributes), dialect)


def rendered(dialect: Dialect, **attributes: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(composed(dialect, **attributes).body)
    return found


@pytest.mark.parametrize(
    ("dialect", "service", "time", "more"),
    [
        (AWS, "Amazon S3", "2025-11-15T20:24:40.123Z", ASKED),
        (CEPH, "Ceph S3", "2025-11-15T20:24:40.123456Z", ASKED),
        (STORJ, "Storj S3", "2025-11-15T20:24:40.123Z", {}),
    ],
)
def test_it_has_no_records_and_what_the_dialect_tells(
    dialect: Dialect, service: str, time: str, more: dict[str, str]
) -> None:
    expected = {"Service": service, "Event": "s3:TestEvent", "Time": time, "Bucket": "media", **more}
    assert rendered(dialect) == expected
    assert list(rendered(dialect)) == list(expected)


def test_a_topic_can_have_it_carry_an_empty_list_of_records() -> None:
    assert rendered(AWS, **{"test-event-records": "true"})["Records"] == []
    assert "Records" not in rendered(AWS, **{"test-event-records": "false"})


@pytest.mark.parametrize(
    "attributes",
    [
        {"format": "cloudevents"},
        {"format": "cloudevents", "cloudevents-mode": "binary"},
        {"format": "s3", "cloudevents": "true"},
    ],
    ids=["structured", "binary", "beside"],
)
def test_consumers_of_cloud_events_can_read_it(attributes: dict[str, str]) -> None:
    message = composed(AWS, **attributes)
    headers = {f"ce-{name}": value for name, value in message.cloudevent.items()}
    parsed: Any = from_http_event(
        HTTPMessage({"content-type": message.content_type, **headers}, message.body)
    )
    assert parsed.get_data() == rendered(AWS)
    assert parsed.get_type() == "com.amazonaws.s3.TestEvent"
    assert (parsed.get_id(), parsed.get_source()) == (message.event_id, "aws:s3.us-east-1.media")


@pytest.mark.parametrize("attributes", [{}, {"format": "cos"}, {"format": "cos", "cloudevents": "true"}])
def test_others_get_plain_json(attributes: dict[str, str]) -> None:
    message = composed(AWS, **attributes)
    assert (message.content_type, message.cloudevent) == ("application/json", {})
    assert message.body == composed().body


def test_its_id_begins_with_the_time_and_is_the_topics_own() -> None:
    first, other = composed(), render_test_event(TRIAL, topic(name="other"), AWS)
    assert first.event_id[:16] == other.event_id[:16] == f"{TRIAL.at_ns:016x}"
    assert first.event_id != other.event_id
    assert first.event_id == composed(CEPH, format="cloudevents").event_id
