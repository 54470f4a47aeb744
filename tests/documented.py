"""The AsyncAPI document as its tools read it: one message of each kind, and whether what arrives is that."""

import json
from collections.abc import Iterator
from typing import Any

from docs.asyncapi import asyncapi
from jsonschema import Draft7Validator

from bucketwire.event.dialect import AWS
from bucketwire.event.formats.test_event import Trial, render_test_event
from bucketwire.event.message import Message
from factories import topic
from golden.cases import FORMS, composed
from golden.consumers import CASE

DOCUMENT = asyncapi()
TRIAL = Trial("media", "us-east-1", 1_763_238_280_123_456_789, "4F1D0A2B3C4D5E6F", "host-id")


def messages() -> dict[str, Message]:
    """By the names that they have in every channel."""
    return {
        "s3": composed(CASE, AWS.name, **FORMS["s3"]),
        "s3WithAttributes": composed(CASE, AWS.name, **FORMS["headers"]),
        "cos": composed(CASE, AWS.name, **FORMS["cos"]),
        "cloudevents": composed(CASE, AWS.name, **FORMS["cloudevents"]),
        "cloudeventsBinary": composed(CASE, AWS.name, **FORMS["binary"]),
        "testEvent": render_test_event(TRIAL, topic(), AWS),
        "cloudeventsTest": render_test_event(TRIAL, topic(**FORMS["cloudevents"]), AWS),
        "cloudeventsBinaryTest": render_test_event(TRIAL, topic(**FORMS["binary"]), AWS),
    }


def names(channel: str) -> set[str]:
    """All headers that messages of the channel may have."""
    kinds = DOCUMENT["channels"][channel]["messages"]
    return {name for each in kinds for name in _named(_message(channel, each)["headers"])}


def assert_documented(channel: str, name: str, headers: dict[str, str], body: bytes) -> None:
    """The message has the headers that it must have, no others, and the body that is described."""
    described = _message(channel, name)
    validator(described["headers"]).validate(headers)
    assert headers.keys() <= set(_named(described["headers"]))
    assert headers.get("content-type", described["contentType"]) == described["contentType"]
    validator(described["payload"]).validate(json.loads(body))


def _message(channel: str, name: str) -> Any:
    return at(DOCUMENT["channels"][channel]["messages"][name]["$ref"])


def at(reference: str, document: Any = DOCUMENT) -> Any:
    """What a reference in it leads to."""
    found = document
    for step in reference.removeprefix("#/").split("/"):
        found = found[step]
    return found


def component(name: str) -> Draft7Validator:
    """Of a schema that it has."""
    return validator({"$ref": f"#/components/schemas/{name}"})


def validator(schema: dict[str, Any]) -> Draft7Validator:
    """Schemas there are of Draft 7, where nothing else is said."""
    return Draft7Validator({"allOf": [schema], "components": DOCUMENT["components"]})


def _named(schema: dict[str, Any]) -> Iterator[str]:
    """The headers that a schema names, itself or by others."""
    if "$ref" in schema:
        yield from _named(at(schema["$ref"]))
    yield from schema.get("properties", {})
    for part in schema.get("allOf", []):
        yield from _named(part)
