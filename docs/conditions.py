"""What the fields of a message have to do with each other, as conditions of JSON Schema.

They hold in Draft 7, which AsyncAPI has, as in later ones. Those of the S3 record come from the dialects.
"""

from typing import Any

from bucketwire.event.dialect import DIALECTS, Dialect
from bucketwire.event.expiry import EXPIRY_NAMES
from bucketwire.event.name import Operation
from bucketwire.event.rule import METADATA_PREFIX

Schema = dict[str, Any]
_CREATED = "^ObjectCreated:"
_DESCRIBED = "^Object(Tagging|Acl):"
_REMOVED = "^(ObjectRemoved|LifecycleExpiration):"
_MARKED = ":DeleteMarkerCreated$"
_DELETED = f"{_REMOVED}Delete$"
_LATER = "^(ObjectTagging|ObjectAcl|LifecycleExpiration):"
_ENCODED_KEY = "^([A-Za-z0-9_.~/+-]|%[0-9A-F]{2})+$"
_EXTENSION = ("metadata", "tags")
_ATTRIBUTE_NAMES = {"propertyNames": {"pattern": "^[a-z0-9]+$"}}
"""CloudEvents allow no others."""


def without(*fields: str) -> Schema:
    """None of the fields is there."""
    return {"not": {"anyOf": [{"required": [field]} for field in fields]}}


def _with(*fields: str) -> Schema:
    return {"required": list(fields)}


def _where(field: str, value: str, **then: Any) -> Schema:
    """What holds of a message in which the field has the value."""
    return {"if": {"properties": {field: {"const": value}}}, "then": then}


def _named(pattern: str, then: Schema) -> Schema:
    """What holds of records with such an event name."""
    return {"if": {"properties": {"eventName": {"pattern": pattern}}}, "then": then}


def _records() -> list[Schema]:
    """What holds of records, by dialect and event."""
    filled = {"properties": {"eTag": {"minLength": 1}}, "required": ["eTag"]}
    return [
        *(_where("eventSource", each.event_source, **_record(each)) for each in DIALECTS.values()),
        *(_where("eventSource", each.event_source, **_version(each)) for each in DIALECTS.values()),
        _object(f"{_CREATED}|{_DESCRIBED}", filled),
        _told(_object("", _with("size", "eTag", "sequencer", *_EXTENSION)), extended=True),
        _told(*_plain_objects(), extended=False),
    ]


def _told(*then: Schema, extended: bool) -> Schema:
    """What holds of records of the dialects that tell all of an object, or that do not."""
    sources = [each.event_source for each in DIALECTS.values() if each.extended_record is extended]
    return {"if": {"properties": {"eventSource": {"enum": sources}}}, "then": {"allOf": list(then)}}


def _record(dialect: Dialect) -> Schema:
    expiry = EXPIRY_NAMES if dialect.expiry_named_by_kind else ()
    names = [each for each in Operation if not (expiry and each.startswith("LifecycleExpiration"))]
    bucket = {"properties": {"arn": {"pattern": f"^{dialect.bucket_arn_prefix}."}}}
    key = {"properties": {"key": {"pattern": _ENCODED_KEY}}} if dialect.url_encoded_key else {}
    extended = dialect.extended_record
    return {
        "properties": {
            "eventName": {"enum": [*names, *expiry]},
            "eventTime": {"pattern": f"[.][0-9]{{{dialect.time_digits}}}Z$"},
            "s3": {"properties": {"bucket": bucket | _only(extended, "id"), "object": key}},
        },
        **_only(extended, "eventId", "opaqueData"),
    }


def _version(dialect: Dialect) -> Schema:
    first, later = dialect.event_version, dialect.later_event_version
    found = _named(_LATER, {"properties": {"eventVersion": {"const": later}}})
    return found | {"else": {"properties": {"eventVersion": {"const": first}}}}


def _plain_objects() -> list[Schema]:
    """What is told of objects where there is no more than AWS tells."""
    before_image = {"anyOf": [_with("size", "eTag", *_EXTENSION), without("size", *_EXTENSION)]}
    return [
        _object(_CREATED, _with("size", "sequencer"), without(*_EXTENSION)),
        _object(_DESCRIBED, without("size", "versionId", "sequencer", *_EXTENSION)),
        _object(_REMOVED, _with("sequencer"), before_image),
        _object(_MARKED, _with("eTag")),
        _object(_DELETED, {"anyOf": [_with("size"), without("eTag")]}),
    ]


def _object(pattern: str, *then: Schema) -> Schema:
    """What holds of the object in records with such an event name."""
    return _named(pattern, {"properties": {"s3": {"properties": {"object": {"allOf": list(then)}}}}})


def _only(there: bool, *fields: str) -> Schema:  # noqa: FBT001 - it is a condition
    return _with(*fields) if there else without(*fields)


_MARKER = "Object:CreateDeleteMarker"
CONDITIONS: dict[str, list[Schema]] = {
    "Record": _records(),
    "Object": [
        {"properties": {"metadata": {"items": {"properties": {"key": {"pattern": f"^{METADATA_PREFIX}"}}}}}}
    ],
    "CloudEvent": [_ATTRIBUTE_NAMES],
    "CosMessage": [
        _where("event_type", "Object:Write", required=["object_etag"]),
        _where("event_type", "Object:Delete", **without("object_etag")),
        _where(
            "event_type",
            _MARKER,
            properties={"object_length": {"const": 0}},
            required=["object_version"],
            **without("object_etag", "content_type", "meta_headers"),
        ),
        _where(
            "event_type",
            f"{_MARKER}:NullVersionDeleted",
            properties={"object_version": {"const": "null"}},
            required=["object_version"],
            **without("object_etag"),
        ),
    ],
}
"""By the name of the struct."""
TEST_EVENTS = [
    _where(
        "Service",
        dialect.test_event_service,
        **_only(dialect.test_event_tells_request, "RequestId", "HostId"),
    )
    for dialect in DIALECTS.values()
]
"""What holds of test events, by dialect."""
