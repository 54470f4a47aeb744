"""The AsyncAPI document: written from the code, and true of every golden file."""

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft7Validator

from bucketwire.event.dialect import DIALECTS
from documented import DOCUMENT, at, component, validator
from golden.cases import CHANGES, FORMATS, golden


def _closed(required: str, **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": required.split(),
        "additionalProperties": False,
    }


TEXT = {"type": "string"}
SCHEMA = {"$ref": "http://json-schema.org/draft-07/schema#"}
REFERENCE = _closed("$ref", **{"$ref": {"type": "string", "pattern": "^#/"}})
KAFKA = _closed("key bindingVersion", key=SCHEMA, bindingVersion={"const": "0.5.0"})
PUBSUB = _closed("orderingKey bindingVersion", orderingKey=TEXT, bindingVersion={"const": "0.2.0"})
MESSAGE = _closed(
    "name title contentType headers payload",
    name=TEXT,
    title=TEXT,
    contentType=TEXT,
    headers={"allOf": [SCHEMA, {"properties": {"type": {"const": "object"}}, "required": ["type"]}]},
    payload=SCHEMA,
    bindings=_closed("", kafka=KAFKA, googlepubsub=PUBSUB),
)


def _by_name(each: dict[str, Any]) -> dict[str, Any]:
    names = {"pattern": r"^[A-Za-z0-9_.-]+$"}
    return {"type": "object", "propertyNames": names, "additionalProperties": each, "minProperties": 1}


CHANNEL = _closed(
    "address messages", address={"type": "null"}, description=TEXT, messages=_by_name(REFERENCE)
)
FORM = _closed(
    "asyncapi info channels operations components",
    asyncapi={"const": "3.0.0"},
    info=_closed("title version", title=TEXT, version=TEXT, description=TEXT),
    defaultContentType=TEXT,
    channels=_by_name(CHANNEL),
    operations=_by_name(_closed("action channel", action={"const": "send"}, channel=REFERENCE)),
    components=_closed("", messages=_by_name(MESSAGE), schemas=_by_name(SCHEMA)),
)
"""As much of AsyncAPI 3.0 and its bindings as the document has."""


@pytest.mark.parametrize("form", FORMATS)
def test_every_golden_file_is_what_the_asyncapi_document_says(form: str) -> None:
    named = {
        "cos": ["CosKey", "CosMessage", "CosMessage"],
        "cloudevents": ["CloudEvent"] * len(DIALECTS),
        "binary": [None, "Record"] * len(DIALECTS),
    }.get(form, ["S3Message"])
    for case in CHANGES:
        for name, line in zip(named, golden(case, form), strict=True):
            if name is not None:
                component(name).validate(json.loads(line))


@pytest.mark.parametrize("name", DOCUMENT["components"]["schemas"])
def test_schemas_of_the_asyncapi_document_are_of_draft_7(name: str) -> None:
    schema = DOCUMENT["components"]["schemas"][name]
    Draft7Validator.check_schema(schema)
    assert "prefixItems" not in json.dumps(schema)


def test_every_reference_of_the_asyncapi_document_leads_somewhere() -> None:
    assert all(at(reference) for reference in references(DOCUMENT))


def references(document: Any) -> Iterator[str]:
    if isinstance(document, dict):
        if isinstance(document.get("$ref"), str):
            yield document["$ref"]
        for below in document.values():
            yield from references(below)
    elif isinstance(document, list):
        for below in document:
            yield from references(below)


def messages(channel: str) -> dict[str, Any]:
    """By the names that they have in every channel."""
    found = DOCUMENT["channels"][channel]["messages"]
    return {name: at(message["$ref"]) for name, message in found.items()}


def headers(channel: str) -> Any:
    return DOCUMENT["components"]["schemas"][f"{channel.title()}Headers"]


def test_every_message_of_the_asyncapi_document_is_in_a_channel() -> None:
    channels = DOCUMENT["channels"]
    used = [each for channel in channels for each in messages(channel).values()]
    assert used == list(DOCUMENT["components"]["messages"].values())
    assert {each["channel"]["$ref"] for each in DOCUMENT["operations"].values()} == {
        f"#/channels/{name}" for name in channels
    }


def test_each_channel_has_the_headers_of_its_transport() -> None:
    everywhere = {"bucketwire-event-id", "bucketwire-key"}
    webhook = {"webhook-id", "webhook-timestamp", "webhook-signature"}
    brokers = everywhere | {"content-type"}
    found = {channel: headers(channel)["properties"].keys() for channel in DOCUMENT["channels"]}
    assert found == {
        "http": brokers | webhook | {"user-agent", "authorization"},
        "kafka": brokers,
        "amqp": everywhere,
        "pubsub": brokers,
    }
    required = {channel: set(headers(channel)["required"]) for channel in DOCUMENT["channels"]}
    assert required == {
        "http": {"bucketwire-event-id", "content-type", "user-agent"},
        "kafka": {"bucketwire-event-id", "content-type"},
        "amqp": {"bucketwire-event-id"},
        "pubsub": {"bucketwire-event-id", "content-type"},
    }


@pytest.mark.parametrize("channel", DOCUMENT["channels"])
def test_headers_that_no_message_has_are_refused(channel: str) -> None:
    id_of = {"bucketwire-event-id": "0" * 32, "content-type": "a/b", "user-agent": "bucketwire/1"}
    schemas = {name: validator(message["headers"]) for name, message in messages(channel).items()}
    assert schemas["s3"].is_valid(id_of | {"bucketwire-key": "a"})
    assert schemas["testEvent"].is_valid(id_of)
    assert not schemas["s3"].is_valid(id_of)
    assert not schemas["testEvent"].is_valid(id_of | {"bucketwire-key": "a"})
    assert not schemas["testEvent"].is_valid(id_of | {"bucketwire-event-id": "1"})
    assert not schemas["cloudeventsBinaryTest"].is_valid(id_of)


def test_only_brokers_that_place_messages_by_a_key_have_bindings() -> None:
    for channel in DOCUMENT["channels"]:
        for name, message in messages(channel).items():
            expected = {"kafka": {"kafka"}, "pubsub": {"googlepubsub"}}.get(channel, set())
            assert message.get("bindings", {}).keys() == (set() if "est" in name else expected)


@pytest.mark.parametrize(
    "place", ["#/channels/http", "#/operations/sendTo-http", "#/components/messages/s3-kafka"]
)
def test_the_document_has_the_form_of_an_asyncapi_document(place: str) -> None:
    Draft7Validator(FORM).validate(DOCUMENT)
    broken = copy.deepcopy(DOCUMENT)
    at(place, broken)["other"] = 1
    assert not Draft7Validator(FORM).is_valid(broken)
