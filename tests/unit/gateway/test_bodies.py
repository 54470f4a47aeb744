"""Bodies of objects: what does not hold what it promises is refused, and leaves nothing behind."""

import base64
import hashlib
import zlib

import pytest
from awscrt import checksums

from bucketwire.access.credentials import Credentials
from bucketwire.errors import NotFound
from gateway.in_process import HOST, Answered, Headers, InProcess, signed_headers
from gateway.running import OTHER

HELLO = b"hello"
LARGE = bytes(range(256)) * 4096
"""1 MiB: more than stays inline."""


def b64(digest: bytes) -> str:
    return base64.b64encode(digest).decode()


def put(app: InProcess, key: str, body: bytes, *headers: tuple[str, str]) -> Answered:
    return app.signed("PUT", f"/media/{key}", body, headers)


def assert_nothing_stored(app: InProcess, key: str) -> None:
    with pytest.raises(NotFound):
        app.metabase.objects.get("media", key)
    assert not any(path.is_file() for path in app.objects.rglob("*"))


@pytest.mark.parametrize("body", [b"", HELLO, LARGE], ids=["empty", "small", "large"])
@pytest.mark.parametrize(
    ("algorithm", "digest"),
    [
        ("crc32", lambda body: zlib.crc32(body).to_bytes(4, "big")),
        ("crc32c", lambda body: checksums.crc32c(body).to_bytes(4, "big")),
        ("crc64nvme", lambda body: checksums.crc64nvme(body).to_bytes(8, "big")),
        ("sha1", lambda body: hashlib.sha1(body).digest()),
        ("sha256", lambda body: hashlib.sha256(body).digest()),
        ("sha512", lambda body: hashlib.sha512(body).digest()),
        ("md5", lambda body: hashlib.md5(body).digest()),
        ("xxhash64", checksums.XXHash.compute_xxhash64),
        ("xxhash3", checksums.XXHash.compute_xxhash3_64),
        ("xxhash128", checksums.XXHash.compute_xxhash3_128),
    ],
)
def test_a_right_checksum_is_kept_and_a_wrong_one_refused(
    app: InProcess, body: bytes, algorithm: str, digest: object
) -> None:
    name, value = f"x-amz-checksum-{algorithm}", b64(digest(body))  # type: ignore[operator]
    answered = put(app, "checked", body, (name, value))
    assert (answered.status, answered.headers[name]) == (200, value)
    assert app.metabase.objects.get("media", "checked").checksums == {algorithm: value}
    app.signed("DELETE", "/media/checked")
    app.sweep()
    wrong = put(app, "wrong", body + b"!", (name, value))
    assert (wrong.status, wrong.code) == (400, "BadDigest")
    assert_nothing_stored(app, "wrong")


@pytest.mark.parametrize("body", [HELLO, LARGE], ids=["small", "large"])
@pytest.mark.parametrize(
    ("header", "value", "code"),
    [
        ("Content-MD5", b64(hashlib.md5(b"other").digest()), "BadDigest"),
        ("Content-MD5", "not base64", "InvalidDigest"),
        ("Content-MD5", b64(b"short"), "InvalidDigest"),
        ("x-amz-checksum-crc32", "not base64", "InvalidRequest"),
        ("x-amz-checksum-crc32", b64(b"longer than it is"), "InvalidRequest"),
        ("x-amz-checksum-crc99", "AAAA", "InvalidRequest"),
        ("x-amz-sdk-checksum-algorithm", "CRC32", "InvalidRequest"),
    ],
)
def test_a_digest_that_is_wrong_or_none_is_refused(
    app: InProcess, body: bytes, header: str, value: str, code: str
) -> None:
    answered = put(app, "digest", body, (header, value))
    assert (answered.status, answered.code) == (400, code)
    assert_nothing_stored(app, "digest")


def test_two_checksums_at_once_are_refused(app: InProcess) -> None:
    both = [("x-amz-checksum-crc32", "AAAAAA=="), ("x-amz-checksum-crc32c", "AAAAAA==")]
    assert put(app, "both", b"", *both).code == "InvalidRequest"


@pytest.mark.parametrize("body", [HELLO, LARGE], ids=["small", "large"])
def test_a_body_that_is_not_the_signed_one_is_refused(app: InProcess, body: bytes) -> None:
    headers = signed_headers("PUT", "/media/swapped", body)
    answered = app.send("PUT", "/media/swapped", headers, body[:-1] + b"?")
    assert (answered.status, answered.code) == (400, "XAmzContentSHA256Mismatch")
    assert_nothing_stored(app, "swapped")


@pytest.mark.parametrize("size", [5, 100_000])
@pytest.mark.parametrize("difference", [-1, 1])
def test_a_body_of_another_length_is_incomplete(app: InProcess, size: int, difference: int) -> None:
    body = b"x" * (size + difference)
    headers = signed_headers("PUT", "/media/length", b"x" * size)
    answered = app.send("PUT", "/media/length", headers, body)
    assert (answered.status, answered.code) == (400, "IncompleteBody")
    assert_nothing_stored(app, "length")


@pytest.mark.parametrize("body", [HELLO, LARGE], ids=["small", "large"])
def test_a_client_that_goes_away_leaves_nothing_behind(app: InProcess, body: bytes) -> None:
    headers = signed_headers("PUT", "/media/gone", body)
    app.send("PUT", "/media/gone", headers, [body[: len(body) // 2]], disconnects=True)
    assert_nothing_stored(app, "gone")


def test_a_body_without_a_length_is_refused(app: InProcess) -> None:
    headers = [each for each in signed_headers("PUT", "/media/k", b"") if each[0] != "Content-Length"]
    answered = app.send("PUT", "/media/k", [*headers, ("Transfer-Encoding", "chunked")], HELLO)
    assert (answered.status, answered.code) == (411, "MissingContentLength")


@pytest.mark.parametrize("size", [5 * 1024**3 + 1, 10**18])
def test_an_object_of_more_than_five_gibibytes_is_refused_before_it_is_received(
    app: InProcess, size: int
) -> None:
    headers = [each for each in signed_headers("PUT", "/media/k", b"") if each[0] != "Content-Length"]
    answered = app.send("PUT", "/media/k", [*headers, ("Content-Length", str(size))], b"never looked at")
    assert (answered.status, answered.code) == (400, "EntityTooLarge")
    assert answered.headers["connection"] == "close"


@pytest.mark.parametrize("payload", ["", "nonsense", "0" * 63])
def test_what_stands_for_the_body_must_be_a_digest_or_a_known_word(app: InProcess, payload: str) -> None:
    answered = put_streaming(app, payload, b"", 0)
    assert (answered.status, answered.code) == (400, "InvalidArgument")


def test_a_way_of_streaming_that_is_not_built_is_named(app: InProcess) -> None:
    answered = put_streaming(app, "STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD", b"", 0)
    assert (answered.status, answered.code) == (501, "NotImplemented")


def put_streaming(
    app: InProcess, payload: str, body: bytes, decoded: int, *headers: tuple[str, str]
) -> Answered:
    more = [("x-amz-decoded-content-length", str(decoded)), *headers]
    signed = signed_headers("PUT", "/media/streamed", b"", more, payload=payload)
    return app.send(
        "PUT",
        "/media/streamed",
        [(name, str(len(body)) if name == "Content-Length" else text) for name, text in signed],
        body,
    )


UNSIGNED_TRAILER = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
CRC = b64(zlib.crc32(HELLO).to_bytes(4, "big"))
TRAILER = ("x-amz-trailer", "x-amz-checksum-crc32")


def framed(trailer: str) -> bytes:
    return b"5\r\nhello\r\n0\r\n" + trailer.encode() + b"\r\n\r\n"


def test_a_checksum_in_the_trailer_is_kept(app: InProcess) -> None:
    encoding = ("Content-Encoding", "aws-chunked,gzip")
    answered = put_streaming(
        app, UNSIGNED_TRAILER, framed(f"x-amz-checksum-crc32:{CRC}"), 5, TRAILER, encoding
    )
    assert answered.status == 200
    stored = app.metabase.objects.get("media", "streamed")
    assert (stored.inline, stored.checksums, stored.headers) == (
        HELLO,
        {"crc32": CRC},
        {"content-encoding": "gzip"},
    )
    app.signed("DELETE", "/media/streamed")


@pytest.mark.parametrize(
    ("trailer", "decoded", "code"),
    [
        ("x-amz-checksum-crc32:AAAAAA==", 5, "BadDigest"),
        ("x-amz-checksum-crc32:nonsense", 5, "InvalidRequest"),
        (f"x-amz-checksum-crc32c:{CRC}", 5, "MalformedTrailerError"),
        ("", 5, "MalformedTrailerError"),
        (f"x-amz-checksum-crc32:{CRC}", 4, "IncompleteBody"),
        (f"x-amz-checksum-crc32:{CRC}", 6, "IncompleteBody"),
    ],
)
def test_a_trailer_that_does_not_fit_is_refused(
    app: InProcess, trailer: str, decoded: int, code: str
) -> None:
    answered = put_streaming(app, UNSIGNED_TRAILER, framed(trailer), decoded, TRAILER)
    assert (answered.status, answered.code) == (400, code)
    assert_nothing_stored(app, "streamed")


def test_a_chunk_with_a_broken_signature_is_refused_and_nothing_is_stored(app: InProcess) -> None:
    body = b"5;chunk-signature=" + b"0" * 64 + b"\r\nhello\r\n0;chunk-signature=" + b"0" * 64 + b"\r\n\r\n"
    answered = put_streaming(app, "STREAMING-AWS4-HMAC-SHA256-PAYLOAD", body, 5)
    assert (answered.status, answered.code) == (403, "SignatureDoesNotMatch")
    assert_nothing_stored(app, "streamed")


def test_a_document_of_more_than_a_mebibyte_is_refused(app: InProcess) -> None:
    answered = app.signed("PUT", "/media?notification", b"<" + b"x" * 1024 * 1024)
    assert (answered.status, answered.code) == (400, "MaxMessageLengthExceeded")


@pytest.mark.parametrize("who", [None, OTHER], ids=["nobody", "other"])
@pytest.mark.parametrize("target", ["/media?delete", "/media/k?uploadId=u"])
def test_a_large_document_of_who_may_not_write_is_not_received(
    app: InProcess, target: str, who: Credentials | None
) -> None:
    small, large = (
        app.send("POST", target, unsigned(body), body)
        if who is None
        else app.signed("POST", target, body, who=who)
        for body in (b"<", b"<" * 100_000)
    )
    assert (small.status, small.code) == (400, "MalformedXML")
    assert (large.status, large.code, large.headers["connection"]) == (403, "AccessDenied", "close")


def unsigned(body: bytes) -> Headers:
    return [("Host", HOST), ("Content-Length", str(len(body)))]


def test_a_large_document_that_nobody_signed_is_not_received_and_a_small_one_is_read(app: InProcess) -> None:
    small = app.send("PUT", "/media?tagging", unsigned(b"<"), b"<")
    assert (small.status, small.code) == (400, "MalformedXML")
    for headers in (unsigned(LARGE[:100_000]), [("Host", HOST), ("Transfer-Encoding", "chunked")]):
        large = app.send("PUT", "/media?tagging", headers, LARGE[:100_000])
        assert (large.status, large.code, large.headers["connection"]) == (403, "AccessDenied", "close")
