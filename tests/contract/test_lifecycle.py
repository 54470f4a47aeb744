"""The lifecycle on every metabase: nothing goes but what was looked at, and nothing twice."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from bucketwire.errors import InvalidRequest
from bucketwire.event.change import Versioning
from bucketwire.event.name import Operation
from bucketwire.metabase.base import Metabase
from bucketwire.metabase.values import Condition, Upload
from bucketwire.metainfo.expire import LifecycleCounts, run_lifecycle
from bucketwire.metainfo.lifecycle import LIFECYCLE_DOCUMENT
from factories import new_object, origin

LATER_NS = 1 << 62
LAST_KEY = chr(0x10FFFF) * 3
PUTS = {"a": 1, "b": 3, "c": 1, LAST_KEY: 1}
DOCUMENT = """[{"Status": "Enabled", "ID": "all", "Filter": {},
    "Expiration": {"Days": 1}, "NoncurrentVersionExpiration": {"NoncurrentDays": 1},
    "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 1}}]"""


def put(metabase: Metabase, bucket: str, key: str = "k") -> int:
    return metabase.objects.put(bucket, new_object(key), Operation.PUT, origin()).version


def delete_if(metabase: Metabase, bucket: str, if_version: int, version: str | None = None) -> None:
    metabase.objects.delete(
        bucket,
        "k",
        origin(),
        version=version,
        missing_transmits=False,
        condition=Condition(if_version=if_version),
    )


def left(metabase: Metabase, bucket: str) -> int:
    return len(metabase.objects.versions_of_keys(bucket, after="", limit=1_000))


def test_a_page_ends_with_the_last_version_of_a_key_and_has_no_bytes(metabase: Metabase, bucket: str) -> None:
    metabase.buckets.set_versioning(bucket, Versioning.ENABLED)
    versions = {key: [put(metabase, bucket, key) for _ in range(count)] for key, count in PUTS.items()}
    pages, after = [], ""
    while page := metabase.objects.versions_of_keys(bucket, after=after, limit=2):
        pages.append([each.key for each in page])
        assert [each.version for each in page if each.key == page[-1].key] == versions[page[-1].key][::-1]
        assert all(each.inline is None and each.size_bytes == 5 for each in page)
        after = page[-1].key
    assert pages == [["a", "b", "b", "b"], ["c", LAST_KEY]]


@pytest.mark.parametrize("versioning", Versioning)
def test_a_delete_of_a_version_that_was_replaced_changes_nothing(
    metabase: Metabase, bucket: str, versioning: Versioning
) -> None:
    metabase.buckets.set_versioning(bucket, versioning)
    old, new = put(metabase, bucket), put(metabase, bucket)
    before = left(metabase, bucket)
    for named in (None, "null"):
        with pytest.raises(InvalidRequest) as raised:
            delete_if(metabase, bucket, old, named)
        assert raised.value.code == "PreconditionFailed"
    assert left(metabase, bucket) == before
    delete_if(metabase, bucket, new)


def test_a_marker_can_be_named_by_its_version(metabase: Metabase, bucket: str) -> None:
    metabase.buckets.set_versioning(bucket, Versioning.SUSPENDED)
    metabase.objects.delete(bucket, "k", origin(), missing_transmits=False)
    marker = metabase.objects.get(bucket, "k")
    delete_if(metabase, bucket, marker.version, "null")
    assert left(metabase, bucket) == 0


def test_runs_at_the_same_time_do_everything_once(metabase: Metabase, bucket: str) -> None:
    metabase.buckets.set_document(bucket, LIFECYCLE_DOCUMENT, DOCUMENT)
    for number in range(30):
        put(metabase, bucket, f"k{number}")
    metabase.uploads.create(bucket, Upload("u", "b", "owner-1", 0))
    with ThreadPoolExecutor(3) as gateways:
        runs = list(gateways.map(lambda _: run_lifecycle(metabase, LATER_NS), range(3)))
    assert sum(run.expired_objects for run in runs) == 30
    assert sum(run.aborted_uploads for run in runs) == 1
    assert left(metabase, bucket) == 0


@pytest.mark.parametrize("versioning", [Versioning.ENABLED, Versioning.SUSPENDED])
def test_runs_end_with_nothing_left(metabase: Metabase, bucket: str, versioning: Versioning) -> None:
    metabase.buckets.set_document(bucket, LIFECYCLE_DOCUMENT, DOCUMENT)
    put(metabase, bucket)
    metabase.buckets.set_versioning(bucket, versioning)
    put(metabase, bucket)
    while run_lifecycle(metabase, LATER_NS) != LifecycleCounts(buckets=1):
        assert left(metabase, bucket) < 4
    assert left(metabase, bucket) == 0


def test_a_bucket_that_fails_keeps_none_behind_it(metabase: Metabase) -> None:
    for name, document in {"a-new-kind": '[{"From": "the future"}]', "b-plain": DOCUMENT}.items():
        metabase.buckets.create(name, "owner-1", "us-east-1")
        metabase.buckets.set_document(name, LIFECYCLE_DOCUMENT, document)
        put(metabase, name)
    counts = run_lifecycle(metabase, LATER_NS)
    assert (counts.buckets, counts.expired_objects, list(counts.failed)) == (1, 1, ["a-new-kind"])
    assert (left(metabase, "a-new-kind"), left(metabase, "b-plain")) == (1, 0)
