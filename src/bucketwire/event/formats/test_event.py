"""The test event: what a new destination gets before the rules that name it are stored.

It has no `Records`, as in S3, unless the topic asks for an empty list of them: consumers that look for
records without looking whether there are any then find none. Where the messages of a topic are CloudEvents,
or have their attributes beside them, so is or has the test event.
"""

from hashlib import blake2b
from typing import Any

import msgspec

from bucketwire.event.dialect import Dialect
from bucketwire.event.formats.cloudevents import JSON, STRUCTURED_TYPE, attributes, source_of
from bucketwire.event.formats.stamp import event_time, moment_half
from bucketwire.event.message import Message
from bucketwire.event.name import PREFIX
from bucketwire.event.topic import Topic

EVENT_NAME = "TestEvent"
RECORDS_ATTRIBUTE = "test-event-records"
_encode = msgspec.json.Encoder().encode


class Trial(msgspec.Struct, frozen=True):
    """Of what the test event tells."""

    bucket: str
    region: str
    at_ns: int
    request_id: str
    host_id: str


def render_test_event(trial: Trial, topic: Topic, dialect: Dialect) -> Message:
    """The message for the topic."""
    event, event_id = _test_event(trial, topic, dialect), _event_id(trial, topic)
    source = source_of(dialect.event_source, trial.region, trial.bucket)
    around = attributes(event_id, source, EVENT_NAME, event["Time"])
    content_type: str = JSON
    beside: dict[str, str] = {}
    if topic.format == "cloudevents" and topic.attributes.get("cloudevents-mode") != "binary":
        event = {**around, "datacontenttype": JSON, "data": event}
        content_type = STRUCTURED_TYPE
    elif topic.format == "cloudevents" or (topic.format != "cos" and topic.is_set("cloudevents")):
        beside = around
    return Message(topic.arn, event_id, "", _encode(event), content_type, trial.at_ns, cloudevent=beside)


def _event_id(trial: Trial, topic: Topic) -> str:
    """Begins with the time, as all event ids do."""
    request_half = blake2b(f"test event\0{trial.request_id}\0{topic.arn}".encode(), digest_size=8)
    return moment_half(trial.at_ns) + request_half.hexdigest()


def _test_event(trial: Trial, topic: Topic, dialect: Dialect) -> dict[str, Any]:
    event: dict[str, Any] = {
        "Service": dialect.test_event_service,
        "Event": PREFIX + EVENT_NAME,
        "Time": event_time(trial.at_ns, dialect.time_digits),
        "Bucket": trial.bucket,
    }
    if dialect.test_event_tells_request:
        event |= {"RequestId": trial.request_id, "HostId": trial.host_id}
    if topic.is_set(RECORDS_ATTRIBUTE):
        event["Records"] = []
    return event
