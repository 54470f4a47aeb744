"""The contracts of a metabase: what each part of Bucketwire may ask of it.

    gateway   -> Buckets, Objects, Rules, Topics      the object store and its configuration
    pipeline  -> Changes, Cursors, Rules, Topics, Queue

All calls block, may be made from many threads and processes at once, and raise `Unavailable` when the
backend is away. A call that returned is durable; a call that raised has changed nothing.

Invariants:
- A mutation and its change are committed together or not at all.
- `committed_at_ns` strictly increases over all changes and all revisions of rules, in commit order.
- What `Changes.head` has passed never grows: no change commits behind it later.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import msgspec

from bucketwire.event.change import BucketRef, ObjectState, Origin, Status, Versioning
from bucketwire.event.message import Message
from bucketwire.event.name import Operation
from bucketwire.event.rule import Rule
from bucketwire.event.topic import Topic

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


class NewObject(msgspec.Struct, frozen=True):
    """An object to commit: its bytes are inline, or already written under the name `blob`."""

    key: str
    size_bytes: int
    etag: str
    content_type: str | None = None
    headers: dict[str, str] = {}
    """Content headers that GET gives back: Cache-Control, Content-Disposition and the like."""
    metadata: dict[str, str] = {}
    tags: dict[str, str] = {}
    checksums: dict[str, str] = {}
    """Verified digests by algorithm name, such as `crc32`, in base64."""
    inline: bytes | None = None
    blob: str | None = None


class StoredObject(msgspec.Struct, frozen=True):
    """A committed object."""

    key: str
    status: Status
    size_bytes: int
    etag: str
    created_at_ns: int
    version_id: str | None = None
    content_type: str | None = None
    headers: dict[str, str] = {}
    metadata: dict[str, str] = {}
    tags: dict[str, str] = {}
    checksums: dict[str, str] = {}
    inline: bytes | None = None
    blob: str | None = None

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


class ListedObject(msgspec.Struct, frozen=True, gc=False):
    """A line of a listing."""

    key: str
    size_bytes: int
    etag: str
    created_at_ns: int


class Page(msgspec.Struct, frozen=True):
    """A page of a listing, in the order of the keys' UTF-8 bytes; `next_after` is None on the last page."""

    objects: list[ListedObject]
    common_prefixes: list[str]
    next_after: str | None


class Buckets(Protocol):
    """Buckets by name."""

    def create(self, name: str, owner_id: str, region: str) -> Bucket:
        """Make a bucket; `Conflict` (BucketAlreadyOwnedByYou, BucketAlreadyExists) if the name is taken."""
        ...

    def get(self, name: str) -> Bucket:
        """The bucket; `NotFound` with NoSuchBucket."""
        ...

    def owned_by(self, owner_id: str) -> list[Bucket]:
        """The owner's buckets, by name."""
        ...

    def delete(self, name: str) -> None:
        """Remove an empty bucket and retire its rules; `Conflict` with BucketNotEmpty, `NotFound`."""
        ...


class Objects(Protocol):
    """Objects, and the one change that each mutation of them commits with itself."""

    def put(self, bucket: str, new: NewObject, operation: Operation, origin: Origin) -> StoredObject:
        """Commit the object in place of what had its key."""
        ...

    def get(self, bucket: str, key: str) -> StoredObject:
        """The current object; `NotFound` with NoSuchBucket or NoSuchKey."""
        ...

    def delete(self, bucket: str, key: str, origin: Origin, *, missing_transmits: bool) -> None:
        """Remove the current object. A key that does not exist is no error; whether it is a
        change is for the dialect to say, in `missing_transmits`."""
        ...

    def page(self, bucket: str, *, prefix: str, delimiter: str, after: str, limit: int) -> Page:
        """Up to `limit` keys and common prefixes that sort behind `after`."""
        ...

    def dropped_blobs(self, limit: int) -> list[str]:
        """Names of blobs that no committed object uses any more: safe to remove."""
        ...

    def forget_blobs(self, names: Sequence[str]) -> None:
        """The bytes of these dropped blobs are gone; calling it twice is harmless."""
        ...


class Rules(Protocol):
    """Notification rules, with their history."""

    def edit(self, bucket: str, change: Callable[[list[Rule]], list[Rule]]) -> int:
        """Apply `change` to the rules in force and make the result a new revision: the time of it.

        In force for the next write that commits, on every gateway. The callable may be run again.
        `NotFound` with NoSuchBucket; what the callable raises is raised here, and nothing changes.
        """
        ...

    def current(self, bucket: str) -> list[Rule]:
        """The rules in force now; `NotFound` with NoSuchBucket."""
        ...

    def at(self, bucket_id: str, revision: int) -> list[Rule]:
        """The rules in force at that time, also when the bucket is gone. The answer never changes."""
        ...


class Topics(Protocol):
    """Topics by ARN."""

    def put(self, topic: Topic) -> None:
        """Create the topic, or set the one of that ARN anew."""
        ...

    def get(self, arn: str) -> Topic | None:
        """The topic, a deleted one too: look at `deleted_at_ns`."""
        ...

    def owned_by(self, owner_id: str, *, after: str, limit: int) -> list[Topic]:
        """The owner's topics that are not deleted, by ARN, behind `after`."""
        ...

    def delete(self, arn: str) -> None:
        """Mark the topic deleted. Calling it twice, or for no topic, is harmless."""
        ...

    def version(self) -> int:
        """Grows with every put and delete: what was cached under the same number is still true."""
        ...


class Changes(Protocol):
    """The change stream."""

    def start(self) -> Offset:
        """The offset before the oldest change that is kept."""
        ...

    def head(self, after: Offset, limit: int) -> Offset:
        """The offset up to which `limit` changes (or a few more) behind `after` can be read.

        `after` itself when there is none. Never passes a change that could still commit behind it.
        Raises `ChangesTrimmed` when changes behind `after` have been trimmed.
        """
        ...

    def wait(self, after: Offset, limit: int, timeout_seconds: float) -> Offset:
        """`head`, but blocks until it is past `after` or the time is over."""
        ...

    def split(self, start: Offset, end: Offset, slices: int) -> list[Slice]:
        """Up to `slices` parts of about the same size, in order, that together are (start, end]."""
        ...

    def read(self, part: Slice) -> Iterator[bytes]:
        """The slice's changes as written by `encode_change`, in commit order. Repeats exactly."""
        ...

    def trim(self, end: Offset) -> None:
        """Forget the changes up to and with `end`. Calling it twice is harmless."""
        ...


class Cursors(Protocol):
    """How far each consumer of the change stream has come: the only truth about it."""

    def load(self, consumer: str) -> Offset | None:
        """The last offset saved, or None for a new consumer."""
        ...

    def save(self, consumer: str, offset: Offset, alive_at_ns: int) -> None:
        """All up to `offset` has an outcome, and the consumer was alive at that time."""
        ...

    def alive_at_ns(self, consumer: str) -> int | None:
        """When the consumer last saved."""
        ...


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


class Settlement(msgspec.Struct, frozen=True):
    """What became of parked messages that were tried: written as a whole or not at all."""

    delivered: list[int] = []
    retried: list[tuple[int, int, str]] = []
    """(id, due_at_ns, reason); counts as one more attempt."""
    buried: list[tuple[int, str]] = []
    """(id, reason); moved to the dead letters."""


class Queue(Protocol):
    """Parked messages, the health of topics, and dead letters."""

    def park(self, messages: Sequence[Message], *, due_at_ns: int, attempts: int, reason: str) -> None:
        """Keep the messages for a later attempt. One that is parked already stays as it is."""
        ...

    def bury(self, messages: Sequence[Message], reason: str) -> None:
        """Keep the messages as dead letters."""
        ...

    def unhealthy(self) -> dict[str, TopicHealth]:
        """The topics with failures, by ARN: new messages for them are parked behind the others."""
        ...

    def report(self, health: TopicHealth) -> None:
        """Set what is known of a topic; 0 failures means healthy."""
        ...

    def due_topics(self, now_ns: int) -> list[str]:
        """ARNs that have a message due, and whose `retry_at_ns` has come."""
        ...

    def take(self, topic_arn: str, now_ns: int, limit: int) -> list[Parked]:
        """The topic's messages that are due, oldest first. Takes nothing away."""
        ...

    def settle(self, settlement: Settlement) -> None:
        """Write what became of messages that were taken. Calling it twice is harmless."""
        ...

    def stats(self) -> list[QueueStats]:
        """One line a topic that has parked messages."""
        ...

    def dead_letters(self) -> int:
        """How many dead letters there are."""
        ...


class Metabase(Protocol):
    """A backend: its parts, opened together."""

    buckets: Buckets
    objects: Objects
    rules: Rules
    topics: Topics
    changes: Changes
    cursors: Cursors
    queue: Queue

    def check(self) -> None:
        """Raise `Unavailable` unless a write would be accepted now."""
        ...

    def close(self) -> None:
        """Finish what was accepted and give up the connections."""
        ...
