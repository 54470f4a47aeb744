"""The S3 event message, in the server's dialect: `{"Records": [one record]}`."""

from datetime import UTC, datetime
from functools import lru_cache
from typing import Any
from urllib.parse import quote_plus

import msgspec

from bucketwire.event.change import ObjectChange, ObjectState
from bucketwire.event.dialect import Dialect
from bucketwire.event.expiry import expiry_name
from bucketwire.event.name import Operation
from bucketwire.event.rule import Rule
from bucketwire.event.topic import Topic

_encode = msgspec.json.Encoder().encode

_REMOVED = frozenset(
    {
        Operation.DELETE,
        Operation.DELETE_MARKER_CREATED,
        Operation.EXPIRATION_DELETE,
        Operation.EXPIRATION_DELETE_MARKER_CREATED,
    }
)
_MARKER_MADE = frozenset({Operation.DELETE_MARKER_CREATED, Operation.EXPIRATION_DELETE_MARKER_CREATED})
_TAGGING = frozenset({Operation.TAGGING_PUT, Operation.TAGGING_DELETE})


def render_s3(change: ObjectChange, rule: Rule, topic: Topic, event_id: str, dialect: Dialect) -> bytes:
    """The body of the message."""
    bucket: dict[str, Any] = {
        "name": change.bucket.name,
        "ownerIdentity": {"principalId": change.bucket.owner_id},
        "arn": dialect.bucket_arn_prefix + change.bucket.name,
    }
    record: dict[str, Any] = {
        "eventVersion": (
            dialect.tagging_event_version if change.operation in _TAGGING else dialect.event_version
        ),
        "eventSource": dialect.event_source,
        "awsRegion": change.bucket.region,
        "eventTime": event_time(change.committed_at_ns, dialect.time_digits),
        "eventName": _event_name(change, dialect),
        "userIdentity": {"principalId": change.origin.principal_id},
        "requestParameters": {"sourceIPAddress": change.origin.source_ip},
        "responseElements": {
            "x-amz-request-id": change.origin.request_id,
            "x-amz-id-2": change.origin.host_id,
        },
        "s3": {
            "s3SchemaVersion": "1.0",
            "configurationId": rule.id,
            "bucket": bucket,
            "object": _object(change, dialect),
        },
    }
    if dialect.extended_record:
        bucket["id"] = change.bucket.id
        record["eventId"] = event_id
        record["opaqueData"] = topic.attributes.get("OpaqueData", "")
    return _encode({"Records": [record]})


def event_time(nanoseconds: int, digits: int) -> str:
    """`2026-11-15T20:24:40.123Z`, cut and not rounded, so that no event lies in the future."""
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    return f"{_whole_seconds(seconds)}.{rest // 10 ** (9 - digits):0{digits}d}Z"


@lru_cache(maxsize=64)
def _whole_seconds(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _event_name(change: ObjectChange, dialect: Dialect) -> str:
    by_kind = expiry_name(change) if dialect.expiry_named_by_kind else None
    return by_kind or change.operation.value


def _object(change: ObjectChange, dialect: Dialect) -> dict[str, Any]:
    key = quote_plus(change.key, safe="/") if dialect.url_encoded_key else change.key
    described: dict[str, Any] = {"key": key}
    told = _told(change, dialect)
    if change.operation in _TAGGING and dialect.tagging_tells_etag_alone:
        return {**described, "eTag": told.etag} if told else described
    if told is not None:
        described["size"] = told.size_bytes
        described["eTag"] = "" if told.is_marker else told.etag
    elif change.operation in _MARKER_MADE and change.new is not None:
        described["eTag"] = change.new.etag
    state = change.new or change.old
    if state is not None and state.version_id is not None:
        described["versionId"] = state.version_id
    described["sequencer"] = change.sequencer
    if dialect.extended_record:
        described["metadata"] = _pairs(told.metadata if told else {}, "x-amz-meta-")
        described["tags"] = _pairs(told.tags if told else {})
    return described


def _told(change: ObjectChange, dialect: Dialect) -> ObjectState | None:
    """The state whose size and eTag the record tells, if it tells any."""
    if change.operation not in _REMOVED:
        return change.new
    return (change.old or change.previous) if dialect.removed_carries_state else None


def _pairs(values: dict[str, str], prefix: str = "") -> list[dict[str, str]]:
    return [{"key": prefix + name, "val": value} for name, value in values.items()]
