"""What a metabase keeps and gives back: plain frozen values, the same on every backend."""

import re

import msgspec

from bucketwire.errors import InvalidRequest
from bucketwire.event.change import BucketRef, ObjectChange, ObjectState, Status, Versioning
from bucketwire.event.message import Message

Offset = str
"""A place in the change stream. Only the backend that made it can read it."""


class Slice(msgspec.Struct, frozen=True):
    """A part of the change stream: after `start`, up to and with `end`."""

    start: Offset
    end: Offset


class Bucket(msgspec.Struct, frozen=True):
    """A bucket. One that is deleted and made anew has another id."""

    id: str
    name: str
    owner_id: str
    region: str
    created_at_ns: int
    versioning: Versioning = Versioning.UNVERSIONED

    def ref(self) -> BucketRef:
        """What a change tells of the bucket."""
        return BucketRef(self.id, self.name, self.owner_id, self.region, self.versioning)


class Segment(msgspec.Struct, frozen=True, gc=False):
    """A run of an object's bytes: one blob; of a multipart upload, one part."""

    blob: str
    size_bytes: int
    checksums: dict[str, str] = {}


class NewObject(msgspec.Struct, frozen=True):
    """An object to commit: its bytes are inline, or already written as blobs."""

    key: str
    size_bytes: int
    etag: str
    owner_id: str
    acl: str = "private"
    content_type: str | None = None
    headers: dict[str, str] = {}
    """Content headers that GET gives back: Cache-Control, Content-Disposition and the like."""
    metadata: dict[str, str] = {}
    tags: dict[str, str] = {}
    checksums: dict[str, str] = {}
    """Verified digests by algorithm name, such as `crc32`, in base64; of multipart objects with `-N`."""
    inline: bytes | None = None
    segments: tuple[Segment, ...] = ()


class StoredObject(msgspec.Struct, frozen=True):
    """A committed version of an object, or a delete marker."""

    key: str
    version: int
    """Grows with each commit of the key: the greatest one is current."""
    status: Status
    size_bytes: int
    etag: str
    owner_id: str
    created_at_ns: int
    acl: str = "private"
    content_type: str | None = None
    headers: dict[str, str] = {}
    metadata: dict[str, str] = {}
    tags: dict[str, str] = {}
    checksums: dict[str, str] = {}
    inline: bytes | None = None
    segments: tuple[Segment, ...] = ()
    pushed: tuple[ObjectChange, ...] = ()
    """Changes that the mutation has made and that the gateway delivers itself. Not kept."""

    @property
    def is_marker(self) -> bool:
        """Whether this is a delete marker."""
        return self.status in MARKERS

    @property
    def version_id(self) -> str | None:
        """As clients see it; None for the null version."""
        return None if self.status in NULL_VERSIONS else version_id(self.version)

    def state(self) -> ObjectState:
        """What a change tells of the object."""
        return ObjectState(
            status=self.status,
            size_bytes=self.size_bytes,
            etag=self.etag,
            version_id=self.version_id,
            content_type=self.content_type,
            metadata=self.metadata,
            tags=self.tags,
        )


MARKERS = frozenset({Status.DELETE_MARKER_VERSIONED, Status.DELETE_MARKER_UNVERSIONED})
NULL_VERSIONS = frozenset({Status.COMMITTED_UNVERSIONED, Status.DELETE_MARKER_UNVERSIONED})

NULL_VERSION_ID = "null"


def version_id(version: int) -> str:
    """The version as clients see it."""
    return f"{version:016x}"


def parse_version_id(text: str) -> int | None:
    """The version behind a version id, None for `null`; `InvalidRequest` for what is neither."""
    if text == NULL_VERSION_ID:
        return None
    if _VERSION_ID.fullmatch(text) is None:
        raise InvalidRequest(
            "Invalid version id specified",
            code="InvalidArgument",
            fields={"ArgumentName": "versionId", "ArgumentValue": text},
        )
    return int(text, 16)


_VERSION_ID = re.compile("[0-7][0-9a-f]{15}")  # a positive number of 64 bits, for databases


class Condition(msgspec.Struct, frozen=True):
    """What must hold of the current object for a write to go through, else `PreconditionFailed`."""

    if_match: str | None = None
    """An eTag without quotes, or `*` for any object."""
    if_none_match: str | None = None
    """Likewise: the write goes through only if the current object is not that."""
    if_version: int | None = None
    """The `StoredObject.version` that the mutation must find, be it an object or a delete marker."""


ALWAYS = Condition()


class Deleted(msgspec.Struct, frozen=True):
    """What a delete did, for its answer."""

    key: str
    version_id: str | None = None
    """Of the version that was deleted, or of the delete marker that was made."""
    is_marker: bool = False
    """Whether that is a delete marker."""
    pushed: tuple[ObjectChange, ...] = ()
    """As of `StoredObject`."""


class ListedObject(msgspec.Struct, frozen=True, gc=False):
    """A line of a listing."""

    key: str
    size_bytes: int
    etag: str
    created_at_ns: int
    owner_id: str
    version_id: str | None = None
    is_latest: bool = True
    is_marker: bool = False
    checksum_algorithms: tuple[str, ...] = ()


class Page(msgspec.Struct, frozen=True):
    """A page of a listing; `next_after` is None on the last page.

    Keys are in the order of their UTF-8 bytes; the versions of a key from the newest to the oldest.
    """

    objects: list[ListedObject]
    common_prefixes: list[str]
    next_after: str | None
    next_version: int | None = None
    """In a listing of versions: the version of `next_after` that the page ended with."""


class Part(msgspec.Struct, frozen=True):
    """A part of a multipart upload."""

    number: int
    size_bytes: int
    etag: str
    blob: str
    created_at_ns: int = 0
    checksums: dict[str, str] = {}


class Upload(msgspec.Struct, frozen=True):
    """A multipart upload that is under way: what the object will be, but for its bytes."""

    id: str
    key: str
    owner_id: str
    created_at_ns: int
    acl: str = "private"
    content_type: str | None = None
    headers: dict[str, str] = {}
    metadata: dict[str, str] = {}
    tags: dict[str, str] = {}
    checksum_algorithm: str | None = None
    checksum_type: str | None = None


class UploadPage(msgspec.Struct, frozen=True):
    """A page of the uploads under way, by key and then by the time of their start."""

    uploads: list[Upload]
    common_prefixes: list[str]
    next_key: str | None = None
    next_upload_id: str | None = None


class Parked(msgspec.Struct, frozen=True):
    """A message that waits for its next attempt."""

    id: int
    message: Message
    attempts: int
    parked_at_ns: int
    due_at_ns: int
    reason: str


class TopicHealth(msgspec.Struct, frozen=True):
    """What is known of a topic's destination: `failures` in a row, and when to probe it again."""

    topic_arn: str
    failures: int = 0
    retry_at_ns: int = 0
    reason: str = ""


class QueueStats(msgspec.Struct, frozen=True):
    """The parked messages of a topic."""

    topic_arn: str
    entries: int
    size_bytes: int
    oldest_at_ns: int
    failures: int
    attempts: int = 0
    """The most attempts that one of them has seen."""
    retry_at_ns: int = 0
    """The end of its pause; 0 while an attempt is under way, whenever the claim for that ends."""
    reason: str = ""
    """The last failure of the topic."""


class DeadLetter(msgspec.Struct, frozen=True):
    """A message that is not tried again."""

    id: int
    message: Message
    reason: str
    buried_at_ns: int


class Letters(msgspec.Struct, frozen=True):
    """Which dead letters: of one topic or all, buried in [since, until), behind the id `after`."""

    topic_arn: str | None = None
    since_ns: int = 0
    until_ns: int | None = None
    after: int = 0


class Settlement(msgspec.Struct, frozen=True):
    """What became of parked messages that were tried: written as a whole or not at all."""

    delivered: list[int] = []
    retried: list[tuple[int, int, str]] = []
    """(id, due_at_ns, reason); counts as one more attempt."""
    buried: list[tuple[int, str]] = []
    """(id, reason); moved to the dead letters."""


class User(msgspec.Struct, frozen=True):
    """Who owns buckets and topics. `id` is public: it stands in messages and listings."""

    id: str
    name: str
    tenant: str = ""
    created_at_ns: int = 0


class Key(msgspec.Struct, frozen=True):
    """A pair of keys of a user."""

    access_key: str
    secret_key: str
    user_id: str

    def __repr__(self) -> str:
        return f"Key({self.access_key})"
