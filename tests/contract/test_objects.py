"""The contract of `Objects`: the mutation, and the one change that it commits with itself."""

import uuid

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bucketwire.errors import NotFound
from bucketwire.event.change import ObjectChange, Versioning, decode_change
from bucketwire.event.name import Operation
from bucketwire.event.rule import Rule
from bucketwire.metabase.base import Metabase
from bucketwire.metabase.values import Slice
from factories import new_object, origin, rule


def stream(metabase: Metabase) -> list[ObjectChange]:
    """All changes that are kept."""
    start = metabase.changes.start()
    end = metabase.changes.head(start, 1_000_000)
    return [decode_change(row) for row in metabase.changes.read(Slice(start, end))]


def put_rules(metabase: Metabase, bucket: str, *rules: Rule) -> int:
    return metabase.rules.edit(bucket, lambda _: list(rules))


def test_an_object_comes_back_as_it_was_put(metabase: Metabase, bucket: str) -> None:
    metabase.objects.put(bucket, new_object(content=b"bytes"), Operation.PUT, origin())
    found = metabase.objects.get(bucket, "video.mp4")
    assert (found.inline, found.size_bytes, found.content_type) == (b"bytes", 5, "video/mp4")
    assert found.metadata == {"project": "blue"}


def test_without_a_rule_there_is_no_change(metabase: Metabase, bucket: str) -> None:
    metabase.objects.put(bucket, new_object(), Operation.PUT, origin())
    put_rules(metabase, bucket, rule(prefix="other/"))
    metabase.objects.put(bucket, new_object(), Operation.PUT, origin())
    assert stream(metabase) == []


def test_a_put_that_a_rule_accepts_is_one_full_change(metabase: Metabase, bucket: str) -> None:
    revision = put_rules(metabase, bucket, rule())
    stored = metabase.objects.put(bucket, new_object(), Operation.PUT, origin("caller"))
    (change,) = stream(metabase)
    assert change.operation is Operation.PUT
    assert change.bucket == metabase.buckets.get(bucket).ref()
    assert (change.new, change.old) == (stored.state(), None)
    assert change.origin == origin("caller")
    assert change.revision == revision
    assert change.committed_at_ns == stored.created_at_ns


def test_an_overwrite_is_one_creation_that_knows_what_it_replaced(metabase: Metabase, bucket: str) -> None:
    before = metabase.objects.put(bucket, new_object(content=b"old"), Operation.PUT, origin())
    put_rules(metabase, bucket, rule())
    metabase.objects.put(bucket, new_object(content=b"newer"), Operation.PUT, origin())
    (change,) = stream(metabase)
    assert change.operation is Operation.PUT
    assert change.old == before.state()


def test_a_delete_tells_what_was_deleted(metabase: Metabase, bucket: str) -> None:
    before = metabase.objects.put(bucket, new_object(), Operation.PUT, origin())
    put_rules(metabase, bucket, rule())
    metabase.objects.delete(bucket, "video.mp4", origin(), missing_transmits=True)
    (change,) = stream(metabase)
    assert (change.operation, change.old, change.new) == (Operation.DELETE, before.state(), None)
    with pytest.raises(NotFound) as missing:
        metabase.objects.get(bucket, "video.mp4")
    assert missing.value.code == "NoSuchKey"


@pytest.mark.parametrize("transmits", [True, False])
def test_deleting_a_missing_key_is_a_change_if_the_dialect_says_so(
    metabase: Metabase, bucket: str, transmits: bool
) -> None:
    put_rules(metabase, bucket, rule())
    metabase.objects.delete(bucket, "nothing", origin(), missing_transmits=transmits)
    assert len(stream(metabase)) == transmits


def test_writes_to_a_missing_bucket_are_refused(metabase: Metabase) -> None:
    for write in (
        lambda: metabase.objects.put("nothing", new_object(), Operation.PUT, origin()),
        lambda: metabase.objects.delete("nothing", "key", origin(), missing_transmits=True),
    ):
        with pytest.raises(NotFound) as missing:
            write()
        assert missing.value.code == "NoSuchBucket"


def test_a_blob_is_dropped_by_overwrite_and_delete_and_forgotten_when_told(
    metabase: Metabase, bucket: str
) -> None:
    metabase.objects.put(bucket, new_object(blob="blob-1"), Operation.PUT, origin())
    assert metabase.objects.dropped_blobs(10) == []
    metabase.objects.put(bucket, new_object(blob="blob-2"), Operation.PUT, origin())
    metabase.objects.delete(bucket, "video.mp4", origin(), missing_transmits=True)
    assert sorted(metabase.objects.dropped_blobs(10)) == ["blob-1", "blob-2"]
    metabase.objects.forget_blobs(["blob-1"])
    metabase.objects.forget_blobs(["blob-1"])
    assert metabase.objects.dropped_blobs(10) == ["blob-2"]


def pages(metabase: Metabase, bucket: str, prefix: str, delimiter: str, limit: int) -> list[str]:
    """Everything that a client sees that pages through a listing."""
    seen: list[str] = []
    after: str | None = ""
    while after is not None:
        page = metabase.objects.page(bucket, prefix=prefix, delimiter=delimiter, after=after, limit=limit)
        keys = [listed.key for listed in page.objects]
        assert keys == sorted(keys)
        lines = keys + page.common_prefixes
        assert len(lines) <= limit
        seen += lines
        after = page.next_after
    return seen


def naive_listing(keys: set[str], prefix: str, delimiter: str) -> set[str]:
    lines = set()
    for key in keys:
        if key.startswith(prefix):
            head, found, _ = key[len(prefix) :].partition(delimiter) if delimiter else (key, "", "")
            lines.add(prefix + head + delimiter if found else key)
    return lines


KEYS = st.sets(st.text("ab/é\U0010ffff", min_size=1, max_size=5), max_size=12)


@settings(max_examples=40)
@given(keys=KEYS, prefix=st.sampled_from(["", "a", "a/", "b/a", "é"]), delimiter=st.sampled_from(["", "/"]))
def test_pages_of_any_size_show_what_a_naive_listing_shows(
    metabase: Metabase, keys: set[str], prefix: str, delimiter: str
) -> None:
    bucket = metabase.buckets.create("listed", "owner-1", "us-east-1").name
    for key in keys:
        metabase.objects.put(bucket, new_object(key), Operation.PUT, origin())
    for limit in (1, 2, 1000):
        seen = pages(metabase, bucket, prefix, delimiter, limit)
        assert len(seen) == len(set(seen))
        assert set(seen) == naive_listing(keys, prefix, delimiter)
    for key in keys:
        metabase.objects.delete(bucket, key, origin(), missing_transmits=False)
    metabase.buckets.delete(bucket)


@settings(max_examples=20)
@given(keys=KEYS, hidden=KEYS, prefix=st.sampled_from(["", "a", "a/"]), delimiter=st.sampled_from(["", "/"]))
def test_pages_of_a_bucket_with_versions_show_what_is_current(
    metabase: Metabase, keys: set[str], hidden: set[str], prefix: str, delimiter: str
) -> None:
    bucket = metabase.buckets.create(uuid.uuid4().hex, "owner-1", "us-east-1").name
    metabase.buckets.set_versioning(bucket, Versioning.ENABLED)
    for key in [*keys, *hidden, *keys]:
        metabase.objects.put(bucket, new_object(key), Operation.PUT, origin())
    for key in hidden:
        metabase.objects.delete(bucket, key, origin(), missing_transmits=False)
    for limit in (1, 2, 1000):
        seen = pages(metabase, bucket, prefix, delimiter, limit)
        assert len(seen) == len(set(seen))
        assert set(seen) == naive_listing(keys - hidden, prefix, delimiter)
