"""CloudEvents 1.0 for S3: attributes beside the body (binary mode), or around it (structured mode).

The adapter for S3 makes the id of the request id and the host id, which all keys of one multi-object delete
share. The id here is the event id, as in all formats: unique, and the same on every retry and replay.
`subject` is the raw key; a key with characters that CloudEvents forbid in attributes gives no subject.
"""

import re
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from bucketwire.event.formats.s3 import EVENT_NAMES, Filled, Record
from bucketwire.event.formats.stamp import EventId, Time
from bucketwire.event.topic import Topic

STRUCTURED_TYPE = "application/cloudevents+json; charset=utf-8"
JSON: Literal["application/json"] = "application/json"
TYPE_PREFIX = "com.amazonaws.s3."
_NONCHARACTERS = "".join(chr(plane << 16 | last) for plane in range(17) for last in (0xFFFE, 0xFFFF))
_FORBIDDEN = re.compile(f"[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef{_NONCHARACTERS}]")

_CONTROL = r"[\u0000-\u001f\u007f-\u009f\ufdd0-\ufdef\ufffe\uffff]"
"""Of those, what readers of JSON Schema understand alike."""
_SOURCE = r"^(aws|ceph|storj):s3\.[A-Za-z0-9:_-]+\.[a-z0-9.-]+$"


class CloudEvent(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """The message in structured mode."""

    specversion: Literal["1.0"]
    id: EventId
    source: Annotated[str, Meta(pattern=_SOURCE, extra_json_schema={"format": "uri-reference"})]
    type: Annotated[str, Meta(extra_json_schema={"enum": [TYPE_PREFIX + name for name in EVENT_NAMES]})]
    time: Time
    subject: Annotated[Filled, Meta(extra_json_schema={"not": {"pattern": _CONTROL}})] | UnsetType = UNSET
    datacontenttype: Literal["application/json"]
    data: Record


_encode = msgspec.json.Encoder().encode


def render_cloudevent(
    record: Record, event_id: str, key: str, topic: Topic
) -> tuple[bytes, str, dict[str, str]]:
    """The body, its content type, and what goes beside it, in the topic's mode."""
    if topic.attributes.get("cloudevents-mode") == "binary":
        return _encode(record), JSON, binary_attributes(record, event_id, key)
    return _structured(record, event_id, key), STRUCTURED_TYPE, {}


def binary_attributes(record: Record, event_id: str, key: str) -> dict[str, str]:
    """What goes beside the body in binary mode, by bare names."""
    found = attributes(event_id, _source(record), record.event_name, record.event_time)
    if _is_attribute(key):
        found["subject"] = key
    return found


def attributes(event_id: str, source: str, event_name: str, time: str) -> dict[str, str]:
    """Those that every event has."""
    return {
        "specversion": "1.0",
        "id": event_id,
        "source": source,
        "type": TYPE_PREFIX + event_name,
        "time": time,
    }


def source_of(event_source: str, region: str, bucket: str) -> str:
    """Where an event comes from."""
    return f"{event_source}.{region}.{bucket}"


def _structured(record: Record, event_id: str, key: str) -> bytes:
    return _encode(
        CloudEvent(
            specversion="1.0",
            id=event_id,
            source=_source(record),
            type=TYPE_PREFIX + record.event_name,
            time=record.event_time,
            subject=key if _is_attribute(key) else UNSET,
            datacontenttype=JSON,
            data=record,
        )
    )


def _source(record: Record) -> str:
    return source_of(record.event_source, record.aws_region, record.s3.bucket.name)


def _is_attribute(text: str) -> bool:
    return text.isprintable() or _FORBIDDEN.search(text) is None
