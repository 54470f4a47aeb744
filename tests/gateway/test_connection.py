"""Raw connections: what is not quite HTTP, too much of it, or too little."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from threading import Event
from typing import Any
from urllib.parse import urlsplit

import pytest
import urllib3

from bucketwire.gateway import body as body_module
from bucketwire.gateway import connection as connection_module
from bucketwire.gateway.app import STRANGERS
from bucketwire.gateway.connection import GatewayProtocol
from bucketwire.metainfo.permission import ACL_DOCUMENT
from gateway.running import RunningGateway
from wire import until

LARGE_BYTES = 64 * 1024**2
"""More than the buffers of the two ends hold."""


@contextmanager
def connected(gateway: RunningGateway) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=60) as opened:
        yield opened


def answer(opened: socket.socket) -> bytes:
    """All that comes until the server closes."""
    received = b""
    while piece := opened.recv(65536):
        received += piece
    return received


def put_head(s3: Any, bucket: str, key: str, *headers: str) -> bytes:
    url = s3.generate_presigned_url("put_object", {"Bucket": bucket, "Key": key}, ExpiresIn=60)
    parts = urlsplit(url)
    lines = [f"PUT {parts.path}?{parts.query} HTTP/1.1", f"Host: {parts.netloc}", *headers, "", ""]
    return "\r\n".join(lines).encode()


def test_bytes_behind_a_request_do_not_turn_its_answer_into_an_error(
    gateway: RunningGateway, s3: Any, bucket: str
) -> None:
    with connected(gateway) as opened:
        opened.sendall(put_head(s3, bucket, "short", "Content-Length: 2") + b"abc")
        received = answer(opened)
    assert received.startswith(b"HTTP/1.1 200 ")
    assert s3.head_object(Bucket=bucket, Key="short")["ContentLength"] == 2


def test_a_body_that_ends_too_early_is_answered(gateway: RunningGateway, s3: Any, bucket: str) -> None:
    with connected(gateway) as opened:
        opened.sendall(put_head(s3, bucket, "cut", "Content-Length: 10") + b"abc")
        opened.shutdown(socket.SHUT_WR)
        received = answer(opened)
    assert received.startswith(b"HTTP/1.1 400 ")
    assert b"<Code>IncompleteBody</Code>" in received
    assert s3.list_objects_v2(Bucket=bucket)["KeyCount"] == 0


@pytest.mark.parametrize("length", ["-1", "abc", "1" + "0" * 20])
def test_a_length_that_is_no_length_is_an_error_document(
    gateway: RunningGateway, s3: Any, bucket: str, length: str
) -> None:
    with connected(gateway) as opened:
        opened.sendall(put_head(s3, bucket, "k", f"Content-Length: {length}") + b"abc")
        received = answer(opened)
    assert received.startswith(b"HTTP/1.1 400 ")
    assert b"<Error><Code>" in received


def put_openly(gateway: RunningGateway, bucket: str, target: bytes) -> bytes:
    """The answer to a write without a signature, to a bucket that takes it."""
    gateway.metabase.buckets.set_document(bucket, ACL_DOCUMENT, "public-read-write")
    head = b" HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1\r\nConnection: close\r\n\r\n"
    with connected(gateway) as opened:
        opened.sendall(b"PUT " + target % bucket.encode() + head + b"x")
        return answer(opened)


@pytest.mark.parametrize(
    "target", [b"/%s/a#b", b"/%s/a#", b"/%s#b", b"/%s/a?x-id=PutObject#b", b"http://127.0.0.1/%s/a#b"]
)
def test_a_target_with_a_fragment_is_refused_and_not_cut(
    gateway: RunningGateway, s3: Any, bucket: str, target: bytes
) -> None:
    received = put_openly(gateway, bucket, target)
    assert received.startswith(b"HTTP/1.1 400 ")
    assert b"<Code>InvalidURI</Code>" in received
    assert s3.list_objects_v2(Bucket=bucket)["KeyCount"] == 0


def test_a_fragment_that_comes_in_pieces_is_refused(gateway: RunningGateway) -> None:
    with connected(gateway) as opened:
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for piece in (b"GET /buc", b"ket/a", b"#"):
            opened.sendall(piece)
        assert b"<Code>InvalidURI</Code>" in answer(opened)


def test_a_fragment_behind_another_request_does_not_turn_its_answer_into_an_error(
    gateway: RunningGateway, s3: Any, bucket: str
) -> None:
    with connected(gateway) as opened:
        behind = f"GET /{bucket}/a#b HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
        opened.sendall(put_head(s3, bucket, "first", "Content-Length: 1") + b"x" + behind.encode())
        received = answer(opened)
    assert received.startswith(b"HTTP/1.1 200 ")
    assert received.count(b"HTTP/1.1 ") == 1


def test_a_number_sign_that_is_encoded_is_part_of_the_key(
    gateway: RunningGateway, s3: Any, bucket: str
) -> None:
    assert put_openly(gateway, bucket, b"/%s/a%%23b").startswith(b"HTTP/1.1 200 ")
    assert [each["Key"] for each in s3.list_objects_v2(Bucket=bucket)["Contents"]] == ["a#b"]


@pytest.mark.parametrize("raw", [b"\xff", "\u00e4".encode(), b"\x01", b"\x7f"])
def test_bytes_that_no_url_has_are_no_http(gateway: RunningGateway, s3: Any, bucket: str, raw: bytes) -> None:
    received = put_openly(gateway, bucket, b"/%s/raw" + raw)
    assert received.startswith(b"HTTP/1.1 400 ")
    assert b"<Code>BadRequest</Code>" in received
    assert s3.list_objects_v2(Bucket=bucket)["KeyCount"] == 0


@pytest.mark.parametrize("head", [b"GET / HTTP/1.1\r\nX: ", b"GET /"])
def test_a_head_without_end_is_cut_off(gateway: RunningGateway, head: bytes) -> None:
    with connected(gateway) as opened:
        opened.sendall(head)
        try:
            for _ in range(64):
                opened.sendall(b"x" * 16384)
            received = answer(opened)
        except ConnectionError:
            return
    assert b"RequestHeaderSectionTooLarge" in received


def test_a_client_that_says_nothing_is_let_go(
    gateway: RunningGateway, s3: Any, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_module, "SILENCE_SECONDS", 0.2)
    with connected(gateway) as idle, connected(gateway) as stalled:
        stalled.sendall(put_head(s3, bucket, "stalled", "Content-Length: 10") + b"abc")
        assert b"<Code>RequestTimeout</Code>" in answer(stalled)
        assert b"<Code>RequestTimeout</Code>" in answer(idle)
    assert s3.list_objects_v2(Bucket=bucket)["KeyCount"] == 0


def test_many_idle_connections_keep_nobody_out(gateway: RunningGateway, s3: Any) -> None:
    opened = [socket.create_connection(("127.0.0.1", gateway.port)) for _ in range(600)]
    try:
        assert s3.list_buckets()["ResponseMetadata"]["HTTPStatusCode"] == 200
    finally:
        for each in opened:
            each.close()


def test_a_client_that_does_not_read_is_let_go(
    gateway: RunningGateway, s3: Any, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost, lose = Event(), GatewayProtocol.connection_lost

    def connection_lost(protocol: GatewayProtocol, problem: Exception | None) -> None:
        lose(protocol, problem)
        lost.set()

    s3.put_object(Bucket=bucket, Key="large", Body=bytes(LARGE_BYTES))
    monkeypatch.setattr(GatewayProtocol, "connection_lost", connection_lost)
    monkeypatch.setattr(connection_module, "SILENCE_SECONDS", 0.2)
    url = urlsplit(s3.generate_presigned_url("get_object", {"Bucket": bucket, "Key": "large"}, ExpiresIn=60))
    with connected(gateway) as opened:
        opened.sendall(f"GET {url.path}?{url.query} HTTP/1.1\r\nHost: {url.netloc}\r\n\r\n".encode())
        assert lost.wait(30)
        assert len(answer(opened)) < LARGE_BYTES


def test_a_document_that_comes_in_drops_is_refused(
    gateway: RunningGateway, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each drop starts the clock for silence anew."""
    monkeypatch.setattr(body_module, "DOCUMENT_SECONDS", 0.3)
    head = f"PUT /{bucket}?notification HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 10000\r\n\r\n"
    with connected(gateway) as opened:
        opened.sendall(head.encode())
        opened.settimeout(0.05)
        received = b""
        for _ in range(600):
            try:
                received = opened.recv(65536)
                break
            except TimeoutError:
                opened.sendall(b" ")
    assert b"<Code>RequestTimeout</Code>" in received


STRANGE_HEADS = {
    "document": "POST /{bucket}?delete HTTP/1.1\r\nContent-Length: 10\r\n",
    "form": "POST /{bucket} HTTP/1.1\r\nContent-Length: 10\r\n"
    "Content-Type: multipart/form-data; boundary=b\r\n",
    "sns": "POST / HTTP/1.1\r\nContent-Length: 100000\r\nX-Amz-Date: 20300131T000000Z\r\n"
    "Authorization: AWS4-HMAC-SHA256 Credential=nobody/20300131/us-east-1/sns/aws4_request,"
    f" SignedHeaders=host;x-amz-date, Signature={64 * '0'}\r\n",
}


@pytest.mark.parametrize("kind", STRANGE_HEADS)
def test_strangers_who_never_come_to_an_end_keep_out_strangers_only(
    gateway: RunningGateway, s3: Any, bucket: str, kind: str
) -> None:
    head = STRANGE_HEADS[kind].format(bucket=bucket) + "Host: 127.0.0.1\r\n\r\n"

    def ask() -> int:
        return urllib3.request("PUT", f"{gateway.url}/{bucket}?tagging", body=b"<", retries=False).status

    with ExitStack() as opened:
        for _ in range(STRANGERS):
            opened.enter_context(connected(gateway)).sendall(head.encode())
        until(lambda: ask() == 503, 30, lambda: "not all places are taken")
        s3.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": "k"}]})
        assert urllib3.request("GET", f"{gateway.url}/{bucket}").status == 403
    until(lambda: ask() == 400, 30, lambda: "no place was given back")
