"""The schemas and the AsyncAPI document: written from the code, and true of every golden file."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from docs import messages
from jsonschema import Draft7Validator, Draft202012Validator, ValidationError

from bucketwire.event.dialect import DIALECTS
from bucketwire.event.formats.test_event import Trial, render_test_event
from factories import topic
from golden.cases import CHANGES, FORMATS, path

REFERENCE = Path(messages.__file__).parent / "reference"
SCHEMAS = messages.schemas()
ASYNCAPI = messages.asyncapi()


def validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(SCHEMAS[f"{name}.schema.json"])


def component(name: str) -> Any:
    """As AsyncAPI's tools read it: schemas there are of Draft 7, where nothing else is said."""
    return Draft7Validator({"$ref": f"#/components/schemas/{name}"} | ASYNCAPI)


def expected(form: str) -> list[Draft202012Validator]:
    """What each line of a golden file must be."""
    match form:
        case "cos":
            return [validator("cos-key"), validator("cos"), validator("cos")]
        case "cloudevents":
            return [validator("cloudevents")] * len(DIALECTS)
        case "binary":
            return [validator("cloudevents-attributes"), component("Record")] * len(DIALECTS)
        case _:
            return [validator("s3")]


@pytest.mark.parametrize("form", FORMATS)
def test_every_golden_file_is_what_its_schema_says(form: str) -> None:
    wanted = expected(form)
    for case in CHANGES:
        lines = path(case, form).read_bytes().splitlines()
        assert len(lines) == len(wanted)
        for line, schema in zip(lines, wanted, strict=True):
            schema.validate(json.loads(line))


def closed(schema: Any) -> Any:
    """The schema, where no message has a field that it does not name."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: closed(below) for name, below in schema.items()}
    return found | {"additionalProperties": False} if "title" in schema and "properties" in schema else found


@pytest.mark.parametrize(("name", "form"), [("s3", each) for each in DIALECTS] + [("cos", "cos")])
def test_no_golden_file_has_a_field_that_its_schema_does_not_name(name: str, form: str) -> None:
    schema = Draft202012Validator(closed(SCHEMAS[f"{name}.schema.json"]))
    for case in CHANGES:
        message = json.loads(path(case, form).read_bytes().splitlines()[-1])
        schema.validate(message)
        assert not schema.is_valid(message | {"other": 1})


COS_WRONG: list[tuple[str, dict[str, Any]]] = [
    ("versioned-delete-version", {"object_etag": "x"}),
    ("put", {"object_etag": None}),
    ("versioned-delete-marker", {"object_length": 1}),
    ("versioned-delete-marker", {"content_type": "a/b"}),
    ("versioned-delete-marker", {"object_version": None}),
    ("suspended-delete-of-null", {"object_version": "v1"}),
    ("suspended-delete-of-null", {"object_version": None}),
    ("put", {"bucket_uuid": "nope"}),
    ("put", {"event_type": "Object:Nonsense"}),
    ("put", {"request_time": "2026-11-18T08:00:00.1234Z"}),
]


@pytest.mark.parametrize(("case", "wrong"), COS_WRONG)
def test_the_schema_of_cos_holds_the_table_of_its_fields(case: str, wrong: dict[str, Any]) -> None:
    right = json.loads(path(case, "cos").read_bytes().splitlines()[1])
    changed = {name: value for name, value in (right | wrong).items() if value is not None}
    for schema in (validator("cos"), component("CosMessage")):
        assert schema.is_valid(right)
        assert not schema.is_valid(changed)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "wrong",
    [{"eventName": "Nonsense"}, {"eventVersion": "2.4"}, {"eventSource": "other:s3"}, {"eventTime": "now"}],
    ids=str,
)
def test_the_schema_of_s3_refuses_other_values(dialect: str, wrong: dict[str, Any]) -> None:
    right = json.loads(path("put", dialect).read_bytes())["Records"][0]
    assert component("Record").is_valid(right)
    assert not component("Record").is_valid(right | wrong)
    other = {"aws": "2.2", "ceph": "2.1", "storj": "2.3"}[dialect]
    assert not validator("s3").is_valid({"Records": [right | {"eventVersion": other}]})


@pytest.mark.parametrize("form", FORMATS)
def test_every_golden_file_is_what_the_asyncapi_document_says(form: str) -> None:
    named = {
        "cos": ["CosKey", "CosMessage", "CosMessage"],
        "cloudevents": ["CloudEvent"] * len(DIALECTS),
        "binary": [None, "Record"] * len(DIALECTS),
    }.get(form, ["S3Message"])
    for case in CHANGES:
        for name, line in zip(named, path(case, form).read_bytes().splitlines(), strict=True):
            if name is not None:
                component(name).validate(json.loads(line))


@pytest.mark.parametrize("name", ASYNCAPI["components"]["schemas"])
def test_schemas_of_the_asyncapi_document_are_of_draft_7(name: str) -> None:
    schema = ASYNCAPI["components"]["schemas"][name]
    Draft7Validator.check_schema(schema)
    assert "prefixItems" not in json.dumps(schema)


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
@pytest.mark.parametrize("records", ["true", "false"])
def test_a_test_event_is_what_its_schema_says(dialect: Any, records: str) -> None:
    asks = topic(**{"test-event-records": records})
    trial = Trial("media", "us-east-1", 1, "request", "host")
    validator("test-event").validate(json.loads(render_test_event(trial, asks, dialect).body))
    structured = render_test_event(trial, topic(format="cloudevents"), dialect)
    component("TestCloudEvent").validate(json.loads(structured.body))
    beside = render_test_event(trial, topic(cloudevents="true"), dialect).cloudevent
    validator("cloudevents-attributes").validate(beside)


@pytest.mark.parametrize(
    ("name", "broken"),
    [
        ("s3", {"Records": []}),
        ("cos", {"format": "2.0"}),
        ("cos-key", {"format": "1.0", "request_id": "a", "notification_id": "b"}),
        ("cloudevents", {"specversion": "1.0"}),
        ("cloudevents-attributes", {"id": "no digits"}),
        ("test-event", {"Event": "s3:TestEvent", "Records": [1]}),
    ],
)
def test_a_schema_refuses_what_is_none_of_its_messages(name: str, broken: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        validator(name).validate(broken)


@pytest.mark.parametrize("name", SCHEMAS)
def test_schemas_are_valid_themselves(name: str) -> None:
    Draft202012Validator.check_schema(SCHEMAS[name])


def test_every_reference_of_the_asyncapi_document_leads_somewhere() -> None:
    for reference in references(ASYNCAPI):
        found: Any = ASYNCAPI
        for step in reference.removeprefix("#/").split("/"):
            found = found[step]
        assert found


def references(document: Any) -> Iterator[str]:
    if isinstance(document, dict):
        if isinstance(document.get("$ref"), str):
            yield document["$ref"]
        for below in document.values():
            yield from references(below)
    elif isinstance(document, list):
        for below in document:
            yield from references(below)


def test_every_message_of_the_asyncapi_document_is_in_a_channel() -> None:
    used = {name for channel in ASYNCAPI["channels"].values() for name in channel["messages"]}
    assert used == ASYNCAPI["components"]["messages"].keys()
    assert {each["channel"]["$ref"] for each in ASYNCAPI["operations"].values()} == {
        f"#/channels/{name}" for name in ASYNCAPI["channels"]
    }


@pytest.mark.parametrize("name", messages.files())
def test_the_files_in_the_reference_are_up_to_date(name: str) -> None:
    assert (REFERENCE / name).read_text() == messages.files()[name]
