"""The bucket in the name of the host."""

import socket
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
import urllib3
from urllib3.filepost import encode_multipart_formdata

from bucketwire.gateway.protocol.address import path_style
from gateway.running import RunningGateway
from gateway.signing import client_that_signs

DOMAIN = "s3.example.com"


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("s3.example.com", "/key"),
        ("bucket.s3.example.com", "/bucket/key"),
        ("Bucket.S3.Example.com:9000", "/bucket/key"),
        ("dotted.name.s3.example.com.", "/dotted.name/key"),
        ("bucket.localhost:9000", "/bucket/key"),
        ("localhost:9000", "/key"),
        ("other.example.com", "/key"),
        ("xs3.example.com", "/key"),
        ("127.0.0.1:9000", "/key"),
        ("[::1]:9000", "/key"),
        ("", "/key"),
    ],
)
def test_the_bucket_stands_before_the_domain(host: str, expected: str) -> None:
    assert path_style("/key", host, DOMAIN) == expected


def test_a_key_may_look_like_a_page_of_the_gateways_own(client: Any) -> None:
    bucket = f"bucket-{uuid.uuid4().hex}"
    client.create_bucket(Bucket=bucket)
    client.put_object(Bucket=bucket, Key="-/live", Body=b"hello")
    assert client.get_object(Bucket=bucket, Key="-/live")["Body"].read() == b"hello"


@pytest.fixture(params=["s3", "s3v4"])
def client(
    gateway: RunningGateway, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Any]:
    """A client that puts the bucket before `localhost`, which is this machine."""
    resolve = socket.getaddrinfo

    def local(host: str, *rest: Any, **more: Any) -> Any:
        return resolve("127.0.0.1" if host.endswith("localhost") else host, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", local)
    client = client_that_signs(f"http://localhost:{gateway.port}", request.param, "virtual")
    yield client
    client.close()


def test_objects_are_reached_through_the_host(client: Any) -> None:
    bucket = f"bucket-{uuid.uuid4().hex}"
    client.create_bucket(Bucket=bucket)
    client.put_object(Bucket=bucket, Key="dir/a key ü", Body=b"hello")
    got = client.get_object(Bucket=bucket, Key="dir/a key ü")
    assert got["Body"].read() == b"hello"
    assert [each["Key"] for each in client.list_objects_v2(Bucket=bucket)["Contents"]] == ["dir/a key ü"]
    assert bucket in [each["Name"] for each in client.list_buckets()["Buckets"]]
    client.delete_object(Bucket=bucket, Key="dir/a key ü")
    client.delete_bucket(Bucket=bucket)


def test_a_post_to_the_host_of_a_bucket_is_for_the_bucket(client: Any) -> None:
    bucket = f"bucket-{uuid.uuid4().hex}"
    client.create_bucket(Bucket=bucket)
    form = client.generate_presigned_post(bucket, "key")
    body, kind = encode_multipart_formdata([*form["fields"].items(), ("file", ("name", b"hello"))])
    with urllib3.PoolManager() as pool:
        assert pool.request("POST", form["url"], body=body, headers={"content-type": kind}).status == 204
    client.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": "key"}]})
    assert "Contents" not in client.list_objects_v2(Bucket=bucket)
