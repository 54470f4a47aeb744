"""What a consumer with the cloudevents package must find in a golden message, however it came."""

import json
from typing import Any

from bucketwire.event.message import Message
from golden.cases import CHANGES, composed

CASE = "put-odd-key"
MODES = ("structured", "binary")


def cloudevent(mode: str, dialect: str = "aws") -> Message:
    """The message of the case, for a topic of that mode."""
    return composed(CASE, dialect, format="cloudevents", **{"cloudevents-mode": mode})


def assert_is_the_event(event: Any, message: Message, dialect: str = "aws") -> None:
    """The event, as the package has read it, tells all that the message does."""
    (record,) = json.loads(composed(CASE, dialect).body)["Records"]
    assert event.get_data() == record
    assert event.get_id() == message.event_id
    assert event.get_type() == "com.amazonaws.s3.ObjectCreated:Put"
    assert event.get_source() == f"{dialect}:s3.us-east-1.media"
    assert event.get_subject() == CHANGES[CASE].key
    assert event.get_time().isoformat()[:23] == record["eventTime"][:23]
    assert event.get_datacontenttype() == "application/json"
