"""Conditional writes, reads of parts, and what GetObjectAttributes tells, through boto3."""

import http.client
from typing import Any

import pytest

from gateway.refused import refusal, refused
from gateway.running import OTHER, RunningGateway

PART = 5 * 1024 * 1024
HELD = ("PreconditionFailed", 412)


@pytest.mark.parametrize("size", [1, 100_000])
def test_a_write_goes_through_only_if_its_condition_holds(s3: Any, bucket: str, size: int) -> None:
    given = {"Bucket": bucket, "Key": "k", "Body": b"x" * size}
    for missing in ("*", '"other"'):
        assert refusal(s3.put_object, **given, IfMatch=missing) == ("NoSuchKey", 404)
    etag = s3.put_object(**given, IfNoneMatch="*")["ETag"]
    for condition in ({"IfNoneMatch": "*"}, {"IfNoneMatch": etag}, {"IfMatch": "other"}):
        assert refusal(s3.put_object, **given, **condition) == HELD
    for condition in (
        {"IfMatch": "*"},
        {"IfMatch": etag},
        {"IfMatch": etag.strip('"')},
        {"IfNoneMatch": "no"},
    ):
        s3.put_object(**given, **condition)


def test_a_delete_marker_is_no_object_to_match(s3: Any, bucket: str) -> None:
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    s3.put_object(Bucket=bucket, Key="k", Body=b"x")
    s3.delete_object(Bucket=bucket, Key="k")
    assert refusal(s3.put_object, Bucket=bucket, Key="k", IfMatch="*") == ("NoSuchKey", 404)
    s3.put_object(Bucket=bucket, Key="k", IfNoneMatch="*")


def test_what_a_write_asks_for_is_kept_or_refused(s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"", Tagging="a=1&b=2", ACL="public-read")
    assert (
        s3.head_object(Bucket=bucket, Key="k")["ResponseMetadata"]["HTTPHeaders"]["x-amz-tagging-count"]
        == "2"
    )
    for bad, refused_with in (
        ({"ACL": "rubbish"}, ("InvalidArgument", 400)),
        ({"StorageClass": "rubbish"}, ("InvalidStorageClass", 400)),
        ({"ServerSideEncryption": "AES256"}, ("NotImplemented", 501)),
    ):
        assert refusal(s3.put_object, Bucket=bucket, Key="bad", Body=b"", **bad) == refused_with
    assert s3.list_objects_v2(Bucket=bucket)["KeyCount"] == 1


def test_an_object_is_open_to_whom_its_acl_opens_it(gateway: RunningGateway, s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="open", Body=b"x", ACL="public-read")
    s3.put_object(Bucket=bucket, Key="closed", Body=b"x")
    other = gateway.client("s3", OTHER)
    assert other.get_object(Bucket=bucket, Key="open")["Body"].read() == b"x"
    for key in ("closed", "missing"):
        assert refusal(other.get_object, Bucket=bucket, Key=key) == ("AccessDenied", 403)
    other.close()


def test_nobody_may_read_what_is_open_but_not_dress_it_up(
    gateway: RunningGateway, s3: Any, bucket: str
) -> None:
    s3.put_object(Bucket=bucket, Key="open", Body=b"x", ACL="public-read")
    answers = {}
    for query in ("", "?response-content-type=text/html"):
        connection = http.client.HTTPConnection("127.0.0.1", gateway.port)
        connection.request("GET", f"/{bucket}/open{query}")
        answers[query] = connection.getresponse().status
        connection.close()
    assert list(answers.values()) == [200, 400]


def test_a_range_that_is_refused_tells_the_size(s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"hello")
    answer = refused(s3.get_object, Bucket=bucket, Key="k", Range="bytes=5-")
    assert answer["ResponseMetadata"]["HTTPHeaders"]["content-range"] == "bytes */5"
    s3.put_object(Bucket=bucket, Key="empty", Body=b"")
    assert refusal(s3.get_object, Bucket=bucket, Key="empty", Range="bytes=40-50") == ("InvalidRange", 416)


def test_the_etag_is_asked_before_the_time(s3: Any, bucket: str) -> None:
    etag = s3.put_object(Bucket=bucket, Key="k", Body=b"hello")["ETag"]
    made = s3.head_object(Bucket=bucket, Key="k")["LastModified"]
    long_ago = made.replace(year=2015)
    s3.get_object(Bucket=bucket, Key="k", IfMatch=etag, IfUnmodifiedSince=long_ago)
    s3.get_object(Bucket=bucket, Key="k", IfNoneMatch='"other"', IfModifiedSince=made)
    assert (
        refusal(s3.get_object, Bucket=bucket, Key="k", IfNoneMatch=etag, IfModifiedSince=long_ago)[1] == 304
    )


@pytest.fixture
def in_parts(s3: Any, bucket: str) -> tuple[str, bytes]:
    """A bucket with an object `k` of two parts, and its bytes."""
    bodies = [b"a" * PART, b"b" * 10]
    upload = s3.create_multipart_upload(Bucket=bucket, Key="k", ChecksumAlgorithm="SHA256")["UploadId"]
    named = {"Bucket": bucket, "Key": "k", "UploadId": upload}
    parts = []
    for number, body in enumerate(bodies, 1):
        part = s3.upload_part(**named, PartNumber=number, Body=body, ChecksumAlgorithm="SHA256")
        parts.append({"PartNumber": number, "ETag": part["ETag"], "ChecksumSHA256": part["ChecksumSHA256"]})
    s3.complete_multipart_upload(**named, MultipartUpload={"Parts": parts})
    return bucket, b"".join(bodies)


def test_a_part_of_a_multipart_object_is_read_by_its_number(s3: Any, in_parts: tuple[str, bytes]) -> None:
    bucket, content = in_parts
    got = s3.get_object(Bucket=bucket, Key="k", PartNumber=2)
    assert got["Body"].read() == content[PART:]
    assert (got["PartsCount"], got["ContentRange"]) == (2, f"bytes {PART}-{PART + 9}/{PART + 10}")
    assert s3.head_object(Bucket=bucket, Key="k", PartNumber=1)["ContentLength"] == PART
    for number in (0, 3):
        assert refusal(s3.get_object, Bucket=bucket, Key="k", PartNumber=number) == ("InvalidPart", 400)
    assert refusal(s3.get_object, Bucket=bucket, Key="k", PartNumber=1, Range="bytes=0-1") == (
        "InvalidRequest",
        400,
    )


def test_what_came_as_a_whole_has_one_part(s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"hello")
    got = s3.get_object(Bucket=bucket, Key="k", PartNumber=1)
    assert got["Body"].read() == b"hello"
    assert "PartsCount" not in got
    assert refusal(s3.get_object, Bucket=bucket, Key="k", PartNumber=2) == ("InvalidPart", 400)


def test_attributes_tell_of_the_object_and_its_parts(s3: Any, in_parts: tuple[str, bytes]) -> None:
    bucket, content = in_parts
    wanted = ["ETag", "Checksum", "ObjectParts", "StorageClass", "ObjectSize"]
    told = s3.get_object_attributes(Bucket=bucket, Key="k", ObjectAttributes=wanted)
    assert told["ObjectSize"] == len(content)
    assert told["ETag"] == s3.head_object(Bucket=bucket, Key="k")["ETag"].strip('"')
    assert told["Checksum"]["ChecksumType"] == "COMPOSITE"
    parts = told["ObjectParts"]
    assert (parts["TotalPartsCount"], parts["IsTruncated"]) == (2, False)
    assert [each["Size"] for each in parts["Parts"]] == [PART, 10]
    page = s3.get_object_attributes(Bucket=bucket, Key="k", ObjectAttributes=["ObjectParts"], MaxParts=1)
    assert (page["ObjectParts"]["IsTruncated"], page["ObjectParts"]["NextPartNumberMarker"]) == (True, 1)
    assert "ETag" not in page


def test_attributes_that_are_none_are_refused(s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"hello")
    given = {"Bucket": bucket, "Key": "k"}
    assert refusal(s3.get_object_attributes, **given, ObjectAttributes=["Rubbish"]) == (
        "InvalidArgument",
        400,
    )
    told = s3.get_object_attributes(**given, ObjectAttributes=["ObjectParts", "ObjectSize"])
    assert "ObjectParts" not in told
    given["Key"] = "missing"
    assert refusal(s3.get_object_attributes, **given, ObjectAttributes=["ETag"]) == ("NoSuchKey", 404)
