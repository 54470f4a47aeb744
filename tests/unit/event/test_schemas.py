"""The schemas: written from the code, and true of every golden file."""

import copy
import json
import re
from functools import cache
from typing import Any

import pytest
from docs.messages import schemas
from jsonschema import Draft202012Validator, ValidationError

from bucketwire.event.dialect import DIALECTS
from bucketwire.event.formats.test_event import Trial, render_test_event
from documented import component
from factories import topic
from golden.cases import CHANGES, FORMATS, golden
from golden.consumers import CASE

SCHEMAS = schemas()


@cache
def validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(SCHEMAS[f"{name}.schema.json"])


@cache
def expected(form: str) -> list[Draft202012Validator]:
    """What each line of a golden file must be."""
    match form:
        case "cos":
            return [validator("cos-key"), validator("cos"), validator("cos")]
        case "cloudevents":
            return [validator("cloudevents")] * len(DIALECTS)
        case "binary":
            return [validator("cloudevents-attributes"), validator("record")] * len(DIALECTS)
        case _:
            return [validator("s3")]


@pytest.mark.parametrize("form", FORMATS)
def test_every_golden_file_is_what_its_schema_says(form: str) -> None:
    wanted = expected(form)
    for case in CHANGES:
        lines = golden(case, form)
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
        message = json.loads(golden(case, form)[-1])
        schema.validate(message)
        assert not schema.is_valid(message | {"other": 1})


COS_WRONG: list[tuple[str, dict[str, Any]]] = [
    ("versioned-delete-version", {"object_etag": "x"}),
    ("put", {"object_etag": None}),
    ("versioned-delete", {"object_length": 1}),
    ("versioned-delete", {"content_type": "a/b"}),
    ("versioned-delete", {"object_version": None}),
    ("suspended-delete", {"object_version": "v1"}),
    ("suspended-delete", {"object_version": None}),
    ("put", {"object_name": ""}),
    ("put", {"bucket_uuid": "nope"}),
    ("put", {"event_type": "Object:Nonsense"}),
    ("put", {"request_time": "2026-11-18T08:00:00.1234Z"}),
    ("put", {"request_time": "2026-11-18T08:00:00.123456Z"}),
    ("put", {"object_etag": ""}),
    ("put", {"content_type": ""}),
    ("put", {"meta_headers": []}),
    ("put", {"meta_headers": [{"header": "color", "value": "red"}]}),
    ("put", {"system_name": ""}),
]


@pytest.mark.parametrize(("case", "wrong"), COS_WRONG)
def test_the_schema_of_cos_holds_the_table_of_its_fields(case: str, wrong: dict[str, Any]) -> None:
    right = json.loads(golden(case, "cos")[1])
    changed = {name: value for name, value in (right | wrong).items() if value is not None}
    for schema in (validator("cos"), component("CosMessage")):
        assert schema.is_valid(right)
        assert not schema.is_valid(changed)


GONE = object()
EVERY = "aws ceph storj"
PLAIN = "aws storj"
S3_WRONG: list[tuple[str, str, str, Any]] = [
    # dialects, events, field, what is wrong there
    (EVERY, "", "eventName", "Nonsense"),
    (EVERY, "", "eventSource", "other:s3"),
    (PLAIN, "", "eventVersion", "2.2"),
    ("aws", "ObjectCreated|ObjectRemoved", "eventVersion", "2.3"),
    ("aws", "Tagging|Acl|Lifecycle", "eventVersion", "2.1"),
    ("ceph", "", "eventVersion", "2.1"),
    ("storj", "", "eventVersion", "2.3"),
    (PLAIN, "Lifecycle", "eventName", "ObjectLifecycle:Expiration:Current"),
    ("ceph", "Lifecycle", "eventName", "LifecycleExpiration:Delete"),
    (EVERY, "", "eventTime", "now"),
    (PLAIN, "", "eventTime", "2026-11-18T08:00:00.123456Z"),
    (PLAIN, "", "eventTime", "2026-11-31T08:00:00.123Z"),
    (PLAIN, "", "eventTime", "2026-02-30T08:00:00.123Z"),
    (PLAIN, "", "eventTime", "2026-13-01T08:00:00.123Z"),
    (PLAIN, "", "eventTime", "2026-11-18T24:00:00.123Z"),
    (PLAIN, "", "eventTime", "2026-11-18T08:60:00.123Z"),
    ("ceph", "", "eventTime", "2026-11-18T08:00:00.123Z"),
    ("ceph", "", "eventTime", "2026-00-18T08:00:00.123456Z"),
    ("ceph", "", "eventId", GONE),
    ("ceph", "", "opaqueData", GONE),
    (PLAIN, "", "eventId", "0" * 32),
    (PLAIN, "", "opaqueData", ""),
    (EVERY, "", "awsRegion", ""),
    (EVERY, "", "userIdentity.principalId", ""),
    (EVERY, "", "requestParameters.sourceIPAddress", ""),
    (EVERY, "", "responseElements.x-amz-request-id", ""),
    (EVERY, "", "s3.configurationId", ""),
    (EVERY, "", "s3.bucket.name", ""),
    (EVERY, "", "s3.bucket.arn", "arn:aws:s3:::"),
    ("storj", "", "s3.bucket.arn", "arn:aws:s3:::media"),
    ("aws ceph", "", "s3.bucket.arn", "arn:storj:s3:::media"),
    ("ceph", "", "s3.bucket.id", GONE),
    (PLAIN, "", "s3.bucket.id", "a"),
    (EVERY, "", "s3.object.key", ""),
    ("aws", "", "s3.object.key", "a b"),
    ("aws", "", "s3.object.key", "100%"),
    (EVERY, "", "s3.object.versionId", ""),
    (EVERY, "", "s3.object.size", -1),
    *(("ceph", "", f"s3.object.{name}", GONE) for name in ("size", "eTag", "sequencer", "metadata", "tags")),
    (PLAIN, "ObjectCreated", "s3.object.size", GONE),
    (PLAIN, "ObjectCreated", "s3.object.sequencer", GONE),
    (PLAIN, "ObjectCreated", "s3.object.metadata", []),
    (PLAIN, "ObjectCreated", "s3.object.tags", []),
    (EVERY, "ObjectCreated|Tagging|Acl", "s3.object.eTag", GONE),
    (EVERY, "ObjectCreated|Tagging|Acl", "s3.object.eTag", ""),
    (PLAIN, "Tagging|Acl", "s3.object.size", 1),
    (PLAIN, "Tagging|Acl", "s3.object.versionId", "v1"),
    (PLAIN, "Tagging|Acl", "s3.object.sequencer", "0" * 16),
    (PLAIN, "Removed|Lifecycle", "s3.object.sequencer", GONE),
    (PLAIN, "DeleteMarkerCreated", "s3.object.eTag", GONE),
    ("ceph", "", "s3.object.metadata", [{"key": "color", "val": "red"}]),
    ("ceph", "", "s3.object.tags", [{"key": "color"}]),
    ("storj", "", "s3.s3SchemaVersion", "2.0"),
]


@cache
def records(dialect: str, events: str = "") -> list[Any]:
    """The golden ones about such events, one for each event and set of fields."""
    found = {}
    for case in CHANGES:
        (record,) = json.loads(golden(case, dialect)[0])["Records"]
        if re.search(events, record["eventName"]):
            found[record["eventName"], *record["s3"]["object"]] = record
    return list(found.values())


def mutated(message: Any, field: str, value: Any) -> Any:
    """The message with another value there, or with none."""
    changed = place = copy.deepcopy(message)
    *above, last = field.split(".")
    for step in above:
        place = place[step]
    place[last] = value
    if value is GONE:
        del place[last]
    return changed


@pytest.mark.parametrize(("dialects", "events", "field", "wrong"), S3_WRONG)
def test_the_schema_of_s3_holds_what_the_dialects_promise(
    dialects: str, events: str, field: str, wrong: Any
) -> None:
    for dialect in dialects.split():
        found = records(dialect, events)
        assert found
        for right in found:
            assert not validator("s3").is_valid({"Records": [mutated(right, field, wrong)]})
            for schema in (validator("record"), component("Record")):
                assert not schema.is_valid(mutated(right, field, wrong))


@pytest.mark.parametrize("dialect", PLAIN.split())
def test_the_schema_of_s3_tells_apart_removals_with_a_before_image(dialect: str) -> None:
    found = records(dialect, "Removed|Lifecycle")
    described = [each for each in found if "size" in each["s3"]["object"]]
    bare = [each for each in found if "size" not in each["s3"]["object"]]
    assert described
    for right in described:
        for name in ("size", "eTag", "metadata", "tags"):
            assert not component("Record").is_valid(mutated(right, f"s3.object.{name}", GONE))
    for right in bare:
        assert not component("Record").is_valid(mutated(right, "s3.object.size", 7))
        has_etag = component("Record").is_valid(mutated(right, "s3.object.eTag", "x"))
        assert has_etag == right["eventName"].endswith(":DeleteMarkerCreated")


@pytest.mark.parametrize("dialect", PLAIN.split())
def test_a_removed_delete_marker_has_an_empty_etag(dialect: str) -> None:
    (right,) = json.loads(golden("versioned-delete-marker-before-image", dialect)[0])["Records"]
    assert right["s3"]["object"]["eTag"] == ""
    component("Record").validate(right)


CLOUDEVENT_WRONG: list[tuple[str, Any]] = [
    ("specversion", "0.3"),
    ("id", "1"),
    ("source", "not a uri <>"),
    ("source", "/media"),
    ("source", "aws:s3.us-east-1."),
    ("type", "com.amazonaws.s3.Nonsense"),
    ("type", "ObjectCreated:Put"),
    ("time", "2026-02-30T08:00:00.123Z"),
    ("time", "2026-11-18T25:00:00.123Z"),
    ("subject", ""),
    ("subject", "a\nb"),
    ("subject", "a\n"),
    ("subject", "a\x85"),
    ("subject", "a\ufffe"),
    ("Bad-Name", "1"),
    ("bad_name", "1"),
    ("source", GONE),
    ("time", GONE),
]


@pytest.mark.parametrize(("field", "wrong"), CLOUDEVENT_WRONG)
def test_the_schemas_of_cloudevents_hold_what_cloudevents_allow(field: str, wrong: Any) -> None:
    for line in golden(CASE, "cloudevents"):
        right = json.loads(line)
        assert not validator("cloudevents").is_valid(mutated(right, field, wrong))
        assert not component("CloudEvent").is_valid(mutated(right, field, wrong))
        beside = {name: right[name] for name in right.keys() - {"data", "datacontenttype"}}
        assert validator("cloudevents-attributes").is_valid(beside | {"myextension": "1"})
        assert not validator("cloudevents-attributes").is_valid(mutated(beside, field, wrong))


@pytest.mark.parametrize("field", ["eventTime", "s3", "s3.object.key"])
def test_the_data_of_a_cloudevent_is_a_record(field: str) -> None:
    (right, *_) = golden(CASE, "cloudevents")
    assert not validator("cloudevents").is_valid(mutated(json.loads(right), f"data.{field}", GONE))


TRIAL = Trial("media", "us-east-1", 1, "request", "host")


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
@pytest.mark.parametrize("records", ["true", "false"])
def test_a_test_event_is_what_its_schema_says(dialect: Any, records: str) -> None:
    asked = {"test-event-records": records}
    validator("test-event").validate(json.loads(render_test_event(TRIAL, topic(**asked), dialect).body))
    structured = render_test_event(TRIAL, topic(format="cloudevents", **asked), dialect)
    validator("cloudevents-test-event").validate(json.loads(structured.body))
    component("TestCloudEvent").validate(json.loads(structured.body))
    beside = render_test_event(TRIAL, topic(cloudevents="true"), dialect).cloudevent
    validator("cloudevents-attributes").validate(beside)


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("type", "com.amazonaws.s3.ObjectCreated:Put"),
        ("subject", "video.mp4"),
        ("source", "not a uri <>"),
        ("datacontenttype", GONE),
        ("Bad-Name", "1"),
        ("data", GONE),
        ("data.Event", "s3:ObjectCreated:Put"),
        ("data.Service", "Other"),
        ("data.Time", "2026-02-30T08:00:00.123Z"),
        ("data.Bucket", ""),
        ("data.Records", [{}]),
    ],
)
def test_the_schemas_of_test_events_refuse_other_values(dialect: Any, field: str, wrong: Any) -> None:
    right = json.loads(render_test_event(TRIAL, topic(format="cloudevents"), dialect).body)
    assert not validator("cloudevents-test-event").is_valid(mutated(right, field, wrong))
    assert not component("TestCloudEvent").is_valid(mutated(right, field, wrong))
    if field.startswith("data."):
        assert not validator("test-event").is_valid(mutated(right, field, wrong)["data"])


def test_the_test_event_tells_the_request_as_its_dialect_does() -> None:
    for dialect in DIALECTS.values():
        right = json.loads(render_test_event(TRIAL, topic(), dialect).body)
        wrong = GONE if dialect.test_event_tells_request else "request"
        assert not validator("test-event").is_valid(mutated(right, "RequestId", wrong))


@pytest.mark.parametrize(
    ("name", "broken"),
    [
        ("s3", {"Records": []}),
        ("record", {"eventSource": "aws:s3"}),
        ("cos", {"format": "2.0"}),
        ("cos-key", {"format": "1.0", "request_id": "a", "notification_id": "b"}),
        ("cloudevents", {"specversion": "1.0"}),
        ("cloudevents-attributes", {"id": "no digits"}),
        ("cloudevents-test-event", {"specversion": "1.0"}),
        ("test-event", {"Event": "s3:TestEvent", "Records": [1]}),
    ],
)
def test_a_schema_refuses_what_is_none_of_its_messages(name: str, broken: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        validator(name).validate(broken)


@pytest.mark.parametrize("name", SCHEMAS)
def test_schemas_are_valid_themselves(name: str) -> None:
    Draft202012Validator.check_schema(SCHEMAS[name])
