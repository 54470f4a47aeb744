"""User metadata comes back as it was sent."""

import http.client
import uuid
from contextlib import closing
from typing import Any

import pytest

from gateway.running import RunningGateway


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        (b"plain", b"plain"),
        (b"", b""),
        (b"  inner  spaces  ", b"inner  spaces"),
        ("\u00e9t\u00e9 \u4e16\u754c".encode(), "\u00e9t\u00e9 \u4e16\u754c".encode()),
        (b"=?UTF-8?B?w6l0w6k=?=", b"=?UTF-8?B?w6l0w6k=?="),
        (b'a,b;c="d" %20', b'a,b;c="d" %20'),
    ],
    ids=["plain", "empty", "spaces", "utf-8", "rfc 2047", "signs"],
)
def test_a_value_of_metadata_comes_back_as_it_was_sent(
    gateway: RunningGateway, s3: Any, sent: bytes, kept: bytes
) -> None:
    bucket = f"bucket-{uuid.uuid4().hex}"
    s3.create_bucket(Bucket=bucket, ACL="public-read-write")
    with closing(http.client.HTTPConnection("127.0.0.1", gateway.port)) as connection:
        headers = {"X-Amz-Meta-Some-Name": sent, "x-amz-acl": b"public-read"}
        connection.request("PUT", f"/{bucket}/key", b"x", headers)
        assert connection.getresponse().read() == b""
        connection.request("GET", f"/{bucket}/key")
        answer = connection.getresponse()
        assert answer.read() == b"x"
        assert answer.headers["x-amz-meta-some-name"].encode("latin-1") == kept


def test_names_of_metadata_are_in_lower_case(s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="key", Body=b"x", Metadata={"Some-Name": "Some Value", "other": "1"})
    expected = {"some-name": "Some Value", "other": "1"}
    assert s3.head_object(Bucket=bucket, Key="key")["Metadata"] == expected
    assert s3.get_object(Bucket=bucket, Key="key")["Metadata"] == expected


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("gzip", "gzip"),
        ("deflate, gzip", "deflate, gzip"),
        ("deflate,gzip", "deflate,gzip"),
        ("gzip, aws-chunked", "gzip"),
        ("aws-chunked, deflate,gzip", "deflate, gzip"),
        ("aws-chunked", None),
        ("aws-chunked, AWS-chunked", None),
    ],
)
def test_the_codings_of_an_object_are_kept_without_that_of_its_body(
    s3: Any, bucket: str, sent: str, kept: str | None
) -> None:
    s3.put_object(Bucket=bucket, Key="key", Body=b"x", ContentEncoding=sent)
    assert s3.head_object(Bucket=bucket, Key="key").get("ContentEncoding") == kept
