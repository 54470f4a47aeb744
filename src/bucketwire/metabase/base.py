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

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Protocol

from bucketwire.event.change import Origin, Versioning
from bucketwire.event.message import Message
from bucketwire.event.name import Operation
from bucketwire.event.rule import Rule
from bucketwire.event.topic import Topic
from bucketwire.metabase.values import (
    ALWAYS,
    Bucket,
    Condition,
    DeadLetter,
    Deleted,
    Key,
    Letters,
    NewObject,
    Offset,
    Page,
    Parked,
    Part,
    QueueStats,
    Settlement,
    Slice,
    StoredObject,
    TopicHealth,
    Upload,
    UploadPage,
    User,
)


class Buckets(Protocol):
    """Buckets by name."""

    def create(
        self, name: str, owner_id: str, region: str, documents: Collection[tuple[str, str]] = ()
    ) -> Bucket:
        """Make a bucket with its documents, each a kind and a text, all or nothing.

        `Conflict` (BucketAlreadyOwnedByYou, BucketAlreadyExists) if the name is taken.
        """
        ...

    def get(self, name: str) -> Bucket:
        """The bucket; `NotFound` with NoSuchBucket."""
        ...

    def owned_by(self, owner_id: str) -> list[Bucket]:
        """The owner's buckets, by name."""
        ...

    def delete(self, name: str) -> None:
        """Remove an empty bucket and retire its rules; `Conflict` with BucketNotEmpty, `NotFound`.

        Versions and delete markers count as content; uploads under way do not, and are aborted.
        """
        ...

    def set_versioning(self, name: str, versioning: Versioning) -> None:
        """Set the versioning state, for the next write on."""
        ...

    def set_document(self, name: str, kind: str, document: str | None) -> None:
        """Keep a document of the bucket's configuration, such as `lifecycle` or `acl`; None removes it."""
        ...

    def document(self, name: str, kind: str) -> str | None:
        """The document, if there is one; `NotFound` with NoSuchBucket."""
        ...

    def with_document(self, kind: str) -> list[tuple[Bucket, str]]:
        """All buckets that have such a document."""
        ...


class Objects(Protocol):
    """Objects, and the one change that each mutation of one commits with itself.

    A missing bucket is `NotFound` with NoSuchBucket. A condition that does not hold is `InvalidRequest` with
    PreconditionFailed, and nothing changes.
    """

    def put(
        self,
        bucket: str,
        new: NewObject,
        operation: Operation,
        origin: Origin,
        condition: Condition = ALWAYS,
    ) -> StoredObject:
        """Commit the object: in place of the key's null version, or as a new version."""
        ...

    def get(self, bucket: str, key: str, version: str | None = None) -> StoredObject:
        """The current object, or the version of that id: a delete marker too, look at `is_marker`.

        `NotFound` with NoSuchKey, or NoSuchVersion when a version was named.
        """
        ...

    def delete(
        self,
        bucket: str,
        key: str,
        origin: Origin,
        *,
        version: str | None = None,
        missing_transmits: bool,
        expired: bool = False,
        condition: Condition = ALWAYS,
    ) -> Deleted:
        """Delete the current object, or the version of that id for good.

        Without a version, in a bucket with versioning, that makes a delete marker. A key that does not exist
        is no error; whether it is a change is for the dialect to say, in `missing_transmits`. `expired`
        makes the change one of the lifecycle.
        """
        ...

    def move(
        self,
        bucket: str,
        key: str,
        to_bucket: str,
        to_key: str,
        origin: Origin,
        condition: Condition = ALWAYS,
    ) -> StoredObject:
        """Move the current object: Copy at the destination and Delete at the source, in one transaction.

        `NotFound` with NoSuchKey. Moving a key onto itself is `InvalidRequest`. The condition is one on the
        source: `InvalidRequest` with PreconditionFailed when it does not hold.
        """
        ...

    def set_tags(
        self,
        bucket: str,
        key: str,
        version: str | None,
        tags: dict[str, str],
        origin: Origin,
        condition: Condition = ALWAYS,
    ) -> StoredObject:
        """Set the tags of the object, if the condition holds of it; no tags is a removal of them."""
        ...

    def set_acl(
        self,
        bucket: str,
        key: str,
        version: str | None,
        acl: str,
        origin: Origin,
        condition: Condition = ALWAYS,
    ) -> StoredObject:
        """Set the canned ACL of the object, if the condition holds; the one that it has is no change."""
        ...

    def page(self, bucket: str, *, prefix: str, delimiter: str, after: str, limit: int) -> Page:
        """Up to `limit` current objects and common prefixes that sort behind `after`."""
        ...

    def versions_page(
        self, bucket: str, *, prefix: str, delimiter: str, after: str, after_version: int | None, limit: int
    ) -> Page:
        """Up to `limit` versions, delete markers and common prefixes.

        Behind `after`, or, with `after_version`, behind that version of the key `after`.
        """
        ...

    def versions_of_keys(self, bucket: str, *, after: str, limit: int) -> list[StoredObject]:
        """The next `limit` versions behind the key `after`, and all others of the last one's key.

        They come by key, the newest first, and without their bytes: for the lifecycle.
        """
        ...

    def dropped_blobs(self, limit: int) -> list[str]:
        """Names of blobs that no committed object or upload uses any more: safe to remove."""
        ...

    def forget_blobs(self, names: Sequence[str]) -> None:
        """The bytes of these dropped blobs are gone; calling it twice is harmless."""
        ...

    def unknown_blobs(self, names: Sequence[str]) -> list[str]:
        """Those of the names that no object, part or dropped blob has: orphans, if they are old."""
        ...


class Uploads(Protocol):
    """Multipart uploads. None of this is a change until an upload is completed."""

    def create(self, bucket: str, upload: Upload) -> Upload:
        """Start an upload. `created_at_ns` is set here, and put before the id, so that ids sort by it."""
        ...

    def get(self, bucket: str, key: str, upload_id: str) -> Upload:
        """The upload; `NotFound` with NoSuchUpload."""
        ...

    def put_part(self, bucket: str, key: str, upload_id: str, part: Part) -> Part:
        """Add the part, in place of one of its number; `NotFound` with NoSuchUpload."""
        ...

    def parts(self, bucket: str, key: str, upload_id: str, *, after: int, limit: int) -> list[Part]:
        """Up to `limit` parts with numbers above `after`."""
        ...

    def page(
        self, bucket: str, *, prefix: str, delimiter: str, after_key: str, after_upload_id: str, limit: int
    ) -> UploadPage:
        """Up to `limit` uploads and common prefixes behind that key and upload."""
        ...

    def complete(
        self,
        bucket: str,
        upload_id: str,
        new: NewObject,
        parts: Sequence[Part],
        operation: Operation,
        origin: Origin,
        condition: Condition = ALWAYS,
    ) -> StoredObject:
        """Commit the object made of these parts, and end the upload: one change.

        `InvalidRequest` with InvalidPart when a part is not as it was when it was read.
        """
        ...

    def abort(self, bucket: str, key: str, upload_id: str) -> None:
        """End the upload and drop its parts; `NotFound` with NoSuchUpload."""
        ...


class Rules(Protocol):
    """Notification rules, with their history."""

    def edit(self, bucket: str, change: Callable[[list[Rule]], list[Rule]]) -> int:
        """Apply `change` to the rules in force: the time of the revision that this makes.

        Rules that are as they were make none: then it is the time of the one in force, 0 if none was made.
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

    def edit(self, arn: str, change: Callable[[Topic | None], Topic | None]) -> None:
        """Apply `change` to the topic (a deleted one too, or None) and store what it gives, if anything.

        Nothing comes between. The callable may be run again; what it raises is raised here, and nothing
        changes. `changed_at_ns` is set here.
        """
        ...

    def get(self, arn: str) -> Topic | None:
        """The topic, a deleted one too: look at `deleted_at_ns`."""
        ...

    def owned_by(self, owner_id: str | None, *, after: str, limit: int) -> list[Topic]:
        """The topics that are not deleted, of this owner or (None) of all, by ARN, behind `after`."""
        ...

    def delete(self, arn: str) -> None:
        """Mark the topic deleted. Calling it twice, or for no topic, is harmless."""
        ...

    def version(self) -> int:
        """Grows with every put and delete: what was cached under the same number is still true."""
        ...

    def changed(self, after: int, limit: int) -> list[tuple[int, Topic]]:
        """The topics put or deleted behind that version, deleted ones too, each with its own version, by it.

        One that was changed more than once comes once, as it is now. Behind 0 are all.
        """
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

    def trim_before(self, committed_at_ns: int) -> Offset:
        """Forget the changes committed before that time, read or not; where the stream starts then."""
        ...

    def clock_ns(self) -> int:
        """The time by which the age of changes is measured: the earliest of the clocks that tell it.

        Those are this process's and the one that stamps changes. When this process's jumps ahead, that counts
        for nothing until a restart.
        """
        ...

    def waiting(self, after: Offset) -> tuple[int, int | None]:
        """About how many changes lie behind `after`, and when the oldest of them was committed."""
        ...


class Cursors(Protocol):
    """How far each consumer of the change stream has come: the only truth about it."""

    def load(self, consumer: str) -> Offset | None:
        """The last offset saved, or None for a new consumer."""
        ...

    def lease(self, consumer: str, holder: str, seconds: float) -> bool:
        """Take or keep the consumer's cursor for `holder`: true if nobody else has it for now.

        A lease that was not kept for its `seconds` is anybody's. 0 seconds gives it up.
        """
        ...

    def keep(self, consumer: str, holder: str, seconds: float) -> bool:
        """Prolong the lease, also one that has run out; false if another has had it since.

        0 seconds gives it up, if it is in this name.
        """
        ...

    def holder(self, consumer: str) -> str | None:
        """Who has the lease now, if anybody."""
        ...

    def save(self, consumer: str, offset: Offset, alive_at_ns: int, holder: str = "") -> bool:
        """All up to `offset` has an outcome, and the consumer was alive at that time.

        False, and nothing is saved, when somebody else than `holder` has the lease, or has had it since:
        then the offset may be older than what was saved and trimmed in the meantime. A cursor never goes
        back: an earlier offset changes nothing but the time. Raises `ServerReplaced` if the offset is not of
        this server.
        """
        ...

    def not_alive(self, consumer: str) -> None:
        """The consumer is not at work, whenever it last saved; unless somebody has the lease."""
        ...

    def alive_at_ns(self, consumer: str) -> int | None:
        """When the consumer last saved."""
        ...

    def last_alive_at_ns(self, consumer: str) -> int:
        """The time it gave when it last saved and was alive, by its own clock; 0 if it never was."""
        ...


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

    def report(self, health: TopicHealth, seen: TopicHealth | None = None) -> bool:
        """Set what is known of a topic; 0 failures means healthy. Whether that was done.

        A failure of a topic is not told where the topic is no more as it was `seen`, that is healthy, or with
        that `retry_at_ns`: somebody has claimed it meanwhile, or told of it, and knows better.
        """
        ...

    def claim(self, topics: Sequence[TopicHealth], until_ns: int) -> set[str]:
        """Let nobody else try these topics until then; the ARNs of those for which that was done.

        It is not done for a topic whose `retry_at_ns` is another by now: somebody has claimed it meanwhile,
        or told of it. Failures and reasons stay; a healthy topic has one failure while it is claimed.
        """
        ...

    def due_topics(self, now_ns: int) -> list[str]:
        """ARNs that have a message due, and whose `retry_at_ns` has come.

        A time hours ahead was set when the clock was: it counts as one that has come.
        """
        ...

    def hasten(self, after_ns: int) -> None:
        """All topics and messages that are to wait until after that time may be tried at once."""
        ...

    def take(self, topic_arn: str, now_ns: int, limit: int) -> list[Parked]:
        """The topic's messages that are due, oldest first. Takes nothing away."""
        ...

    def settle(self, settlement: Settlement) -> None:
        """Write what became of messages that were taken. Calling it twice is harmless."""
        ...

    def find(self, topic_arn: str, event_ids: Sequence[str]) -> dict[str, int]:
        """The ids of parked messages, by event id, for those of these that are parked."""
        ...

    def expire(
        self, topic_arn: str, *, parked_before_ns: int, more_attempts_than: int | None, limit: int
    ) -> list[Message]:
        """Move up to `limit` parked messages of the topic to the dead letters; those that were moved.

        Which: parked before that time (time_to_live is over), or with more attempts (max_retries reached).
        What waits behind a topic that fails counts the topic's failures since it was parked as its own, and
        its reason is the topic's, if it was never tried itself.
        """
        ...

    def stats(self) -> list[QueueStats]:
        """One line a topic that has parked messages or failures. A claim is no pause of the topic."""
        ...

    def has_parked(self, topic_arn: str) -> bool:
        """Whether a message of the topic is parked, due or not."""
        ...

    def backlogs(self) -> dict[str, int]:
        """How many bytes are parked for each topic that has messages parked, by ARN.

        Kept as messages come and go, so that the answer costs the same however many there are.
        """
        ...

    def pending(self, topic_arn: str, *, after: int, limit: int) -> list[Parked]:
        """Parked messages of the topic, due or not, by id, behind the id `after`. Takes nothing away."""
        ...

    def letters(self, which: Letters, limit: int) -> list[DeadLetter]:
        """Dead letters, by id."""
        ...

    def redrive(self, ids: Sequence[int]) -> int:
        """Park these dead letters again, due at once, with no attempts; how many there were."""
        ...

    def purge(self, ids: Sequence[int]) -> int:
        """Remove these dead letters for good; how many there were."""
        ...

    def dead_letters(self) -> int:
        """How many dead letters there are. Costs the same however many that is."""
        ...

    def counts(self) -> dict[tuple[str, str], int]:
        """How many messages of a topic were ever `buried`, `redriven` or `purged`, by (what, ARN).

        Counted in the transactions that do it, so that none leaves uncounted.
        """
        ...


class Users(Protocol):
    """Users and their keys."""

    def create(self, user: User, key: Key) -> User:
        """Add a user with a first key; `Conflict` when the name in that tenant, or the key, is taken."""
        ...

    def named(self, name: str, tenant: str) -> User:
        """The user; `NotFound` with NoSuchUser."""
        ...

    def get(self, user_id: str) -> User:
        """The user of that id; `NotFound` with NoSuchUser."""
        ...

    def all(self) -> list[tuple[User, list[str]]]:
        """Every user, by tenant and name, with the access keys it has."""
        ...

    def remove(self, user_id: str) -> None:
        """Remove a user and its keys; `Conflict` while it owns buckets."""
        ...

    def find_key(self, access_key: str) -> tuple[User, Key] | None:
        """Whose key it is."""
        ...


class Metabase(Protocol):
    """A backend: its parts, opened together."""

    buckets: Buckets
    objects: Objects
    uploads: Uploads
    users: Users
    rules: Rules
    topics: Topics
    changes: Changes
    cursors: Cursors
    queue: Queue

    def identity(self) -> str:
        """A UUID that was made with this metabase and stays."""
        ...

    def check(self) -> None:
        """Raise `Unavailable` unless a write would be accepted now."""
        ...

    def close(self) -> None:
        """Finish what was accepted and give up the connections."""
        ...
