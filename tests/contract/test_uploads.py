"""The contract of `Uploads`."""

import msgspec
import pytest

from bucketwire.errors import InvalidRequest, NotFound
from bucketwire.event.change import decode_change
from bucketwire.event.name import Operation
from bucketwire.metabase.base import Metabase
from bucketwire.metabase.values import NewObject, Part, Segment, Slice, Upload
from factories import new_object, origin, rule


def start(metabase: Metabase, bucket: str, key: str = "k") -> str:
    return metabase.uploads.create(bucket, Upload("id", key, "owner-1", 0)).id


def add(metabase: Metabase, bucket: str, upload_id: str, number: int, blob: str) -> Part:
    return metabase.uploads.put_part(bucket, "k", upload_id, Part(number, 5, "etag", blob))


def made_of(*parts: Part) -> NewObject:
    return msgspec.structs.replace(
        new_object("k"), inline=None, segments=tuple(Segment(part.blob, part.size_bytes) for part in parts)
    )


def test_a_completed_upload_is_one_object_and_one_change(metabase: Metabase, bucket: str) -> None:
    metabase.rules.edit(bucket, lambda _: [rule()])
    upload_id = start(metabase, bucket)
    parts = [add(metabase, bucket, upload_id, number, f"blob-{number}") for number in (1, 2, 3)]
    stored = metabase.uploads.complete(
        bucket, upload_id, made_of(*parts[:2]), parts[:2], Operation.COMPLETE_MULTIPART_UPLOAD, origin()
    )
    assert [segment.blob for segment in stored.segments] == ["blob-1", "blob-2"]
    assert metabase.objects.get(bucket, "k") == stored
    assert metabase.objects.dropped_blobs(10) == ["blob-3"]
    first = metabase.changes.start()
    rows = metabase.changes.read(Slice(first, metabase.changes.head(first, 1000)))
    assert [decode_change(row).operation for row in rows] == [Operation.COMPLETE_MULTIPART_UPLOAD]
    with pytest.raises(NotFound) as missing:
        metabase.uploads.get(bucket, "k", upload_id)
    assert missing.value.code == "NoSuchUpload"


def test_an_upload_under_way_is_neither_object_nor_change(metabase: Metabase, bucket: str) -> None:
    metabase.rules.edit(bucket, lambda _: [rule()])
    upload_id = start(metabase, bucket)
    add(metabase, bucket, upload_id, 1, "blob-1")
    assert metabase.objects.page(bucket, prefix="", delimiter="", after="", limit=10).objects == []
    metabase.uploads.abort(bucket, "k", upload_id)
    first = metabase.changes.start()
    assert metabase.changes.head(first, 1000) == first
    assert metabase.objects.dropped_blobs(10) == ["blob-1"]


def test_a_part_that_is_sent_again_replaces_the_first(metabase: Metabase, bucket: str) -> None:
    upload_id = start(metabase, bucket)
    add(metabase, bucket, upload_id, 1, "first")
    add(metabase, bucket, upload_id, 1, "second")
    (part,) = metabase.uploads.parts(bucket, "k", upload_id, after=0, limit=10)
    assert part.blob == "second"
    assert metabase.objects.dropped_blobs(10) == ["first"]


def test_a_part_that_was_replaced_meanwhile_is_refused(metabase: Metabase, bucket: str) -> None:
    upload_id = start(metabase, bucket)
    old = add(metabase, bucket, upload_id, 1, "first")
    add(metabase, bucket, upload_id, 1, "second")
    with pytest.raises(InvalidRequest) as refused:
        metabase.uploads.complete(bucket, upload_id, made_of(old), [old], Operation.PUT, origin())
    assert refused.value.code == "InvalidPart"
    metabase.uploads.get(bucket, "k", upload_id)


def test_uploads_are_paged_by_key_and_start(metabase: Metabase, bucket: str) -> None:
    ids = [start(metabase, bucket, key) for key in ("a", "a", "dir/x", "dir/y", "z")]
    seen, prefixes = [], []
    key, upload_id = "", ""
    while True:
        page = metabase.uploads.page(
            bucket, prefix="", delimiter="/", after_key=key, after_upload_id=upload_id, limit=1
        )
        seen += [each.id for each in page.uploads]
        prefixes += page.common_prefixes
        if page.next_key is None:
            break
        key, upload_id = page.next_key, page.next_upload_id or ""
    assert seen == [ids[0], ids[1], ids[4]]
    assert prefixes == ["dir/"]


def test_a_bucket_is_deleted_with_its_uploads(metabase: Metabase, bucket: str) -> None:
    upload_id = start(metabase, bucket)
    add(metabase, bucket, upload_id, 1, "blob-1")
    metabase.buckets.delete(bucket)
    assert metabase.objects.dropped_blobs(10) == ["blob-1"]
    metabase.buckets.create(bucket, "owner-1", "us-east-1")
    with pytest.raises(NotFound):
        metabase.uploads.get(bucket, "k", upload_id)


def test_orphans_are_told_from_blobs_in_use(metabase: Metabase, bucket: str) -> None:
    upload_id = start(metabase, bucket)
    add(metabase, bucket, upload_id, 1, "part")
    metabase.objects.put(bucket, new_object("o", blob="object"), Operation.PUT, origin())
    metabase.objects.put(bucket, new_object("d", blob="dropped"), Operation.PUT, origin())
    metabase.objects.delete(bucket, "d", origin(), missing_transmits=True)
    assert metabase.objects.unknown_blobs(["part", "object", "dropped", "orphan"]) == ["orphan"]
