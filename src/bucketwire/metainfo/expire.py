"""Applies the lifecycle rules of all buckets: page by page, each removal a mutation of its own.

Nothing is remembered between runs. A removal goes through only if the version is still what was looked at, so
that a run may die halfway, be repeated, or race with clients and with another gateway's run.
"""

import secrets
from collections.abc import Sequence
from itertools import groupby

import msgspec

from bucketwire.errors import InvalidRequest, NotFound, Unavailable
from bucketwire.event.change import Origin
from bucketwire.metabase.base import Metabase
from bucketwire.metabase.values import NULL_VERSION_ID, Condition
from bucketwire.metainfo.lifecycle import (
    LIFECYCLE_DOCUMENT,
    LifecycleRule,
    Removal,
    due_removals,
    due_upload,
    lifecycle_from_document,
)

_PAGE_VERSIONS = 1_000
_PAGE_UPLOADS = 200
LIFECYCLE_PRINCIPAL = "s3.amazonaws.com"
"""Who stands in messages for the lifecycle, as on S3."""


class LifecycleCounts(msgspec.Struct):
    """What a run has done."""

    buckets: int = 0
    expired_objects: int = 0
    expired_versions: int = 0
    expired_delete_markers: int = 0
    aborted_uploads: int = 0
    failed: dict[str, str] = {}
    """Why it could not be done, by bucket."""


def run_lifecycle(metabase: Metabase, now_ns: int) -> LifecycleCounts:
    """Remove all that is due by then; what was done. A bucket that fails keeps none behind it."""
    counts = LifecycleCounts()
    origin = Origin(LIFECYCLE_PRINCIPAL, LIFECYCLE_PRINCIPAL, secrets.token_hex(8).upper(), "lifecycle")
    for bucket, document in metabase.buckets.with_document(LIFECYCLE_DOCUMENT):
        try:
            rules = lifecycle_from_document(document)
            _expire_objects(metabase, bucket.name, rules, now_ns, origin, counts)
            _abort_uploads(metabase, bucket.name, rules, now_ns, counts)
        except NotFound:
            continue  # the bucket was deleted meanwhile
        except Unavailable:
            raise
        except Exception as problem:  # noqa: BLE001 - whatever it is, the other buckets must come
            counts.failed[bucket.name] = f"{type(problem).__name__}: {problem}"
            continue
        counts.buckets += 1
    return counts


def _expire_objects(
    metabase: Metabase,
    bucket: str,
    rules: Sequence[LifecycleRule],
    now_ns: int,
    origin: Origin,
    counts: LifecycleCounts,
) -> None:
    after = ""
    while versions := metabase.objects.versions_of_keys(bucket, after=after, limit=_PAGE_VERSIONS):
        for _, of_key in groupby(versions, key=lambda stored: stored.key):
            for removal in due_removals(rules, list(of_key), now_ns):
                if _remove(metabase, bucket, removal, origin):
                    _count(counts, removal)
        after = versions[-1].key


def _remove(metabase: Metabase, bucket: str, removal: Removal, origin: Origin) -> bool:
    """Whether it was there to be removed."""
    stored = removal.stored
    try:
        metabase.objects.delete(
            bucket,
            stored.key,
            origin,
            version=None if removal.current else stored.version_id or NULL_VERSION_ID,
            missing_transmits=False,
            expired=True,
            condition=Condition(if_version=stored.version),
        )
    except InvalidRequest as problem:
        if problem.code != "PreconditionFailed":
            raise
        return False
    return True


def _count(counts: LifecycleCounts, removal: Removal) -> None:
    if removal.current:
        counts.expired_objects += 1
    elif removal.stored.is_marker:
        counts.expired_delete_markers += 1
    else:
        counts.expired_versions += 1


def _abort_uploads(
    metabase: Metabase, bucket: str, rules: Sequence[LifecycleRule], now_ns: int, counts: LifecycleCounts
) -> None:
    key, upload_id = "", ""
    while True:
        page = metabase.uploads.page(
            bucket, prefix="", delimiter="", after_key=key, after_upload_id=upload_id, limit=_PAGE_UPLOADS
        )
        for upload in page.uploads:
            if due_upload(rules, upload, now_ns):
                counts.aborted_uploads += _abort(metabase, bucket, upload.key, upload.id)
        if page.next_key is None:
            return
        key, upload_id = page.next_key, page.next_upload_id or ""


def _abort(metabase: Metabase, bucket: str, key: str, upload_id: str) -> bool:
    try:
        metabase.uploads.abort(bucket, key, upload_id)
    except NotFound as problem:
        if problem.code != "NoSuchUpload":
            raise
        return False
    return True
