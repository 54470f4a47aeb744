"""The contract of `Buckets`."""

from collections.abc import Iterator

import pytest

from bucketwire.errors import Conflict, NotFound
from bucketwire.event.name import Operation
from bucketwire.metabase.base import Metabase
from factories import new_object, origin


def test_a_bucket_that_was_made_is_found_and_listed_by_name(metabase: Metabase) -> None:
    second = metabase.buckets.create("second", "owner-1", "eu-west-1")
    first = metabase.buckets.create("first", "owner-1", "us-east-1")
    metabase.buckets.create("third", "owner-2", "us-east-1")
    assert metabase.buckets.get("second") == second
    assert metabase.buckets.owned_by("owner-1") == [first, second]


@pytest.mark.parametrize(
    ("owner", "code"), [("owner-1", "BucketAlreadyOwnedByYou"), ("owner-2", "BucketAlreadyExists")]
)
def test_a_name_is_given_once(metabase: Metabase, bucket: str, owner: str, code: str) -> None:
    with pytest.raises(Conflict) as refused:
        metabase.buckets.create(bucket, owner, "us-east-1")
    assert refused.value.code == code


def test_a_bucket_is_made_with_its_documents(metabase: Metabase) -> None:
    documents = {"acl": "public-read", "tags": "{}"}
    metabase.buckets.create("media", "owner-1", "us-east-1", documents.items())
    assert {kind: metabase.buckets.document("media", kind) for kind in documents} == documents
    with pytest.raises(Conflict):
        metabase.buckets.create("media", "owner-1", "us-east-1", [("acl", "private")])
    assert metabase.buckets.document("media", "acl") == "public-read"


class Torn(list[tuple[str, str]]):
    """Whoever goes through it dies behind the last one."""

    def __iter__(self) -> Iterator[tuple[str, str]]:
        yield from super().__iter__()
        raise EOFError


def test_a_bucket_whose_documents_cannot_be_kept_is_not_made(metabase: Metabase) -> None:
    with pytest.raises(EOFError):
        metabase.buckets.create("media", "owner-1", "us-east-1", Torn([("acl", "public-read")]))
    with pytest.raises(NotFound):
        metabase.buckets.get("media")
    metabase.buckets.create("media", "owner-1", "us-east-1")
    assert metabase.buckets.document("media", "acl") is None


def test_a_bucket_with_objects_is_not_deleted(metabase: Metabase, bucket: str) -> None:
    metabase.objects.put(bucket, new_object(), Operation.PUT, origin())
    with pytest.raises(Conflict) as refused:
        metabase.buckets.delete(bucket)
    assert refused.value.code == "BucketNotEmpty"
    assert metabase.buckets.get(bucket).name == bucket


def test_a_bucket_made_anew_has_another_id(metabase: Metabase, bucket: str) -> None:
    before = metabase.buckets.get(bucket).id
    metabase.buckets.delete(bucket)
    with pytest.raises(NotFound) as missing:
        metabase.buckets.get(bucket)
    assert missing.value.code == "NoSuchBucket"
    assert metabase.buckets.create(bucket, "owner-1", "us-east-1").id != before


def test_a_missing_bucket_is_not_deleted(metabase: Metabase) -> None:
    with pytest.raises(NotFound):
        metabase.buckets.delete("nothing")
