"""The AsyncAPI document: which messages go to which kind of destination, and what stands beside the body.

The names of headers come from the publishers; their contract suite holds what arrives against the document.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from docs.conditions import without
from docs.messages import TEST, TEST_EVENT, attributes, conditional, structured_test_event

from bucketwire.event.formats.cloudevents import JSON, STRUCTURED_TYPE, CloudEvent
from bucketwire.event.formats.cos import CosKey, CosMessage
from bucketwire.event.formats.s3 import EVENT_NAMES, Record, S3Message
from bucketwire.event.formats.stamp import EventId
from bucketwire.publish import amqp_call, http_request, kafka_producer, pubsub, webhooks
from bucketwire.publish.headers import CONTENT_TYPE, EVENT_ID, KEY

COMPONENTS = "#/components/schemas/"
PAYLOADS = (S3Message, Record, CosMessage, CosKey, CloudEvent)


@dataclass(frozen=True, slots=True)
class Kind:
    """What is said of a message wherever it goes."""

    title: str
    content_type: str
    payload: str
    """The name of its schema."""
    has_attributes: bool = False
    """Whether those of a CloudEvent stand beside the body."""

    @property
    def is_test(self) -> bool:
        """Whether it is about no object."""
        return self.payload.startswith("Test")


MESSAGES = {
    "s3": Kind("The S3 event message, in the server's dialect", JSON, "S3Message"),
    "s3WithAttributes": Kind(
        "The S3 event message of a topic with `cloudevents=true`", JSON, "S3Message", has_attributes=True
    ),
    "cos": Kind("IBM COS 2.0", JSON, "CosMessage"),
    "cloudevents": Kind("A CloudEvent in structured mode", STRUCTURED_TYPE, "CloudEvent"),
    "cloudeventsBinary": Kind(
        "A CloudEvent in binary mode: the record alone", JSON, "Record", has_attributes=True
    ),
    "testEvent": Kind("What a new destination gets before its rule is stored", JSON, "TestEvent"),
    "cloudeventsTest": Kind("The same as a CloudEvent in structured mode", STRUCTURED_TYPE, "TestCloudEvent"),
    "cloudeventsBinaryTest": Kind(
        "The same with the attributes of a CloudEvent beside it", JSON, "TestEvent", has_attributes=True
    ),
}


def _text(description: str, **more: Any) -> dict[str, Any]:
    return {"type": "string", **more, "description": description}


def _kafka_key(kind: Kind) -> dict[str, Any]:
    ordering = _text("The raw key, for topics with `ordering=key`; none otherwise")
    spreading = {"anyOf": [{"$ref": COMPONENTS + "CosKey"}, ordering]}
    key = spreading if kind.payload == "CosMessage" else ordering
    return {"kafka": {"key": key, "bindingVersion": "0.5.0"}}


def _ordering_key(_: Kind) -> dict[str, Any]:
    return {"googlepubsub": {"orderingKey": f"$message.header#/{KEY}", "bindingVersion": "0.2.0"}}


@dataclass(frozen=True, slots=True)
class Channel:
    """What is said of all messages to one kind of destination."""

    description: str
    ce_prefixes: tuple[str, ...]
    """What stands before the attributes of a CloudEvent."""
    headers: dict[str, Any]
    optional: frozenset[str] = frozenset()
    """Those that some topics have, or some messages."""
    bindings: Callable[[Kind], dict[str, Any]] = lambda _: {}
    """Of a message about an object."""


_ID: dict[str, Any] = {EVENT_ID: msgspec.json.schema(EventId)}
_RAW_KEY = {KEY: _text("The raw key; not there in a test event", minLength=1)}
_TYPE = {CONTENT_TYPE: _text("Of the body")}
_ON_REQUEST = {
    http_request.AUTHORIZATION.lower(): _text("Where the URL of the endpoint has a user", pattern="^Basic "),
    webhooks.ID: msgspec.json.schema(EventId),
    webhooks.TIMESTAMP: _text("Seconds since 1970, of this attempt", pattern="^[0-9]+$"),
    webhooks.SIGNATURE: _text(
        "One for each secret of the topic, as Standard Webhooks have it", pattern="^v1,[^ ]+( v1,[^ ]+)?$"
    ),
}
CHANNELS = {
    "http": Channel(
        "POST to an HTTP or HTTPS endpoint. The headers are those of HTTP, here in lower case; their values"
        " are percent-encoded. Topics with a signing secret have those of Standard Webhooks.",
        (http_request.CE_PREFIX,),
        {
            **_ID,
            KEY: _text("The key, percent-encoded; not there in a test event", pattern="^[!-~]+$"),
            **_TYPE,
            "user-agent": _text("Bucketwire and its version", pattern="^bucketwire/"),
            **_ON_REQUEST,
        },
        frozenset(_ON_REQUEST),
    ),
    "kafka": Channel(
        "A topic of Kafka; the headers stand as record headers.",
        (kafka_producer.CE_PREFIX,),
        {**_ID, **_RAW_KEY, **_TYPE},
        bindings=_kafka_key,
    ),
    "amqp": Channel(
        "An exchange of an AMQP 0.9.1 broker. The headers stand in the message's headers table; the content"
        " type is the property content-type, and the property message-id is the event id.",
        amqp_call.CE_PREFIXES,
        {**_ID, **_RAW_KEY},
    ),
    "pubsub": Channel(
        "A topic of Google Pub/Sub; the headers stand as attributes. With `ordering=key` the raw key is the"
        " ordering key; there is none otherwise.",
        (pubsub.CE_PREFIX,),
        {**_ID, **_RAW_KEY, **_TYPE},
        bindings=_ordering_key,
    ),
}


def asyncapi() -> dict[str, Any]:
    """Channels by kind of destination, messages by format."""
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Bucketwire",
            "version": "1",
            "description": "Messages about changes of objects, at least once; a topic's `format` says which.",
        },
        "defaultContentType": JSON,
        "channels": {name: _channel(name, channel) for name, channel in CHANNELS.items()},
        "operations": {
            f"sendTo-{name}": {"action": "send", "channel": {"$ref": f"#/channels/{name}"}}
            for name in CHANNELS
        },
        "components": {"messages": _messages(), "schemas": _components()},
    }


def _channel(name: str, channel: Channel) -> dict[str, Any]:
    return {
        "address": None,
        "description": channel.description,
        "messages": {each: {"$ref": f"#/components/messages/{each}-{name}"} for each in MESSAGES},
    }


def _messages() -> dict[str, Any]:
    return {
        f"{message}-{channel}": _message(message, channel) for channel in CHANNELS for message in MESSAGES
    }


def _message(name: str, channel: str) -> dict[str, Any]:
    kind = MESSAGES[name]
    bindings = {} if kind.is_test else CHANNELS[channel].bindings(kind)
    return {
        "name": name,
        "title": kind.title,
        "contentType": kind.content_type,
        "headers": _headers(kind, channel),
        "payload": {"$ref": COMPONENTS + kind.payload},
        **({"bindings": bindings} if bindings else {}),
    }


def _headers(kind: Kind, channel: str) -> dict[str, Any]:
    """What stands beside the bodies of this kind."""
    of_key = without(KEY) if kind.is_test else {"required": [KEY]}
    names = [f"{channel.title()}Headers"]
    if kind.has_attributes:
        names.append(f"{channel.title()}{'Test' if kind.is_test else ''}Attributes")
    return {"type": "object", "allOf": [*({"$ref": COMPONENTS + name} for name in names), of_key]}


def _components() -> dict[str, Any]:
    _, found = msgspec.json.schema_components(PAYLOADS, ref_template=COMPONENTS + "{name}")
    found = conditional(found)
    found |= {"TestEvent": TEST_EVENT, "TestCloudEvent": structured_test_event(COMPONENTS)}
    for name, channel in CHANNELS.items():
        found[f"{name.title()}Headers"] = _beside_all(channel)
        found[f"{name.title()}Attributes"] = _attributes(channel, EVENT_NAMES)
        found[f"{name.title()}TestAttributes"] = _attributes(channel, TEST)
    return found


def _attributes(channel: Channel, event_names: Sequence[str]) -> dict[str, Any]:
    """Those of a CloudEvent, under all their names."""
    return {"allOf": [attributes(prefix, event_names) for prefix in channel.ce_prefixes]}


def _beside_all(channel: Channel) -> dict[str, Any]:
    """What stands beside the bodies of all messages."""
    return {
        "type": "object",
        "properties": channel.headers,
        "required": [name for name in channel.headers if name not in channel.optional | {KEY}],
    }
