"""CopyObject and moves, through boto3."""

from datetime import UTC, datetime
from typing import Any

import pytest
import urllib3

from gateway.refused import refusal
from gateway.running import OTHER, RunningGateway
from gateway.signing import client_that_signs

LONG_AGO = datetime(2015, 1, 1, tzinfo=UTC)
SIZES = [0, 10, 100_000]


def read(s3: Any, bucket: str, key: str) -> bytes:
    content: bytes = s3.get_object(Bucket=bucket, Key=key)["Body"].read()
    return content


def move(s3: Any, source: str, bucket: str, key: str, **given: Any) -> Any:
    def ask(request: Any, **_: Any) -> None:
        request.headers["x-bucketwire-move"] = "true"

    s3.meta.events.register("before-sign.s3.CopyObject", ask)
    try:
        return s3.copy_object(Bucket=bucket, Key=key, CopySource=source, **given)
    finally:
        s3.meta.events.unregister("before-sign.s3.CopyObject", ask)


@pytest.mark.parametrize("size", SIZES)
def test_a_copy_is_an_object_of_its_own(s3: Any, bucket: str, size: int) -> None:
    put = s3.put_object(
        Bucket=bucket,
        Key="a b/?ü+",
        Body=b"x" * size,
        ContentType="text/x",
        CacheControl="no-store",
        Metadata={"m": "1"},
        Tagging="t=1",
        ACL="public-read",
    )
    copied = s3.copy_object(Bucket=bucket, Key="copy", CopySource={"Bucket": bucket, "Key": "a b/?ü+"})
    assert copied["CopyObjectResult"]["ETag"] == put["ETag"]
    assert copied["CopyObjectResult"]["ChecksumCRC32"] == put["ChecksumCRC32"]
    s3.delete_object(Bucket=bucket, Key="a b/?ü+")
    got = s3.get_object(Bucket=bucket, Key="copy")
    assert got["Body"].read() == b"x" * size
    assert (got["ContentType"], got["CacheControl"], got["Metadata"]) == ("text/x", "no-store", {"m": "1"})
    assert s3.get_object_tagging(Bucket=bucket, Key="copy")["TagSet"] == [{"Key": "t", "Value": "1"}]


@pytest.mark.parametrize("size", SIZES)
def test_a_copy_may_get_another_checksum(s3: Any, bucket: str, size: int) -> None:
    put = s3.put_object(Bucket=bucket, Key="k", Body=b"x" * size, ChecksumAlgorithm="SHA256")
    s3.put_object(Bucket=bucket, Key="other", Body=b"x" * size)
    given = {"Bucket": bucket, "Key": "copy", "CopySource": f"{bucket}/other"}
    copied = s3.copy_object(**given, ChecksumAlgorithm="SHA256")["CopyObjectResult"]
    assert copied["ChecksumSHA256"] == put["ChecksumSHA256"]
    assert refusal(s3.copy_object, **given, ChecksumAlgorithm="RUBBISH") == ("InvalidArgument", 400)


def test_a_copy_may_be_described_anew(s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"x", Metadata={"m": "1"}, Tagging="t=1")
    s3.copy_object(
        Bucket=bucket,
        Key="k",
        CopySource=f"/{bucket}/k",
        MetadataDirective="REPLACE",
        TaggingDirective="REPLACE",
        Metadata={"n": "2"},
        ContentType="text/y",
        Tagging="u=2",
    )
    got = s3.get_object(Bucket=bucket, Key="k")
    assert (got["Body"].read(), got["Metadata"], got["ContentType"]) == (b"x", {"n": "2"}, "text/y")
    assert s3.get_object_tagging(Bucket=bucket, Key="k")["TagSet"] == [{"Key": "u", "Value": "2"}]


def test_a_copy_that_cannot_be_meant_is_refused(s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"x")
    given = {"Bucket": bucket, "Key": "k"}
    assert refusal(s3.copy_object, **given, CopySource=f"{bucket}/k") == ("InvalidRequest", 400)
    given["Key"] = "new"
    for source, code in (
        (f"{bucket}/missing", ("NoSuchKey", 404)),
        ("none-such/k", ("NoSuchBucket", 404)),
        (f"{bucket}/k?versionId=0000000000000001", ("NoSuchVersion", 404)),
        (f"{bucket}/k?versionId=rubbish", ("InvalidArgument", 400)),
        (bucket, ("InvalidArgument", 400)),
    ):
        assert refusal(s3.copy_object, **given, CopySource=source) == code
    for member in ("MetadataDirective", "TaggingDirective"):
        assert refusal(s3.copy_object, **given, CopySource=f"{bucket}/k", **{member: "RUBBISH"}) == (
            "InvalidArgument",
            400,
        )
    assert s3.list_objects_v2(Bucket=bucket)["KeyCount"] == 1


def test_conditions_on_the_source_and_on_the_destination_hold(s3: Any, bucket: str) -> None:
    etag = s3.put_object(Bucket=bucket, Key="k", Body=b"x" * 100_000)["ETag"]
    given = {"Bucket": bucket, "Key": "new", "CopySource": f"{bucket}/k"}
    for condition in (
        {"CopySourceIfMatch": "other"},
        {"CopySourceIfNoneMatch": etag},
        {"CopySourceIfUnmodifiedSince": LONG_AGO},
    ):
        assert refusal(s3.copy_object, **given, **condition) == ("PreconditionFailed", 412)
    s3.copy_object(**given, CopySourceIfMatch=etag, IfNoneMatch="*")
    s3.copy_object(**given, CopySourceIfNoneMatch="other", CopySourceIfModifiedSince=LONG_AGO, IfMatch=etag)
    assert refusal(s3.copy_object, **given, IfNoneMatch="*") == ("PreconditionFailed", 412)
    assert read(s3, bucket, "new") == b"x" * 100_000


def test_a_version_is_copied_and_the_copy_is_one(s3: Any, bucket: str) -> None:
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    old = s3.put_object(Bucket=bucket, Key="k", Body=b"old")["VersionId"]
    new = s3.put_object(Bucket=bucket, Key="k", Body=b"new")["VersionId"]
    source = {"Bucket": bucket, "Key": "k", "VersionId": old}
    copied = s3.copy_object(Bucket=bucket, Key="k", CopySource=source)
    assert copied["CopySourceVersionId"] == old
    assert copied["VersionId"] not in {old, new}
    assert read(s3, bucket, "k") == b"old"
    marker = s3.delete_object(Bucket=bucket, Key="k")["VersionId"]
    given = {"Bucket": bucket, "Key": "other", "CopySource": {"Bucket": bucket, "Key": "k"}}
    assert refusal(s3.copy_object, **given) == ("NoSuchKey", 404)
    given["CopySource"]["VersionId"] = marker
    assert refusal(s3.copy_object, **given) == ("InvalidRequest", 400)


def test_a_copy_needs_leave_to_read_and_to_write(gateway: RunningGateway, s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="closed", Body=b"x")
    s3.put_object(Bucket=bucket, Key="open", Body=b"x", ACL="public-read")
    other = gateway.client("s3", OTHER)
    mine = f"{bucket}-2"
    other.create_bucket(Bucket=mine)
    denied = ("AccessDenied", 403)
    assert refusal(other.copy_object, Bucket=mine, Key="k", CopySource=f"{bucket}/closed") == denied
    assert refusal(other.copy_object, Bucket=bucket, Key="k", CopySource=f"{bucket}/open") == denied
    other.copy_object(Bucket=mine, Key="k", CopySource=f"{bucket}/open")
    assert read(other, mine, "k") == b"x"
    assert refusal(s3.get_object, Bucket=mine, Key="k") == denied
    other.close()


@pytest.mark.parametrize("size", SIZES)
def test_a_move_takes_the_object_away_from_where_it_was(s3: Any, bucket: str, size: int) -> None:
    s3.put_object(Bucket=bucket, Key="old", Body=b"x" * size, Metadata={"m": "1"})
    move(s3, f"{bucket}/old", bucket, "new")
    assert [each["Key"] for each in s3.list_objects_v2(Bucket=bucket)["Contents"]] == ["new"]
    got = s3.get_object(Bucket=bucket, Key="new")
    assert (got["Body"].read(), got["Metadata"]) == (b"x" * size, {"m": "1"})


def test_a_copy_that_is_presigned_cannot_be_made_a_move(s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="old", Body=b"x")
    source = {"x-amz-copy-source": f"{bucket}/old"}
    named = {"Bucket": bucket, "Key": "new", "CopySource": source["x-amz-copy-source"]}
    url = s3.generate_presigned_url("copy_object", named)
    with urllib3.PoolManager() as pool:
        answer = pool.request("PUT", url, headers={**source, "x-bucketwire-move": "true"})
        assert answer.status == 403
        assert b"<HeadersNotSigned>x-bucketwire-move</HeadersNotSigned>" in answer.data
        assert read(s3, bucket, "old") == b"x"
        assert pool.request("PUT", url, headers=source).status == 200


def test_a_move_cannot_be_signed_with_version_2(gateway: RunningGateway, s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="old", Body=b"x")
    client = client_that_signs(gateway.url, "s3")
    moved = {"s3": client, "source": f"{bucket}/old", "bucket": bucket, "key": "new"}
    assert refusal(move, **moved) == ("AccessDenied", 403)
    assert read(s3, bucket, "old") == b"x"
    client.close()


def test_a_move_that_would_change_the_object_is_refused(s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="old", Body=b"x")
    for given in ({"MetadataDirective": "REPLACE"}, {"ACL": "public-read"}, {"IfNoneMatch": "*"}):
        assert refusal(move, s3=s3, source=f"{bucket}/old", bucket=bucket, key="new", **given) == (
            "NotImplemented",
            501,
        )
    assert refusal(move, s3=s3, source=f"{bucket}/old", bucket=bucket, key="old") == ("InvalidRequest", 400)
    assert read(s3, bucket, "old") == b"x"
