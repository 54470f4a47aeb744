"""Objects, through boto3."""

import http.client
import io
import socket
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
from botocore.exceptions import ClientError
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.running import OTHER, RunningGateway

MEBIBYTE = 1024 * 1024
odd_keys = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=40
) | st.text(st.sampled_from("/.%+ ~&=?#;'\"\\ü€"), min_size=1, max_size=12)


def code_of(call: Callable[[], Any]) -> tuple[str, int]:
    with pytest.raises(ClientError) as raised:
        call()
    answer = raised.value.response
    return answer["Error"]["Code"], answer["ResponseMetadata"]["HTTPStatusCode"]


def test_an_object_comes_back_as_it_was_put(s3: Any, bucket: str) -> None:
    put = s3.put_object(
        Bucket=bucket,
        Key="a/b.txt",
        Body=b"hello",
        ContentType="text/plain",
        CacheControl="no-store",
        ContentEncoding="identity",
        Metadata={"project": "blue"},
    )
    got = s3.get_object(Bucket=bucket, Key="a/b.txt", ChecksumMode="ENABLED")
    head = s3.head_object(Bucket=bucket, Key="a/b.txt")
    assert got["Body"].read() == b"hello"
    for answer in (got, head):
        assert answer["ETag"] == put["ETag"] == '"5d41402abc4b2a76b9719d911017c592"'
        assert (answer["ContentLength"], answer["ContentType"]) == (5, "text/plain")
        assert (answer["CacheControl"], answer["Metadata"]) == ("no-store", {"project": "blue"})
        assert abs(answer["LastModified"] - datetime.now(UTC)) < timedelta(minutes=5)
    assert got["ChecksumCRC32"] == put["ChecksumCRC32"]
    assert "ChecksumCRC32" not in head


@pytest.mark.parametrize("size", [0, 1, 16 * 1024, 16 * 1024 + 1, 3 * MEBIBYTE])
@pytest.mark.parametrize("algorithm", ["CRC32", "CRC32C", "CRC64NVME", "SHA1", "SHA256"])
def test_bytes_of_any_size_come_back_whatever_the_checksum(
    s3: Any, bucket: str, size: int, algorithm: str
) -> None:
    body = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    s3.put_object(Bucket=bucket, Key="k", Body=body, ChecksumAlgorithm=algorithm)
    got = s3.get_object(Bucket=bucket, Key="k", ChecksumMode="ENABLED")
    assert got["Body"].read() == body
    assert got[f"Checksum{algorithm}"]


def test_a_stream_is_sent_in_chunks_with_a_trailer(s3: Any, bucket: str) -> None:
    body = b"0123456789" * 200_000
    s3.upload_fileobj(io.BytesIO(body), bucket, "stream")
    assert s3.get_object(Bucket=bucket, Key="stream")["Body"].read() == body


@settings(max_examples=40)
@given(odd_keys)
def test_odd_keys_work(s3: Any, bucket: str, key: str) -> None:
    s3.put_object(Bucket=bucket, Key=key, Body=key.encode())
    assert s3.get_object(Bucket=bucket, Key=key)["Body"].read() == key.encode()
    listed = s3.list_objects_v2(Bucket=bucket, Prefix=key)["Contents"]
    assert key in [each["Key"] for each in listed]
    s3.delete_object(Bucket=bucket, Key=key)
    assert code_of(lambda: s3.get_object(Bucket=bucket, Key=key)) == ("NoSuchKey", 404)


@pytest.mark.parametrize("size", [10, 100_000])
@pytest.mark.parametrize(
    ("asked", "start", "end"),
    [
        ("bytes=0-0", 0, 1),
        ("bytes=2-5", 2, 6),
        ("bytes=5-", 5, None),
        ("bytes=-3", -3, None),
        ("bytes=0-999999999", 0, None),
    ],
)
def test_a_range_is_a_part_of_the_object(
    s3: Any, bucket: str, size: int, asked: str, start: int, end: int | None
) -> None:
    body = bytes(number % 251 for number in range(size))
    s3.put_object(Bucket=bucket, Key="k", Body=body)
    got = s3.get_object(Bucket=bucket, Key="k", Range=asked)
    assert got["Body"].read() == body[start:end]
    assert got["ResponseMetadata"]["HTTPStatusCode"] == 206
    assert got["ContentRange"].endswith(f"/{size}")


def test_a_range_behind_the_end_is_refused_and_one_that_is_none_passed_over(s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"hello")
    for asked in ("bytes=5-", "bytes=9-12", "bytes=-0"):
        assert code_of(lambda asked=asked: s3.get_object(Bucket=bucket, Key="k", Range=asked)) == (
            "InvalidRange",
            416,
        )
    for asked in ("bytes=3-1", "lines=1-2", "bytes=0-1,3-4", "bytes=-"):
        assert s3.get_object(Bucket=bucket, Key="k", Range=asked)["Body"].read() == b"hello"


def test_conditions_on_reading_hold_or_are_told(s3: Any, bucket: str) -> None:
    etag = s3.put_object(Bucket=bucket, Key="k", Body=b"hello")["ETag"]
    long_ago = datetime(2020, 1, 1, tzinfo=UTC)
    later = datetime.now(UTC) + timedelta(days=1)
    assert s3.get_object(Bucket=bucket, Key="k", IfMatch=etag)["ETag"] == etag
    assert s3.get_object(Bucket=bucket, Key="k", IfNoneMatch='"other"')["ETag"] == etag
    for condition in ({"IfMatch": '"other"'}, {"IfUnmodifiedSince": long_ago}):
        assert code_of(lambda condition=condition: s3.get_object(Bucket=bucket, Key="k", **condition)) == (
            "PreconditionFailed",
            412,
        )
    for condition in ({"IfNoneMatch": etag}, {"IfModifiedSince": later}):
        assert (
            code_of(lambda condition=condition: s3.get_object(Bucket=bucket, Key="k", **condition))[1] == 304
        )


def test_deleting_twice_is_no_error(s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"x")
    for _ in range(2):
        assert s3.delete_object(Bucket=bucket, Key="k")["ResponseMetadata"]["HTTPStatusCode"] == 204


def test_what_is_not_there_is_not_found(s3: Any, bucket: str) -> None:
    assert code_of(lambda: s3.get_object(Bucket=bucket, Key="k")) == ("NoSuchKey", 404)
    assert code_of(lambda: s3.head_object(Bucket=bucket, Key="k")) == ("404", 404)
    assert code_of(lambda: s3.put_object(Bucket="none-such", Key="k", Body=b"x")) == ("NoSuchBucket", 404)
    assert code_of(lambda: s3.put_object(Bucket="none-such", Key="k", Body=b"x" * 100_000)) == (
        "NoSuchBucket",
        404,
    )
    assert code_of(lambda: s3.delete_object(Bucket="none-such", Key="k")) == ("NoSuchBucket", 404)


def test_another_user_may_not_touch_the_bucket(gateway: RunningGateway, s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"x")
    other = gateway.client("s3", OTHER)
    for call in (
        lambda: other.get_object(Bucket=bucket, Key="k"),
        lambda: other.put_object(Bucket=bucket, Key="k", Body=b"y"),
        lambda: other.put_object(Bucket=bucket, Key="k", Body=b"y" * 100_000),
        lambda: other.delete_object(Bucket=bucket, Key="k"),
        lambda: other.list_objects_v2(Bucket=bucket),
        lambda: other.get_bucket_notification_configuration(Bucket=bucket),
        lambda: other.delete_bucket(Bucket=bucket),
    ):
        assert code_of(call) == ("AccessDenied", 403)
    assert s3.get_object(Bucket=bucket, Key="k")["Body"].read() == b"x"
    other.close()


def test_presigned_requests_work_without_headers(gateway: RunningGateway, s3: Any, bucket: str) -> None:
    for method, operation, body in (("PUT", "put_object", b"hello"), ("GET", "get_object", None)):
        url = s3.generate_presigned_url(operation, {"Bucket": bucket, "Key": "a b+ü/%"}, ExpiresIn=60)
        parts = urlsplit(url)
        connection = http.client.HTTPConnection("127.0.0.1", gateway.port)
        connection.request(method, f"{parts.path}?{parts.query}", body)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        assert answer.status == 200, content
    assert content == b"hello"


def test_overwriting_a_large_object_gives_up_its_bytes(gateway: RunningGateway, s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"x" * 100_000)
    (segment,) = gateway.metabase.objects.get(bucket, "k").segments
    name = segment.blob
    s3.put_object(Bucket=bucket, Key="k", Body=b"small")
    gone = threading.Event()
    for _ in range(600):
        if not (gateway.objects / name[:2] / name).exists():
            gone.set()
            break
        gone.wait(0.1)
    assert gone.is_set()


def test_a_connection_that_breaks_in_the_middle_stores_nothing(
    gateway: RunningGateway, s3: Any, bucket: str
) -> None:
    url = s3.generate_presigned_url("put_object", {"Bucket": bucket, "Key": "cut"}, ExpiresIn=60)
    parts = urlsplit(url)
    with socket.create_connection(("127.0.0.1", gateway.port)) as connection:
        head = f"PUT {parts.path}?{parts.query} HTTP/1.1\r\nHost: {parts.netloc}\r\n"
        connection.sendall(f"{head}Content-Length: 1000000\r\n\r\n".encode() + b"x" * 500_000)
    s3.put_object(Bucket=bucket, Key="after", Body=b"x")
    assert [each["Key"] for each in s3.list_objects_v2(Bucket=bucket)["Contents"]] == ["after"]


def test_a_client_that_waits_to_send_is_refused_before_it_sends(gateway: RunningGateway, bucket: str) -> None:
    with socket.create_connection(("127.0.0.1", gateway.port)) as connection:
        head = f"PUT /{bucket}/k HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n"
        connection.sendall(f"{head}Expect: 100-continue\r\n\r\n".encode())
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
    assert answer.startswith(b"HTTP/1.1 403 ")
    assert b"connection: close" in answer


def test_a_page_of_a_listing_goes_on_where_the_last_one_ended(s3: Any, bucket: str) -> None:
    keys = [f"{folder}/{number}" for folder in "abc" for number in range(4)] + ["top"]
    for key in keys:
        s3.put_object(Bucket=bucket, Key=key, Body=b"")
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, PaginationConfig={"PageSize": 5})
    assert [each["Key"] for page in pages for each in page["Contents"]] == sorted(keys)
    found = s3.list_objects_v2(Bucket=bucket, Delimiter="/", FetchOwner=True)
    assert [each["Prefix"] for each in found["CommonPrefixes"]] == ["a/", "b/", "c/"]
    assert [each["Key"] for each in found["Contents"]] == ["top"]
    assert found["Contents"][0]["Owner"]["ID"] == "root-id"
    assert s3.list_objects_v2(Bucket=bucket, StartAfter="c/2")["KeyCount"] == 2
    assert s3.list_objects_v2(Bucket=bucket, MaxKeys=0)["IsTruncated"] is False
    folders = s3.get_paginator("list_objects_v2").paginate(
        Bucket=bucket, Delimiter="/", PaginationConfig={"PageSize": 1}
    )
    assert [
        each.get("Prefix") or each["Key"]
        for page in folders
        for each in (*page.get("CommonPrefixes", ()), *page.get("Contents", ()))
    ] == ["a/", "b/", "c/", "top"]


def test_a_listing_that_cannot_be_meant_is_refused(s3: Any, bucket: str) -> None:
    for bad in ({"MaxKeys": -1}, {"ContinuationToken": "%%%"}, {"EncodingType": "base64"}):
        assert code_of(lambda bad=bad: s3.list_objects_v2(Bucket=bucket, **bad)) == ("InvalidArgument", 400)


def test_too_much_metadata_is_refused(s3: Any, bucket: str) -> None:
    assert code_of(lambda: s3.put_object(Bucket=bucket, Key="k", Body=b"", Metadata={"a": "x" * 2048})) == (
        "MetadataTooLarge",
        400,
    )
