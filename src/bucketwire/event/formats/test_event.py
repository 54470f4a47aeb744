"""The test event: what a new destination gets before the rules that name it are stored.

It has no `Records`, as in S3, unless the topic asks for an empty list of them: consumers that look for
records without looking whether there are any then find none.
"""

from typing import Any

import msgspec

from bucketwire.event.dialect import Dialect
from bucketwire.event.formats.stamp import event_time
from bucketwire.event.topic import Topic

RECORDS_ATTRIBUTE = "test-event-records"
_encode = msgspec.json.Encoder().encode


def render_test_event(
    bucket: str, at_ns: int, topic: Topic, dialect: Dialect, *, request_id: str, host_id: str
) -> bytes:
    """The body of the message."""
    event: dict[str, Any] = {
        "Service": dialect.test_event_service,
        "Event": "s3:TestEvent",
        "Time": event_time(at_ns, dialect.time_digits),
        "Bucket": bucket,
    }
    if dialect.test_event_tells_request:
        event |= {"RequestId": request_id, "HostId": host_id}
    if topic.is_set(RECORDS_ATTRIBUTE):
        event["Records"] = []
    return _encode(event)
