"""Versions and delete markers, through boto3."""

from typing import Any

import pytest

from gateway.refused import refusal, refused


@pytest.fixture
def versioned(s3: Any, bucket: str) -> str:
    """A bucket that keeps versions."""
    set_versioning(s3, bucket, "Enabled")
    return bucket


def set_versioning(s3: Any, bucket: str, status: str) -> None:
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": status})


def put(s3: Any, bucket: str, body: bytes, key: str = "k") -> str | None:
    found: str | None = s3.put_object(Bucket=bucket, Key=key, Body=body).get("VersionId")
    return found


def test_versioning_is_enabled_and_suspended_but_never_undone(s3: Any, bucket: str) -> None:
    assert "Status" not in s3.get_bucket_versioning(Bucket=bucket)
    for status in ("Enabled", "Suspended", "Enabled"):
        set_versioning(s3, bucket, status)
        assert s3.get_bucket_versioning(Bucket=bucket)["Status"] == status
    for configuration, code in (
        ({}, "IllegalVersioningConfigurationException"),
        ({"Status": "Off"}, "MalformedXML"),
    ):
        assert refusal(s3.put_bucket_versioning, Bucket=bucket, VersioningConfiguration=configuration) == (
            code,
            400,
        )
    assert refusal(
        s3.put_bucket_versioning,
        Bucket=bucket,
        VersioningConfiguration={"Status": "Enabled", "MFADelete": "Enabled"},
    ) == ("NotImplemented", 501)


def test_each_write_is_a_version_that_can_be_read(s3: Any, versioned: str) -> None:
    ids = [put(s3, versioned, body) for body in (b"one", b"two")]
    assert len(set(ids)) == 2
    newest = s3.get_object(Bucket=versioned, Key="k")
    assert (newest["Body"].read(), newest["VersionId"]) == (b"two", ids[1])
    for version, body in zip(ids, (b"one", b"two"), strict=True):
        got = s3.get_object(Bucket=versioned, Key="k", VersionId=version)
        assert (got["Body"].read(), got["VersionId"]) == (body, version)
        assert s3.head_object(Bucket=versioned, Key="k", VersionId=version)["VersionId"] == version


def test_a_version_id_is_told_only_where_versions_are_kept(s3: Any, bucket: str) -> None:
    assert put(s3, bucket, b"plain") is None
    assert "VersionId" not in s3.get_object(Bucket=bucket, Key="k")
    set_versioning(s3, bucket, "Enabled")
    assert s3.get_object(Bucket=bucket, Key="k")["VersionId"] == "null"
    assert put(s3, bucket, b"versioned")
    set_versioning(s3, bucket, "Suspended")
    assert put(s3, bucket, b"suspended") is None
    assert s3.get_object(Bucket=bucket, Key="k", VersionId="null")["Body"].read() == b"suspended"
    assert len(s3.list_object_versions(Bucket=bucket)["Versions"]) == 2


def test_a_delete_hides_the_object_behind_a_marker(s3: Any, versioned: str) -> None:
    version = put(s3, versioned, b"x")
    deleted = s3.delete_object(Bucket=versioned, Key="k")
    assert deleted["DeleteMarker"] is True
    for call, code in ((s3.get_object, "NoSuchKey"), (s3.head_object, "404")):
        answer = refused(call, Bucket=versioned, Key="k")
        headers = answer["ResponseMetadata"]["HTTPHeaders"]
        assert answer["Error"]["Code"] == code
        assert headers["x-amz-delete-marker"] == "true"
        assert headers["x-amz-version-id"] == deleted["VersionId"]
    named = refused(s3.get_object, Bucket=versioned, Key="k", VersionId=deleted["VersionId"])
    assert named["Error"]["Code"] == "MethodNotAllowed"
    assert named["ResponseMetadata"]["HTTPHeaders"]["x-amz-delete-marker"] == "true"
    assert named["ResponseMetadata"]["HTTPHeaders"]["last-modified"].endswith("GMT")
    assert s3.get_object(Bucket=versioned, Key="k", VersionId=version)["Body"].read() == b"x"
    again = s3.delete_object(Bucket=versioned, Key="k", VersionId=deleted["VersionId"])
    assert (again["DeleteMarker"], again["VersionId"]) == (True, deleted["VersionId"])
    assert s3.get_object(Bucket=versioned, Key="k")["Body"].read() == b"x"


def test_a_version_is_deleted_for_good(s3: Any, versioned: str) -> None:
    old, new = put(s3, versioned, b"old"), put(s3, versioned, b"new")
    deleted = s3.delete_object(Bucket=versioned, Key="k", VersionId=new)
    assert deleted["VersionId"] == new
    assert "DeleteMarker" not in deleted
    assert s3.get_object(Bucket=versioned, Key="k")["VersionId"] == old
    assert refusal(s3.get_object, Bucket=versioned, Key="k", VersionId=new) == ("NoSuchVersion", 404)
    assert refusal(s3.get_object, Bucket=versioned, Key="k", VersionId="rubbish") == ("InvalidArgument", 400)


def test_a_delete_while_suspended_replaces_the_null_version(s3: Any, bucket: str) -> None:
    put(s3, bucket, b"plain")
    set_versioning(s3, bucket, "Suspended")
    deleted = s3.delete_object(Bucket=bucket, Key="k")
    assert (deleted["DeleteMarker"], deleted["VersionId"]) == (True, "null")
    listed = s3.list_object_versions(Bucket=bucket)
    assert "Versions" not in listed
    assert [each["VersionId"] for each in listed["DeleteMarkers"]] == ["null"]
    s3.delete_object(Bucket=bucket, Key="k", VersionId="null")
    assert "DeleteMarkers" not in s3.list_object_versions(Bucket=bucket)


def test_versions_are_listed_by_key_from_the_newest_to_the_oldest(s3: Any, versioned: str) -> None:
    ids = [put(s3, versioned, bytes([number]), key) for key in ("a", "b") for number in range(3)]
    s3.delete_object(Bucket=versioned, Key="a")
    listed = s3.list_object_versions(Bucket=versioned)
    assert [each["VersionId"] for each in listed["Versions"]] == [*ids[2::-1], *ids[:2:-1]]
    assert [each["IsLatest"] for each in listed["Versions"]] == [False, False, False, True, False, False]
    assert [each["Key"] for each in listed["DeleteMarkers"]] == ["a"]
    assert listed["DeleteMarkers"][0]["IsLatest"] is True
    assert listed["Versions"][0]["Owner"] == {"ID": "root-id", "DisplayName": "root"}
    assert listed["DeleteMarkers"][0]["Owner"]["ID"] == "root-id"


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_pages_of_versions_go_on_where_the_last_one_ended(s3: Any, bucket: str, size: int) -> None:
    put(s3, bucket, b"null", "b")
    set_versioning(s3, bucket, "Enabled")
    for key in ("a", "b", "b", "c/1", "c/2", "d"):
        put(s3, bucket, b"x", key)
    s3.delete_object(Bucket=bucket, Key="b")
    pages = list(
        s3.get_paginator("list_object_versions").paginate(Bucket=bucket, PaginationConfig={"PageSize": size})
    )
    found = [(each["Key"], each["VersionId"]) for page in pages for each in page.get("Versions", ())]
    assert [key for key, _ in found] == ["a", "b", "b", "b", "c/1", "c/2", "d"]
    assert found[3] == ("b", "null")
    assert sum(len(page.get("DeleteMarkers", ())) for page in pages) == 1
    folded = list(
        s3.get_paginator("list_object_versions").paginate(
            Bucket=bucket, Delimiter="/", PaginationConfig={"PageSize": size}
        )
    )
    assert [each["Prefix"] for page in folded for each in page.get("CommonPrefixes", ())] == ["c/"]
    assert [each["Key"] for page in folded for each in page.get("Versions", ())] == ["a", "b", "b", "b", "d"]


def test_a_version_marker_without_a_key_marker_is_refused(s3: Any, versioned: str) -> None:
    assert refusal(s3.list_object_versions, Bucket=versioned, VersionIdMarker="null") == (
        "InvalidArgument",
        400,
    )


def test_a_bucket_with_a_marker_left_is_not_empty(s3: Any, versioned: str) -> None:
    marker = s3.delete_object(Bucket=versioned, Key="k")["VersionId"]
    assert refusal(s3.delete_bucket, Bucket=versioned) == ("BucketNotEmpty", 409)
    s3.delete_object(Bucket=versioned, Key="k", VersionId=marker)
    s3.delete_bucket(Bucket=versioned)
