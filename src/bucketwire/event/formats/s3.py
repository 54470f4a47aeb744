"""The S3 event message, in the server's dialect: `{"Records": [one record]}`.

The structs say which fields there are and in which order they stand; the bytes and the JSON Schema
(docs/reference) both come from them. A field that is not set is not written.
"""

from operator import itemgetter
from typing import Annotated, Literal
from urllib.parse import quote_plus

import msgspec
from msgspec import UNSET, Meta, UnsetType, field

from bucketwire.event.change import ObjectChange, ObjectState
from bucketwire.event.dialect import Dialect
from bucketwire.event.expiry import EXPIRY_NAMES, expiry_name
from bucketwire.event.formats.stamp import EventId, Sequencer, Stamp, Time
from bucketwire.event.name import REMOVALS, Operation
from bucketwire.event.rule import METADATA_PREFIX, Rule
from bucketwire.event.topic import Topic

EVENT_NAMES = [*Operation, *EXPIRY_NAMES]
Filled = Annotated[str, Meta(min_length=1)]
Size = Annotated[int, Meta(ge=0, description="Bytes; may be larger than 2^53")]


class Identity(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """A user, by id."""

    principal_id: Filled


class RequestParameters(msgspec.Struct, frozen=True, gc=False):
    """Where the request came from."""

    source_ip_address: Filled = field(name="sourceIPAddress")


class ResponseElements(msgspec.Struct, frozen=True, gc=False):
    """What the client was told to name its request by."""

    request_id: Filled = field(name="x-amz-request-id")
    host_id: Filled = field(name="x-amz-id-2")


class Pair(msgspec.Struct, frozen=True, gc=False):
    """One entry of the object's metadata or tags."""

    key: str
    val: str


class Bucket(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The bucket at the time of the change."""

    name: Filled
    owner_identity: Identity
    arn: Annotated[str, Meta(pattern="^arn:(aws|storj):s3:::")]
    id: Filled | UnsetType = UNSET
    """Ceph: tells apart two buckets that bore one name."""


class Object(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The object: `key` is URL-encoded (aws) or raw (ceph, storj)."""

    key: Filled
    size: Size | UnsetType = UNSET
    e_tag: str | UnsetType = UNSET
    version_id: Filled | UnsetType = UNSET
    sequencer: Sequencer | UnsetType = UNSET
    metadata: list[Pair] | UnsetType = UNSET
    tags: list[Pair] | UnsetType = UNSET


class Entity(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """Which rule has matched, and what was changed."""

    s3_schema_version: Literal["1.0"]
    configuration_id: Filled
    bucket: Bucket
    object: Object


class Record(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """One change, for one rule."""

    event_version: Annotated[str, Meta(pattern=r"^2\.[123]$")]
    event_source: Annotated[str, Meta(pattern="^(aws|ceph|storj):s3$")]
    aws_region: Filled
    event_time: Time
    event_name: Annotated[str, Meta(extra_json_schema={"enum": EVENT_NAMES})]
    user_identity: Identity
    request_parameters: RequestParameters
    response_elements: ResponseElements
    s3: Entity
    event_id: EventId | UnsetType = UNSET
    opaque_data: str | UnsetType = UNSET


class S3Message(msgspec.Struct, frozen=True, gc=False):
    """The message: always one record."""

    records: Annotated[list[Record], Meta(min_length=1, max_length=1)] = field(name="Records")


_DESCRIBING = frozenset({Operation.TAGGING_PUT, Operation.TAGGING_DELETE, Operation.ACL_PUT})
"""Changes of what describes an object, not of its bytes."""
_LATER = _DESCRIBING | {Operation.EXPIRATION_DELETE, Operation.EXPIRATION_DELETE_MARKER_CREATED}
"""Events that AWS came to have later, with a version of their own."""
_NAMES = {operation: operation.value for operation in Operation}
_PLAIN = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-~/"
_ODD_AS_A = bytes(each if each in _PLAIN + b" " else ord("A") for each in range(256))
_ENCODED = tuple(chr(each) if each in _PLAIN else quote_plus(bytes([each])) for each in range(256))

_Pairs = tuple[list[Pair] | UnsetType, list[Pair] | UnsetType]
_NO_PAIRS: _Pairs = (UNSET, UNSET)
_encode = msgspec.json.Encoder().encode


def render_s3(record: Record) -> bytes:
    """The body of the message."""
    return _encode(S3Message([record]))


def s3_record(change: ObjectChange, stamp: Stamp, rule: Rule, topic: Topic, dialect: Dialect) -> Record:
    """The record, which a CloudEvent carries alone."""
    origin, extended = change.origin, dialect.extended_record
    return Record(
        dialect.later_event_version if change.operation in _LATER else dialect.event_version,
        dialect.event_source,
        change.bucket.region,
        stamp.time,
        _event_name(change, dialect),
        Identity(origin.principal_id),
        RequestParameters(origin.source_ip),
        ResponseElements(origin.request_id, origin.host_id),
        Entity("1.0", rule.id, _bucket(change, dialect), _object(change, stamp.sequencer, topic, dialect)),
        stamp.event_id if extended else UNSET,
        topic.attributes.get("OpaqueData", "") if extended else UNSET,
    )


def _event_name(change: ObjectChange, dialect: Dialect) -> str:
    if dialect.expiry_named_by_kind and change.operation in REMOVALS:
        return expiry_name(change) or _NAMES[change.operation]
    return _NAMES[change.operation]


def url_encoded(key: str) -> str:
    """The key as AWS writes it: `+` for a space, `/` as it is, other signs as UTF-8 behind `%`."""
    raw = key.encode()
    if raw.translate(_ODD_AS_A) == raw:
        return key.replace(" ", "+")
    return "".join(itemgetter(*raw)(_ENCODED))  # sooner than a loop


def _bucket(change: ObjectChange, dialect: Dialect) -> Bucket:
    bucket = change.bucket
    return Bucket(
        bucket.name,
        Identity(bucket.owner_id),
        dialect.bucket_arn_prefix + bucket.name,
        bucket.id if dialect.extended_record else UNSET,
    )


def _object(change: ObjectChange, sequencer: str, topic: Topic, dialect: Dialect) -> Object:
    key = url_encoded(change.key) if dialect.url_encoded_key else change.key
    state = change.new
    if state is None or change.operation in REMOVALS:
        return _removed(key, change, sequencer, topic, dialect)
    if dialect.tagging_tells_etag_alone and change.operation in _DESCRIBING:
        return Object(key, e_tag=state.etag)
    metadata, tags = _pairs(state) if dialect.extended_record else _NO_PAIRS
    return Object(key, state.size_bytes, state.etag, state.version_id or UNSET, sequencer, metadata, tags)


def _removed(key: str, change: ObjectChange, sequencer: str, topic: Topic, dialect: Dialect) -> Object:
    """An object that is gone or hidden: its last state where the dialect or the topic asks for that."""
    shown = change.new or change.old
    version_id = shown.version_id if shown is not None else None
    size, e_tag, pairs = _last_state(change, topic, dialect)
    return Object(key, size, e_tag, version_id or UNSET, sequencer, *pairs)


def _last_state(
    change: ObjectChange, topic: Topic, dialect: Dialect
) -> tuple[int | UnsetType, str | UnsetType, _Pairs]:
    before = change.gone
    asked = dialect.removed_carries_state or topic.is_set("before-image")
    if before is not None and before.is_marker and change.new is not None:
        before = None  # a marker upon a marker hides nothing
    if asked and before is not None:
        return before.size_bytes, "" if before.is_marker else before.etag, _pairs(before)
    if dialect.removed_carries_state:
        return 0, "", ([], [])
    if change.new is not None:
        return UNSET, change.new.etag, _NO_PAIRS
    return UNSET, UNSET, _NO_PAIRS


def _pairs(state: ObjectState) -> _Pairs:
    return _sorted(state.metadata, METADATA_PREFIX), _sorted(state.tags)


def _sorted(values: dict[str, str], prefix: str = "") -> list[Pair]:
    """In an order that is the same on every backend."""
    if not values:
        return []
    entries = values.items() if len(values) == 1 else sorted(values.items())
    return [Pair(prefix + name, value) for name, value in entries]
