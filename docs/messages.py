"""What a consumer can be given, for machines: JSON Schemas, and an AsyncAPI document that joins them.

The schemas come from the structs that write the messages; what fields have to do with each other stands here.
Fields may be added one day: the schemas allow others, and the tests refuse them.
"""

import copy
import json
from typing import Any

import msgspec

from bucketwire.event.formats.cloudevents import STRUCTURED_TYPE, CloudEvent
from bucketwire.event.formats.cos import CosKey, CosMessage
from bucketwire.event.formats.s3 import Record, S3Message

JSON = "application/json"
DRAFT = "https://json-schema.org/draft/2020-12/schema"
COMPONENTS = "#/components/schemas/"
PAYLOADS = (S3Message, Record, CosMessage, CosKey, CloudEvent)
CE_PREFIXES = {"http": "ce-", "kafka": "ce_", "amqp": "cloudEvents:", "pubsub": "ce-"}
"""How each kind of destination names the attributes of a CloudEvent in binary mode."""
CHANNELS = {
    "http": "POST to an HTTP or HTTPS endpoint; the headers stand as HTTP headers, percent-encoded.",
    "kafka": "A topic of Kafka; the headers stand as record headers.",
    "amqp": "An exchange of an AMQP 0.9.1 broker; the headers stand in the message's headers table, and the"
    " property message-id is the event id.",
    "pubsub": "A topic of Google Pub/Sub; the headers stand as attributes.",
}
MESSAGES = {
    "s3": ("The S3 event message, in the server's dialect", JSON, "S3Message"),
    "cos": ("IBM COS 2.0", JSON, "CosMessage"),
    "cloudevents": ("A CloudEvent in structured mode", STRUCTURED_TYPE, "CloudEvent"),
    "testEvent": ("What a new destination gets before its rule is stored", JSON, "TestEvent"),
    "cloudeventsTest": ("The same as a CloudEvent in structured mode", STRUCTURED_TYPE, "TestCloudEvent"),
}
BESIDE = {
    "cloudeventsBinary": ("A CloudEvent in binary mode: the record alone", "Record"),
    "cloudeventsBinaryTest": ("The test event as a CloudEvent in binary mode", "TestEvent"),
    "s3WithAttributes": ("The S3 event message of a topic with `cloudevents=true`", "S3Message"),
}
"""Messages with the attributes of a CloudEvent beside the body; their names depend on the destination."""
_SIGNED = "on HTTP, for topics with a signing secret (Standard Webhooks)"
HEADERS = {
    "type": "object",
    "properties": {
        "bucketwire-event-id": {
            "type": "string",
            "description": "One change for one rule; the same on every retry and replay",
        },
        "bucketwire-key": {"type": "string", "description": "The raw key; not there in a test event"},
        "content-type": {
            "type": "string",
            "description": "Of the body; on AMQP it is a property of the message, not a header",
        },
        "webhook-id": {"type": "string", "description": f"The event id; {_SIGNED}"},
        "webhook-timestamp": {"type": "string", "description": f"Seconds of this attempt; {_SIGNED}"},
        "webhook-signature": {"type": "string", "description": f"One for each secret; {_SIGNED}"},
    },
    "required": ["bucketwire-event-id"],
}
ORDERING_KEY = {
    "type": "string",
    "description": "The raw key, for topics with `ordering=key`; none otherwise",
}
COS_KEY = {"anyOf": [{"$ref": COMPONENTS + "CosKey"}, ORDERING_KEY]}
TEST_EVENT = {
    "title": "TestEvent",
    "description": "It has no records; an empty list of them where the topic says `test-event-records=true`.",
    "type": "object",
    "properties": {
        **{name: {"type": "string"} for name in ("Service", "Time", "Bucket", "RequestId", "HostId")},
        "Event": {"const": "s3:TestEvent"},
        "Records": {"type": "array", "maxItems": 0},
    },
    "required": ["Service", "Event", "Time", "Bucket"],
}


def _where(field: str, value: str, **then: Any) -> dict[str, Any]:
    """What holds of a message in which the field has the value."""
    return {"if": {"properties": {field: {"const": value}}}, "then": then}


def _without(*fields: str) -> dict[str, Any]:
    return {"not": {"anyOf": [{"required": [field]} for field in fields]}}


_MARKER = "Object:CreateDeleteMarker"
CONDITIONS = {
    "Record": [
        _where("eventSource", "aws:s3", properties={"eventVersion": {"enum": ["2.1", "2.3"]}}),
        _where("eventSource", "ceph:s3", properties={"eventVersion": {"const": "2.2"}}, required=["eventId"]),
        _where("eventSource", "storj:s3", properties={"eventVersion": {"const": "2.1"}}),
    ],
    "CosMessage": [
        _where("event_type", "Object:Write", required=["object_etag"]),
        _where("event_type", "Object:Delete", **_without("object_etag")),
        _where(
            "event_type",
            _MARKER,
            properties={"object_length": {"const": 0}},
            required=["object_version"],
            **_without("object_etag", "content_type", "meta_headers"),
        ),
        _where(
            "event_type",
            f"{_MARKER}:NullVersionDeleted",
            properties={"object_version": {"const": "null"}},
            required=["object_version"],
            **_without("object_etag"),
        ),
    ],
}
"""By the name of the struct."""


def schemas() -> dict[str, Any]:
    """Each schema by the name of its file."""
    return {
        "s3.schema.json": _schema(S3Message),
        "cos.schema.json": _schema(CosMessage),
        "cos-key.schema.json": _schema(CosKey),
        "cloudevents.schema.json": _schema(CloudEvent),
        "cloudevents-attributes.schema.json": {"$schema": DRAFT, **_attributes("")},
        "test-event.schema.json": {"$schema": DRAFT, **TEST_EVENT},
    }


def asyncapi() -> dict[str, Any]:
    """Channels by kind of destination, messages by format."""
    names = {channel: [*MESSAGES, *(f"{each}-{channel}" for each in BESIDE)] for channel in CHANNELS}
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Bucketwire",
            "version": "1",
            "description": "Messages about changes of objects, at least once; a topic's `format` says which.",
        },
        "defaultContentType": JSON,
        "channels": {channel: _channel(channel, names[channel]) for channel in CHANNELS},
        "operations": {
            f"sendTo-{channel}": {"action": "send", "channel": {"$ref": f"#/channels/{channel}"}}
            for channel in CHANNELS
        },
        "components": {"messages": _messages(), "schemas": _components()},
    }


def files() -> dict[str, str]:
    """The text of each file in docs/reference."""
    return {
        name: json.dumps(document, indent=2, ensure_ascii=False) + "\n"
        for name, document in {**schemas(), "asyncapi.json": asyncapi()}.items()
    }


def _schema(payload: type) -> dict[str, Any]:
    schema = msgspec.json.schema(payload)
    return {"$schema": DRAFT, **schema, "$defs": _conditional(schema["$defs"])}


def _conditional(found: dict[str, Any]) -> dict[str, Any]:
    """The schemas of structs, with the conditions that they have."""
    return {
        name: {**schema, "allOf": CONDITIONS[name]} if name in CONDITIONS else schema
        for name, schema in found.items()
    }


def _attributes(prefix: str) -> dict[str, Any]:
    """A CloudEvent without its content: what stands beside the body in binary mode."""
    whole = copy.deepcopy(msgspec.json.schema(CloudEvent)["$defs"]["CloudEvent"])
    names = [name for name in whole["properties"] if name not in {"data", "datacontenttype"}]
    return {
        "title": "CloudEvent attributes",
        "description": "They stand beside the body; the content type is that of the message.",
        "type": "object",
        "properties": {prefix + name: whole["properties"][name] for name in names},
        "required": [prefix + name for name in names if name in whole["required"]],
    }


def _components() -> dict[str, Any]:
    _, found = msgspec.json.schema_components(PAYLOADS, ref_template=COMPONENTS + "{name}")
    found = _conditional(found)
    return {**found, "TestEvent": TEST_EVENT, "TestCloudEvent": _test_cloudevent(), "Headers": HEADERS}


def _test_cloudevent() -> dict[str, Any]:
    around = _attributes("")
    data = {"datacontenttype": {"const": JSON}, "data": {"$ref": COMPONENTS + "TestEvent"}}
    return {
        "title": "TestCloudEvent",
        "type": "object",
        "properties": around["properties"] | data,
        "required": [*around["required"], *data],
    }


def _channel(name: str, messages: list[str]) -> dict[str, Any]:
    return {
        "address": None,
        "description": CHANNELS[name],
        "messages": {each: {"$ref": f"#/components/messages/{each}"} for each in messages},
    }


def _messages() -> dict[str, Any]:
    headers = {"$ref": COMPONENTS + "Headers"}
    found: dict[str, Any] = {}
    for name, (title, content_type, payload) in MESSAGES.items():
        found[name] = _message(name, title, content_type, payload, headers)
    for channel, prefix in CE_PREFIXES.items():
        both = {"type": "object", "allOf": [headers, _attributes(prefix)]}
        for each, (title, payload) in BESIDE.items():
            found[f"{each}-{channel}"] = _message(f"{each}-{channel}", title, JSON, payload, both)
    for name, message in found.items():
        key = COS_KEY if name == "cos" else ORDERING_KEY
        message["bindings"] = {"kafka": {"key": key, "bindingVersion": "0.5.0"}}
    return found


def _message(name: str, title: str, content_type: str, payload: str, headers: Any) -> dict[str, Any]:
    return {
        "name": name,
        "title": title,
        "contentType": content_type,
        "headers": headers,
        "payload": {"$ref": COMPONENTS + payload},
    }
