"""The lifecycle of objects: which of them a bucket's rules would remove by now. Pure.

    configuration (dicts as in the S3 model) -> lifecycle_from_configuration -> document of the bucket
    (rules, versions of a key, now) -> due_removals

Ages count in whole days of UTC, as on S3: what is `Days` old is due at the next midnight.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any, Literal

import msgspec

from bucketwire.metabase.values import StoredObject, Upload

LIFECYCLE_DOCUMENT = "lifecycle"
"""The kind under which a bucket's lifecycle is kept."""
_DAY_NS = 86_400 * 1_000_000_000


class Tag(msgspec.Struct, frozen=True, rename="pascal"):
    """A tag that an object must have."""

    key: str
    value: str


class Conditions(msgspec.Struct, frozen=True, rename="pascal", omit_defaults=True):
    """What must all hold of an object."""

    prefix: str | None = None
    tags: tuple[Tag, ...] = ()
    object_size_greater_than: int | None = None
    object_size_less_than: int | None = None

    @property
    def beyond_prefix(self) -> bool:
        """Whether more than the key decides."""
        return (
            bool(self.tags)
            or self.object_size_greater_than is not None
            or self.object_size_less_than is not None
        )

    def hold(self, stored: StoredObject) -> bool:
        """Whether they hold; of a delete marker, which has no size and no tags, only a prefix can."""
        if not stored.key.startswith(self.prefix or ""):
            return False
        if stored.is_marker:
            return not self.beyond_prefix
        larger, smaller = self.object_size_greater_than, self.object_size_less_than
        return (
            all(stored.tags.get(tag.key) == tag.value for tag in self.tags)
            and (larger is None or stored.size_bytes > larger)
            and (smaller is None or stored.size_bytes < smaller)
        )


class Filter(msgspec.Struct, frozen=True, rename="pascal", omit_defaults=True):
    """One condition, or several in `And`; none at all takes every object."""

    prefix: str | None = None
    tag: Tag | None = None
    object_size_greater_than: int | None = None
    object_size_less_than: int | None = None
    and_: Conditions | None = msgspec.field(default=None, name="And")

    def conditions(self) -> Conditions:
        """The conditions, however they are written."""
        return self.and_ or Conditions(
            self.prefix,
            (self.tag,) if self.tag else (),
            self.object_size_greater_than,
            self.object_size_less_than,
        )


class Expiration(msgspec.Struct, frozen=True, rename="pascal", omit_defaults=True):
    """When current objects go; and whether a delete marker goes that hides nothing any more."""

    days: int | None = None
    date: datetime | None = None
    expired_object_delete_marker: bool | None = None

    def due(self, created_at_ns: int, now_ns: int) -> bool:
        """Whether what was made then is to go by now."""
        if self.days is not None:
            return past_days(created_at_ns, self.days, now_ns)
        return self.date is not None and self.date.timestamp() * 1e9 <= now_ns


class NoncurrentVersionExpiration(msgspec.Struct, frozen=True, rename="pascal", omit_defaults=True):
    """When versions go that are not current, and how many of the newest of them stay."""

    noncurrent_days: int | None = None
    newer_noncurrent_versions: int | None = None


class AbortIncompleteMultipartUpload(msgspec.Struct, frozen=True, rename="pascal", omit_defaults=True):
    """When uploads go that were not completed."""

    days_after_initiation: int | None = None


class LifecycleRule(msgspec.Struct, frozen=True, rename="pascal", omit_defaults=True):
    """One rule, as the customer wrote it."""

    status: Literal["Enabled", "Disabled"]
    id: str | None = msgspec.field(default=None, name="ID")
    prefix: str | None = None
    filter: Filter | None = None
    expiration: Expiration | None = None
    noncurrent_version_expiration: NoncurrentVersionExpiration | None = None
    abort_incomplete_multipart_upload: AbortIncompleteMultipartUpload | None = None

    def conditions(self) -> Conditions:
        """What must hold of an object for the rule to look at it."""
        return self.filter.conditions() if self.filter else Conditions(self.prefix)


class Removal(msgspec.Struct, frozen=True):
    """A version that is to go. `current`: as a client deletes without a version, so that a marker is made."""

    stored: StoredObject
    current: bool


def lifecycle_document(rules: Sequence[LifecycleRule]) -> str:
    """The rules, as they are kept."""
    return msgspec.json.encode(rules).decode()


def lifecycle_from_document(document: str) -> list[LifecycleRule]:
    """The rules that were kept."""
    return msgspec.json.decode(document, type=list[LifecycleRule])


def configuration_from_lifecycle(rules: Iterable[LifecycleRule]) -> list[dict[str, Any]]:
    """The rules as in the S3 model."""
    return [msgspec.to_builtins(rule, builtin_types=(datetime,)) for rule in rules]


def due_removals(
    rules: Iterable[LifecycleRule], versions: Sequence[StoredObject], now_ns: int
) -> list[Removal]:
    """What is to go of the versions of one key, newest first. The oldest go first, the current one last."""
    due: dict[int, Removal] = {}
    for rule in rules:
        if rule.status == "Enabled":
            for removal in _due_by_rule(rule, versions, now_ns):
                due.setdefault(removal.stored.version, removal)
    return [due[version] for version in sorted(due)]


def due_upload(rules: Iterable[LifecycleRule], upload: Upload, now_ns: int) -> bool:
    """Whether an upload under way is to be aborted."""
    for rule in rules:
        abort = rule.abort_incomplete_multipart_upload
        if rule.status != "Enabled" or abort is None or abort.days_after_initiation is None:
            continue
        if upload.key.startswith(rule.conditions().prefix or "") and past_days(
            upload.created_at_ns, abort.days_after_initiation, now_ns
        ):
            return True
    return False


def past_days(since_ns: int, days: int, now_ns: int) -> bool:
    """Whether the midnight after so many days has come."""
    midnight_ns = -(-(since_ns + days * _DAY_NS) // _DAY_NS) * _DAY_NS
    return midnight_ns <= now_ns


def _due_by_rule(rule: LifecycleRule, versions: Sequence[StoredObject], now_ns: int) -> Iterator[Removal]:
    conditions = rule.conditions()
    if rule.expiration is not None and versions and conditions.hold(versions[0]):
        yield from _due_current(rule.expiration, versions, now_ns)
    noncurrent = rule.noncurrent_version_expiration
    if noncurrent is None or noncurrent.noncurrent_days is None:
        return
    kept = noncurrent.newer_noncurrent_versions or 0
    for newer, stored in list(pairwise(versions))[kept:]:
        since_ns = newer.created_at_ns
        if conditions.hold(stored) and past_days(since_ns, noncurrent.noncurrent_days, now_ns):
            yield Removal(stored, current=False)


def _due_current(expiration: Expiration, versions: Sequence[StoredObject], now_ns: int) -> Iterator[Removal]:
    """The current object; or a delete marker, once it is all that is left of the key."""
    current = versions[0]
    due = expiration.due(current.created_at_ns, now_ns)
    if not current.is_marker:
        if due:
            yield Removal(current, current=True)
    elif len(versions) == 1 and (due or expiration.expired_object_delete_marker):
        yield Removal(current, current=False)
