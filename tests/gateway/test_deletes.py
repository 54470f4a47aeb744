"""DeleteObjects and conditional deletes, through boto3."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from threading import Event, Lock, get_ident
from typing import Any

import pytest

from bucketwire.gateway.app import THREADS
from gateway.in_process import InProcess
from gateway.refused import refusal
from gateway.running import OTHER, RunningGateway
from wire import until

LONG_AGO = datetime(2015, 1, 1, tzinfo=UTC)


def put_all(s3: Any, bucket: str, *keys: str) -> None:
    for key in keys:
        s3.put_object(Bucket=bucket, Key=key, Body=b"")


def enable(s3: Any, bucket: str) -> None:
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})


def delete(s3: Any, bucket: str, *objects: dict[str, Any], quiet: bool = False) -> Any:
    return s3.delete_objects(Bucket=bucket, Delete={"Objects": list(objects), "Quiet": quiet})


def test_many_are_deleted_in_one_request(s3: Any, bucket: str) -> None:
    keys = [f"k{number}" for number in range(5)]
    put_all(s3, bucket, *keys)
    answer = delete(s3, bucket, *({"Key": key} for key in [*keys, "missing"]))
    assert [each["Key"] for each in answer["Deleted"]] == [*keys, "missing"]
    assert "Errors" not in answer
    assert s3.list_objects_v2(Bucket=bucket)["KeyCount"] == 0
    put_all(s3, bucket, "one")
    assert "Deleted" not in delete(s3, bucket, {"Key": "one"}, quiet=True)
    assert s3.list_objects_v2(Bucket=bucket)["KeyCount"] == 0


def test_a_thousand_keys_are_the_most(s3: Any, bucket: str) -> None:
    most = [{"Key": f"k{number}"} for number in range(1000)]
    assert len(delete(s3, bucket, *most)["Deleted"]) == 1000
    for objects in ([*most, {"Key": "one-more"}], []):
        assert refusal(s3.delete_objects, Bucket=bucket, Delete={"Objects": objects}) == ("MalformedXML", 400)


def test_nobody_waits_for_those_who_delete_many(
    gateway: RunningGateway, s3: Any, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three requests whose deletes do not end before all else is done."""
    released, lock, under_way, together = Event(), Lock(), set[int](), set[int]()
    delete_one = gateway.metabase.objects.delete

    def slowly(*given: Any, **more: Any) -> Any:
        with lock:
            under_way.add(get_ident())
            together.add(len(under_way))
        released.wait(60)
        with lock:
            under_way.discard(get_ident())
        return delete_one(*given, **more)

    monkeypatch.setattr(gateway.metabase.objects, "delete", slowly)
    client = gateway.client("s3", max_pool_connections=3)
    with ThreadPoolExecutor(3) as threads:
        keys = [{"Key": f"k{number}"} for number in range(200)]
        deleted = [threads.submit(delete, client, bucket, *keys) for _ in range(3)]
        try:
            until(lambda: len(under_way) >= THREADS // 2, 60, lambda: f"{len(under_way)} deletes under way")
            put_all(s3, bucket, *(f"other-{number}" for number in range(20)))
            assert not any(each.done() for each in deleted)
        finally:
            released.set()
        assert [len(each.result(60)["Deleted"]) for each in deleted] == [200] * 3
    assert max(together) == THREADS // 2


def test_markers_and_versions_are_told_apart(s3: Any, bucket: str) -> None:
    enable(s3, bucket)
    version = s3.put_object(Bucket=bucket, Key="k", Body=b"x")["VersionId"]
    (made,) = delete(s3, bucket, {"Key": "k"})["Deleted"]
    assert made["DeleteMarker"] is True
    assert "VersionId" not in made
    gone = delete(
        s3,
        bucket,
        {"Key": "k", "VersionId": version},
        {"Key": "k", "VersionId": made["DeleteMarkerVersionId"]},
    )["Deleted"]
    assert gone[0] == {"Key": "k", "VersionId": version}
    assert gone[1]["DeleteMarkerVersionId"] == gone[1]["VersionId"] == made["DeleteMarkerVersionId"]
    assert "Versions" not in s3.list_object_versions(Bucket=bucket)


def test_one_bad_entry_does_not_stop_the_others(s3: Any, bucket: str) -> None:
    put_all(s3, bucket, "a", "b")
    answer = delete(s3, bucket, {"Key": "a", "VersionId": "rubbish"}, {"Key": "b"})
    (error,) = answer["Errors"]
    assert (error["Key"], error["VersionId"], error["Code"]) == ("a", "rubbish", "InvalidArgument")
    assert [each["Key"] for each in answer["Deleted"]] == ["b"]


def test_a_key_that_no_object_can_have_gets_no_delete_marker(gateway: Any, s3: Any, bucket: str) -> None:
    enable(s3, bucket)
    client = gateway.client("s3", parameter_validation=False)
    answer = delete(client, bucket, {"Key": ""}, {"Key": "x" * 1025}, {"Key": "y" * 1024})
    assert [each["Code"] for each in answer["Errors"]] == ["UserKeyMustBeSpecified", "KeyTooLongError"]
    assert [each["Key"] for each in answer["Deleted"]] == ["y" * 1024]
    assert len(s3.list_object_versions(Bucket=bucket)["DeleteMarkers"]) == 1
    client.close()


def test_a_delete_goes_through_only_for_what_the_client_believes_to_be_there(s3: Any, bucket: str) -> None:
    etag = s3.put_object(Bucket=bucket, Key="k", Body=b"x")["ETag"]
    made = s3.head_object(Bucket=bucket, Key="k")["LastModified"]
    for wrong in ({"IfMatch": "other"}, {"IfMatchSize": 9}, {"IfMatchLastModifiedTime": LONG_AGO}):
        assert refusal(s3.delete_object, Bucket=bucket, Key="k", **wrong) == ("PreconditionFailed", 412)
        s3.delete_object(Bucket=bucket, Key="missing", **wrong)
    for right in (
        {"IfMatch": etag},
        {"IfMatch": "*"},
        {"IfMatchSize": 1},
        {"IfMatch": etag, "IfMatchSize": 1, "IfMatchLastModifiedTime": made},
    ):
        if "IfMatchLastModifiedTime" in right:
            right["IfMatchLastModifiedTime"] = s3.head_object(Bucket=bucket, Key="k")["LastModified"]
        s3.delete_object(Bucket=bucket, Key="k", **right)
        assert s3.list_objects_v2(Bucket=bucket)["KeyCount"] == 0
        s3.put_object(Bucket=bucket, Key="k", Body=b"x")


def test_a_condition_holds_for_each_of_many(s3: Any, bucket: str) -> None:
    put_all(s3, bucket, "a", "b", "c")
    answer = delete(
        s3,
        bucket,
        {"Key": "a", "ETag": "other"},
        {"Key": "b", "Size": 0},
        {"Key": "c", "LastModifiedTime": LONG_AGO},
    )
    assert [(each["Key"], each["Code"]) for each in answer["Errors"]] == [
        ("a", "PreconditionFailed"),
        ("c", "PreconditionFailed"),
    ]
    assert [each["Key"] for each in answer["Deleted"]] == ["b"]


def test_a_delete_marker_matches_any_but_no_etag(s3: Any, bucket: str) -> None:
    enable(s3, bucket)
    version = s3.put_object(Bucket=bucket, Key="k", Body=b"")["VersionId"]
    marker = s3.delete_object(Bucket=bucket, Key="k")["VersionId"]
    assert refusal(s3.delete_object, Bucket=bucket, Key="k", IfMatch="x") == ("PreconditionFailed", 412)
    assert s3.delete_object(Bucket=bucket, Key="k", IfMatch="*")["VersionId"] == marker
    assert refusal(s3.delete_object, Bucket=bucket, Key="k", VersionId=version, IfMatchSize=3) == (
        "PreconditionFailed",
        412,
    )
    assert s3.delete_object(Bucket=bucket, Key="k", VersionId=version, IfMatchSize=0)["VersionId"] == version


def test_who_may_not_write_may_not_delete(s3: Any, gateway: Any, bucket: str) -> None:
    put_all(s3, bucket, "k")
    other = gateway.client("s3", OTHER)
    assert refusal(other.delete_objects, Bucket=bucket, Delete={"Objects": [{"Key": "k"}]}) == (
        "AccessDenied",
        403,
    )
    other.close()


def test_who_may_only_write_deletes_no_version(s3: Any, gateway: Any, bucket: str) -> None:
    enable(s3, bucket)
    s3.put_bucket_acl(Bucket=bucket, ACL="public-read-write")
    version = s3.put_object(Bucket=bucket, Key="k", Body=b"x")["VersionId"]
    other = gateway.client("s3", OTHER)
    assert refusal(other.delete_object, Bucket=bucket, Key="k", VersionId=version) == ("AccessDenied", 403)
    answer = delete(
        other, bucket, {"Key": "k", "VersionId": version}, {"Key": "k", "VersionId": "null"}, {"Key": "k"}
    )
    assert [each["Code"] for each in answer["Errors"]] == ["AccessDenied", "AccessDenied"]
    assert [each["DeleteMarker"] for each in answer["Deleted"]] == [True]
    assert s3.get_object(Bucket=bucket, Key="k", VersionId=version)["Body"].read() == b"x"
    other.close()


def test_a_document_without_a_digest_is_taken(tmp_path: Any) -> None:
    gateway = InProcess(tmp_path)
    gateway.signed("PUT", "/bucket")
    body = b"<Delete><Object><Key>k</Key></Object></Delete>"
    answer = gateway.signed("POST", "/bucket?delete", body)
    gateway.close()
    assert (answer.status, answer.field("Key")) == (200, "k")
    assert b"<DeleteResult " in answer.body
