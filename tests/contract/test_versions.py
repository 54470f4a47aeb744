"""The contract of `Objects` in buckets with versioning: rows, answers, and the change of each mutation."""

from typing import Any

import pytest

from bucketwire.errors import InvalidRequest, NotFound
from bucketwire.event.change import ObjectChange, Status, Versioning, decode_change
from bucketwire.event.name import Operation
from bucketwire.metabase import mutations
from bucketwire.metabase.base import Metabase
from bucketwire.metabase.values import Condition, Deleted, Slice, StoredObject
from contract.conftest import Backend
from factories import new_object, origin, rule

ALL_EVENTS = (
    "s3:ObjectCreated:*",
    "s3:ObjectRemoved:*",
    "s3:ObjectTagging:*",
    "s3:ObjectAcl:Put",
    "s3:LifecycleExpiration:*",
)


@pytest.fixture
def watched(metabase: Metabase, bucket: str) -> str:
    metabase.rules.edit(bucket, lambda _: [rule(*ALL_EVENTS)])
    return bucket


@pytest.fixture
def versioned(metabase: Metabase, watched: str) -> str:
    metabase.buckets.set_versioning(watched, Versioning.ENABLED)
    return watched


def put(metabase: Metabase, bucket: str, content: bytes = b"hello", key: str = "k") -> StoredObject:
    return metabase.objects.put(bucket, new_object(key, content), Operation.PUT, origin())


def delete(metabase: Metabase, bucket: str, version: str | None = None, *, expired: bool = False) -> Deleted:
    return metabase.objects.delete(
        bucket, "k", origin(), version=version, missing_transmits=True, expired=expired
    )


def last_changes(metabase: Metabase, count: int) -> list[ObjectChange]:
    start = metabase.changes.start()
    end = metabase.changes.head(start, 1_000_000)
    return [decode_change(row) for row in metabase.changes.read(Slice(start, end))][-count:]


def statuses(metabase: Metabase, bucket: str) -> list[Status]:
    return [each.status for each in metabase.objects.versions_of_keys(bucket, after="", limit=10)]


def test_each_put_is_a_version_of_its_own(metabase: Metabase, versioned: str) -> None:
    first, second = put(metabase, versioned, b"1"), put(metabase, versioned, b"22")
    assert metabase.objects.get(versioned, "k") == second
    assert metabase.objects.get(versioned, "k", first.version_id) == first
    assert statuses(metabase, versioned) == [Status.COMMITTED_VERSIONED] * 2
    (change,) = last_changes(metabase, 1)
    assert (change.new, change.old, change.previous) == (second.state(), None, first.state())


def test_a_delete_makes_a_marker_and_knows_what_was_current(metabase: Metabase, versioned: str) -> None:
    stored = put(metabase, versioned)
    deleted = delete(metabase, versioned)
    marker = metabase.objects.get(versioned, "k")
    assert marker.is_marker
    assert deleted == Deleted("k", marker.version_id, is_marker=True)
    (change,) = last_changes(metabase, 1)
    assert change.operation is Operation.DELETE_MARKER_CREATED
    assert (change.new, change.old, change.previous) == (marker.state(), None, stored.state())


def test_deleting_a_marker_brings_the_object_back(metabase: Metabase, versioned: str) -> None:
    stored = put(metabase, versioned)
    marker = delete(metabase, versioned)
    assert delete(metabase, versioned, marker.version_id) == Deleted("k", marker.version_id, is_marker=True)
    assert metabase.objects.get(versioned, "k") == stored
    (change,) = last_changes(metabase, 1)
    assert change.operation is Operation.DELETE
    assert change.old is not None
    assert change.old.status is Status.DELETE_MARKER_VERSIONED


def test_deleting_a_version_removes_it_for_good(metabase: Metabase, versioned: str) -> None:
    first, second = put(metabase, versioned, b"1"), put(metabase, versioned, b"22")
    delete(metabase, versioned, first.version_id)
    assert metabase.objects.get(versioned, "k") == second
    with pytest.raises(NotFound) as missing:
        metabase.objects.get(versioned, "k", first.version_id)
    assert missing.value.code == "NoSuchVersion"
    (change,) = last_changes(metabase, 1)
    assert (change.operation, change.old) == (Operation.DELETE, first.state())


def test_deleting_a_version_that_does_not_exist_is_no_change(metabase: Metabase, versioned: str) -> None:
    put(metabase, versioned)
    delete(metabase, versioned, "00000000000000aa")
    assert len(last_changes(metabase, 10)) == 1


def test_objects_from_before_versioning_are_the_null_version(metabase: Metabase, watched: str) -> None:
    before = put(metabase, watched, b"old")
    metabase.buckets.set_versioning(watched, Versioning.ENABLED)
    put(metabase, watched, b"new")
    assert metabase.objects.get(watched, "k", "null") == before
    delete(metabase, watched, "null")
    assert statuses(metabase, watched) == [Status.COMMITTED_VERSIONED]


def test_a_suspended_bucket_replaces_the_null_version_alone(metabase: Metabase, versioned: str) -> None:
    kept = put(metabase, versioned, b"kept")
    metabase.buckets.set_versioning(versioned, Versioning.SUSPENDED)
    first = put(metabase, versioned, b"1")
    put(metabase, versioned, b"22")
    assert statuses(metabase, versioned) == [Status.COMMITTED_UNVERSIONED, Status.COMMITTED_VERSIONED]
    (change,) = last_changes(metabase, 1)
    assert (change.old, change.previous) == (first.state(), None)
    assert metabase.objects.get(versioned, "k", kept.version_id) == kept


def test_a_delete_in_a_suspended_bucket_knows_which_null_version_it_replaced(
    metabase: Metabase, versioned: str
) -> None:
    kept = put(metabase, versioned, b"kept")
    metabase.buckets.set_versioning(versioned, Versioning.SUSPENDED)
    replaced = put(metabase, versioned, b"null")
    assert delete(metabase, versioned) == Deleted("k", "null", is_marker=True)
    assert statuses(metabase, versioned) == [Status.DELETE_MARKER_UNVERSIONED, Status.COMMITTED_VERSIONED]
    (change,) = last_changes(metabase, 1)
    assert change.operation is Operation.DELETE_MARKER_CREATED
    assert (change.old, change.previous) == (replaced.state(), None)
    delete(metabase, versioned, "null")
    delete(metabase, versioned)
    (change,) = last_changes(metabase, 1)
    assert (change.old, change.previous) == (None, kept.state())


def test_a_write_in_a_suspended_bucket_does_not_search_the_versions_of_a_key_whose_current_one_is_null(
    metabase: Metabase, backend: Backend, versioned: str
) -> None:
    put(metabase, versioned)
    metabase.buckets.set_versioning(versioned, Versioning.SUSPENDED)
    searched: list[str] = []

    def write(rows: Any) -> None:
        search = rows.null_version
        rows.null_version = lambda bucket_id, key: (searched.append(key), search(bucket_id, key))[1]
        mutations.put(rows, versioned, new_object("k"), Operation.PUT, origin())

    for _ in range(3):
        backend.held(metabase, write)
    assert searched == ["k"]
    assert statuses(metabase, versioned) == [Status.COMMITTED_UNVERSIONED, Status.COMMITTED_VERSIONED]


def test_expiry_has_its_own_operations(metabase: Metabase, versioned: str) -> None:
    stored = put(metabase, versioned)
    delete(metabase, versioned, expired=True)
    delete(metabase, versioned, stored.version_id, expired=True)
    operations = [change.operation for change in last_changes(metabase, 2)]
    assert operations == [Operation.EXPIRATION_DELETE_MARKER_CREATED, Operation.EXPIRATION_DELETE]


@pytest.mark.parametrize("text", ["8000000000000000", "ffffffffffffffff", "12", "", "NULL"])
def test_what_cannot_be_a_version_id_is_refused(metabase: Metabase, versioned: str, text: str) -> None:
    put(metabase, versioned)
    with pytest.raises(InvalidRequest) as raised:
        metabase.objects.get(versioned, "k", text)
    assert raised.value.code == "InvalidArgument"


def test_a_move_is_a_copy_there_and_a_delete_here(metabase: Metabase, watched: str) -> None:
    metabase.buckets.create("target", "owner-1", "us-east-1")
    metabase.rules.edit("target", lambda _: [rule(*ALL_EVENTS)])
    metabase.objects.put(watched, new_object("k", blob="blob-1"), Operation.PUT, origin())
    moved = metabase.objects.move(watched, "k", "target", "there", origin())
    assert metabase.objects.get("target", "there") == moved
    assert metabase.objects.dropped_blobs(10) == []
    with pytest.raises(NotFound):
        metabase.objects.get(watched, "k")
    told = [(change.operation, change.bucket.name, change.key) for change in last_changes(metabase, 2)]
    assert told == [(Operation.COPY, "target", "there"), (Operation.DELETE, watched, "k")]


def test_a_move_looks_once_at_each_of_the_two_buckets(
    metabase: Metabase, backend: Backend, watched: str
) -> None:
    put(metabase, watched)
    looked_at: list[str] = []

    def move(rows: Any) -> None:
        look = rows.bucket
        rows.bucket = lambda name: (looked_at.append(name), look(name))[1]
        mutations.move(rows, watched, "k", watched, "there", origin())

    backend.held(metabase, move)
    assert looked_at == [watched, watched]
    assert metabase.objects.get(watched, "there").key == "there"


def test_what_cannot_be_moved_is_refused(metabase: Metabase, versioned: str) -> None:
    with pytest.raises(NotFound):
        metabase.objects.move(versioned, "nothing", versioned, "k", origin())
    put(metabase, versioned)
    with pytest.raises(InvalidRequest):
        metabase.objects.move(versioned, "k", versioned, "k", origin())
    assert len(last_changes(metabase, 10)) == 1


def test_tags_are_a_change_of_the_object(metabase: Metabase, watched: str) -> None:
    stored = put(metabase, watched)
    metabase.objects.set_tags(watched, "k", None, {"colour": "blue"}, origin())
    assert metabase.objects.get(watched, "k").tags == {"colour": "blue"}
    metabase.objects.set_tags(watched, "k", None, {}, origin())
    put_tags, delete_tags = last_changes(metabase, 2)
    assert (put_tags.operation, delete_tags.operation) == (Operation.TAGGING_PUT, Operation.TAGGING_DELETE)
    assert put_tags.old == stored.state()
    assert put_tags.new is not None
    assert put_tags.new.tags == {"colour": "blue"}
    assert put_tags.committed_at_ns > stored.created_at_ns


def test_an_acl_is_kept_and_is_a_change_if_it_differs(metabase: Metabase, watched: str) -> None:
    put(metabase, watched)
    for _ in range(2):
        metabase.objects.set_acl(watched, "k", None, "public-read", origin())
    assert metabase.objects.get(watched, "k").acl == "public-read"
    assert [each.operation for each in last_changes(metabase, 10)] == [Operation.PUT, Operation.ACL_PUT]


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        (Condition(if_none_match="*"), "PreconditionFailed"),
        (Condition(if_match="0" * 32), "PreconditionFailed"),
        (Condition(if_match="5d41402abc4b2a76b9719d911017c592"), None),
        (Condition(if_none_match="0" * 32), None),
    ],
)
def test_conditions_are_held_against_the_current_object(
    metabase: Metabase, watched: str, condition: Condition, code: str | None
) -> None:
    before = put(metabase, watched)
    new = new_object("k", b"newer")
    if code is None:
        metabase.objects.put(watched, new, Operation.PUT, origin(), condition)
        return
    with pytest.raises(InvalidRequest) as refused:
        metabase.objects.put(watched, new, Operation.PUT, origin(), condition)
    assert refused.value.code == code
    assert metabase.objects.get(watched, "k") == before
    assert len(last_changes(metabase, 10)) == 1


def test_a_delete_marker_is_no_object_to_a_condition(metabase: Metabase, versioned: str) -> None:
    put(metabase, versioned)
    delete(metabase, versioned)
    metabase.objects.put(versioned, new_object("k"), Operation.PUT, origin(), Condition(if_none_match="*"))
    with pytest.raises(NotFound):
        metabase.objects.put(versioned, new_object("z"), Operation.PUT, origin(), Condition(if_match="*"))


def test_listings_show_current_objects_and_all_versions(metabase: Metabase, versioned: str) -> None:
    put(metabase, versioned, key="a")
    put(metabase, versioned, key="k")
    put(metabase, versioned, key="k")
    delete(metabase, versioned)
    put(metabase, versioned, key="z")
    page = metabase.objects.page(versioned, prefix="", delimiter="", after="", limit=10)
    assert [each.key for each in page.objects] == ["a", "z"]
    seen = []
    after, after_version = "", None
    while True:
        versions = metabase.objects.versions_page(
            versioned, prefix="", delimiter="", after=after, after_version=after_version, limit=2
        )
        seen += [(each.key, each.is_latest, each.is_marker) for each in versions.objects]
        if versions.next_after is None:
            break
        after, after_version = versions.next_after, versions.next_version
    assert seen == [
        ("a", True, False),
        ("k", True, True),
        ("k", False, False),
        ("k", False, False),
        ("z", True, False),
    ]


def test_sequencers_grow_across_delete_and_recreate(metabase: Metabase, watched: str) -> None:
    for _ in range(3):
        put(metabase, watched)
        delete(metabase, watched)
    times = [change.committed_at_ns for change in last_changes(metabase, 6)]
    assert times == sorted(set(times))
