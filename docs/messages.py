"""What a consumer can be given, for machines: JSON Schemas. The AsyncAPI document joins them.

The schemas come from the structs that write the messages; what fields have to do with each other is in
`docs.conditions`. Fields may be added one day: the schemas allow others, and the tests refuse them.
"""

import copy
from collections.abc import Sequence
from typing import Any

import msgspec
from docs.conditions import CONDITIONS, TEST_EVENTS, without

from bucketwire.event.dialect import DIALECTS
from bucketwire.event.formats.cloudevents import JSON, TYPE_PREFIX, CloudEvent
from bucketwire.event.formats.cos import CosKey, CosMessage
from bucketwire.event.formats.s3 import EVENT_NAMES, Record, S3Message
from bucketwire.event.formats.stamp import Time
from bucketwire.event.formats.test_event import EVENT_NAME
from bucketwire.event.name import PREFIX

DRAFT = "https://json-schema.org/draft/2020-12/schema"
TEST_EVENT = {
    "title": "TestEvent",
    "description": "It has no records; an empty list of them where the topic says `test-event-records=true`.",
    "type": "object",
    "properties": {
        "Service": {"enum": [dialect.test_event_service for dialect in DIALECTS.values()]},
        "Event": {"const": PREFIX + EVENT_NAME},
        "Time": msgspec.json.schema(Time),
        **{name: {"type": "string", "minLength": 1} for name in ("Bucket", "RequestId", "HostId")},
        "Records": {"type": "array", "maxItems": 0},
    },
    "required": ["Service", "Event", "Time", "Bucket"],
    "allOf": TEST_EVENTS,
}
TEST = (EVENT_NAME,)
"""What test events are called, where their name is asked for."""


def schemas() -> dict[str, Any]:
    """Each schema by the name of its file."""
    below = {"TestEvent": TEST_EVENT}
    return {
        "s3.schema.json": _schema(S3Message),
        "record.schema.json": _schema(Record),
        "cos.schema.json": _schema(CosMessage),
        "cos-key.schema.json": _schema(CosKey),
        "cloudevents.schema.json": _schema(CloudEvent),
        "cloudevents-attributes.schema.json": {"$schema": DRAFT, **attributes("", [*EVENT_NAMES, *TEST])},
        "test-event.schema.json": {"$schema": DRAFT, **TEST_EVENT},
        "cloudevents-test-event.schema.json": {
            "$schema": DRAFT,
            **structured_test_event("#/$defs/"),
            "$defs": below,
        },
    }


def _schema(payload: type) -> dict[str, Any]:
    schema = msgspec.json.schema(payload)
    return {"$schema": DRAFT, **schema, "$defs": conditional(schema["$defs"])}


def conditional(found: dict[str, Any]) -> dict[str, Any]:
    """The schemas of structs, with the conditions that they have."""
    return {
        name: {**schema, "allOf": CONDITIONS[name]} if name in CONDITIONS else schema
        for name, schema in found.items()
    }


def attributes(prefix: str, event_names: Sequence[str] = EVENT_NAMES) -> dict[str, Any]:
    """A CloudEvent of one of these names, without its content: what stands beside the body in binary mode."""
    whole = copy.deepcopy(msgspec.json.schema(CloudEvent)["$defs"]["CloudEvent"])
    whole["properties"]["type"]["enum"] = [TYPE_PREFIX + name for name in event_names]
    names = [name for name in whole["properties"] if name not in {"data", "datacontenttype"}]
    return {
        "title": "CloudEvent attributes",
        "description": "They stand beside the body; the content type is that of the message.",
        "type": "object",
        "properties": {prefix + name: whole["properties"][name] for name in names},
        "required": [prefix + name for name in names if name in whole["required"]],
        "propertyNames": {"pattern": f"^{prefix}[a-z0-9]+$" + (f"|^(?!{prefix})" if prefix else "")},
        **(without(prefix + "subject") if event_names == TEST else {}),
    }


def structured_test_event(schemas_at: str) -> dict[str, Any]:
    """The test event as a CloudEvent in structured mode, where the other schemas are to be found there."""
    around = attributes("", TEST)
    data = {"datacontenttype": {"const": JSON}, "data": {"$ref": schemas_at + "TestEvent"}}
    return {
        **around,
        "title": "TestCloudEvent",
        "description": "The test event as a CloudEvent in structured mode.",
        "properties": around["properties"] | data,
        "required": [*around["required"], *data],
    }
