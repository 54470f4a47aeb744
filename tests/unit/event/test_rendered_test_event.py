"""The bytes of the test event."""

import json

import pytest

from bucketwire.event.dialect import AWS, CEPH, STORJ, Dialect
from bucketwire.event.formats.test_event import render_test_event
from factories import topic

AT_NS = 1_763_238_280_123_456_789
ASKED = {"RequestId": "4F1D0A2B3C4D5E6F", "HostId": "host-id"}


def rendered(dialect: Dialect, **attributes: str) -> dict[str, object]:
    body = render_test_event(
        "media", AT_NS, topic(**attributes), dialect, request_id="4F1D0A2B3C4D5E6F", host_id="host-id"
    )
    found: dict[str, object] = json.loads(body)
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
