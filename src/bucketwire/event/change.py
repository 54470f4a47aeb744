"""A change: the full account of one committed mutation of one object.

Nothing after the metabase knows which backend it came from. It is stored and shipped as JSON
(`encode_change`), so that an operator can read a row, and decoded once, in the worker that routes it.
All ids in it are public ones: what is not here cannot leak into a message.
"""

from enum import IntEnum, StrEnum

import msgspec

from bucketwire.event.name import Operation


class Status(IntEnum):
    """What an object row is."""

    PENDING = 1
    COMMITTED_UNVERSIONED = 3
    COMMITTED_VERSIONED = 4
    DELETE_MARKER_VERSIONED = 5
    DELETE_MARKER_UNVERSIONED = 6


class Versioning(StrEnum):
    """The versioning state of a bucket."""

    UNVERSIONED = "unversioned"
    ENABLED = "enabled"
    SUSPENDED = "suspended"


class BucketRef(msgspec.Struct, frozen=True, gc=False):
    """The bucket as it was at commit.

    `id` tells apart two buckets that bore one name. For a bucket with that id, only `versioning` may change.
    """

    id: str
    name: str
    owner_id: str
    region: str
    versioning: Versioning = Versioning.UNVERSIONED


class ObjectState(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One side of a change: the object before or after it."""

    status: Status
    size_bytes: int
    etag: str
    version_id: str | None = None
    """None for the null version."""
    content_type: str | None = None
    metadata: dict[str, str] = {}
    tags: dict[str, str] = {}

    @property
    def is_marker(self) -> bool:
        """Whether this is a delete marker."""
        return self.status in _MARKERS


_MARKERS = frozenset({Status.DELETE_MARKER_VERSIONED, Status.DELETE_MARKER_UNVERSIONED})


class Origin(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The request that caused the change."""

    principal_id: str
    source_ip: str
    request_id: str
    host_id: str
    pushes: frozenset[str] = frozenset()
    """ARNs of topics to which the gateway itself delivers the change, before it answers the request."""


class ObjectChange(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One committed mutation. `committed_at_ns` strictly increases within a metabase."""

    operation: Operation
    committed_at_ns: int
    bucket: BucketRef
    key: str
    origin: Origin
    new: ObjectState | None = None
    """What the mutation has put there: an object, or a delete marker."""
    old: ObjectState | None = None
    """What it has taken away: overwritten, deleted, or the null version that a null version replaced."""
    previous: ObjectState | None = None
    """What was current before and is still there, as an older version."""
    revision: int | None = None
    """When the rules that the transaction saw had last changed; None if they could not be read."""

    @property
    def described(self) -> ObjectState | None:
        """The object that the change is about: what was put there, or what was taken away or hidden."""
        if self.new is not None and not self.new.is_marker:
            return self.new
        return self.gone

    @property
    def gone(self) -> ObjectState | None:
        """What a removal has hidden behind a marker, or taken away.

        A marker where versioning is suspended may hide one version and take the place of another, older one.
        """
        return self.old or self.previous if self.new is None else self.previous or self.old


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(ObjectChange)

BACKSLASH = ord("\\")
"""JSON that has none escapes nothing: it can write no text that needs that, whoever has encoded it."""

encode_change = _encoder.encode
decode_change = _decoder.decode


def read_change(encoded: bytes) -> tuple[ObjectChange, bool]:
    """The change, and whether it is plain: JSON writes all text in it as it is."""
    return decode_change(encoded), BACKSLASH not in encoded
