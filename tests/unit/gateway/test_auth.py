"""Who sent a request."""

import hashlib
import hmac
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl, quote

import pytest
from botocore.auth import HmacV1QueryAuth, S3SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as SigningCredentials
from hypothesis import given
from hypothesis import strategies as st

from bucketwire.access.credentials import KeyRing
from bucketwire.errors import CallError
from bucketwire.gateway.auth import authenticate, read_claim
from bucketwire.gateway.caller import Caller
from bucketwire.gateway.protocol.model import load_service
from bucketwire.gateway.protocol.parse import rest_plan
from bucketwire.gateway.request import Request
from bucketwire.gateway.s3 import OPERATIONS
from gateway.in_process import HOST, InProcess, signed_headers
from gateway.running import ROOT

KEYS = KeyRing([ROOT])
NARROWING = {
    "bucket-region",
    "continuation-token",
    "delimiter",
    "encoding-type",
    "fetch-owner",
    "key-marker",
    "list-type",
    "marker",
    "max-buckets",
    "max-keys",
    "max-parts",
    "max-uploads",
    "part-number-marker",
    "prefix",
    "start-after",
    "upload-id-marker",
    "version-id-marker",
}
"""What no client signs with Version 2: which part of a listing is wanted, and how it is written."""
EXPLAINED = {"key", "event", "size", "etag", "metadata", "tag", "version"}
"""They mean something beside `explain` alone."""
odd_keys = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=60
) | st.text(st.sampled_from("/.%+ ~&=?#;'\"ü€"), min_size=1, max_size=20)


def request_of(method: str, target: str, headers: list[tuple[str, Any]]) -> Request:
    path, _, query = target.partition("?")
    scope = {
        "method": method,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [
            (name.lower().encode(), text.encode() if isinstance(text, str) else text)
            for name, text in headers
        ],
    }

    async def receive() -> dict[str, Any]:
        raise AssertionError("nothing is received before the caller is known")

    return Request(scope, receive, "ID")  # type: ignore[arg-type]


def check(request: Request, now: datetime | None = None) -> Caller:
    return authenticate(request, read_claim(request), KEYS, lambda: now or datetime.now(UTC))


def refused(request: Request, now: datetime | None = None) -> CallError:
    with pytest.raises(CallError) as raised:
        check(request, now)
    return raised.value


def presigned(target: str, expires: int = 60) -> str:
    request = AWSRequest("GET", f"http://{HOST}{target}")
    credentials = SigningCredentials(ROOT.access_key, ROOT.secret_key)
    S3SigV4QueryAuth(credentials, "s3", "us-west-2", expires).add_auth(request)
    return str(request.url).removeprefix(f"http://{HOST}")


def presigned_v2(target: str) -> str:
    request = AWSRequest("GET", f"http://{HOST}{target}")
    HmacV1QueryAuth(SigningCredentials(ROOT.access_key, ROOT.secret_key)).add_auth(request)
    return str(request.url).removeprefix(f"http://{HOST}")


def query_names() -> set[str]:
    """All that picks an operation, and all that changes one that is built."""
    service = load_service("s3")
    operations = [service.operation_model(name) for name in service.operation_names]
    fixed = [
        parse_qsl(each.http["requestUri"].partition("?")[2], keep_blank_values=True) for each in operations
    ]
    built = [rest_plan(each).parameters for each in operations if each.name in OPERATIONS]
    return {name for pairs in fixed for name, _ in pairs}.union(*built)


@given(odd_keys, st.text(max_size=20))
def test_any_key_and_any_query_that_botocore_signs_is_accepted(key: str, prefix: str) -> None:
    parameters = f"?prefix={quote(prefix.encode(errors='replace'), safe='')}" if prefix else ""
    target = f"/media/{quote(key, safe='/~')}{parameters}"
    request = request_of("PUT", target, signed_headers("PUT", target, b"hello"))
    assert check(request).credentials == ROOT


@given(odd_keys)
def test_any_key_that_botocore_presigns_is_accepted(key: str) -> None:
    target = presigned(f"/media/{quote(key, safe='/~')}")
    assert check(request_of("GET", target, [("Host", HOST)])).payload == "UNSIGNED-PAYLOAD"


def signed_over(metadata: bytes, sent: bytes) -> Request:
    """A PUT that sends this metadata, signed by hand over that."""
    now = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    scope = f"{now[:8]}/us-east-1/s3/aws4_request"
    headers = {"host": HOST.encode(), "x-amz-content-sha256": b"UNSIGNED-PAYLOAD"}
    headers |= {"x-amz-date": now.encode(), "x-amz-meta-a": metadata}
    lines = b"".join(name.encode() + b":" + value + b"\n" for name, value in headers.items())
    names = ";".join(headers)
    canonical = b"PUT\n/b/k\n\n" + lines + f"\n{names}\nUNSIGNED-PAYLOAD".encode()
    to_sign = f"AWS4-HMAC-SHA256\n{now}\n{scope}\n{hashlib.sha256(canonical).hexdigest()}"
    key = b"AWS4" + ROOT.secret_key.encode()
    for part in [*scope.split("/"), to_sign]:
        key = hmac.digest(key, part.encode(), "sha256")
    authorization = (
        f"AWS4-HMAC-SHA256 Credential={ROOT.access_key}/{scope}, SignedHeaders={names}, Signature={key.hex()}"
    )
    return request_of(
        "PUT", "/b/k", [*(headers | {"x-amz-meta-a": sent}).items(), ("authorization", authorization)]
    )


@pytest.mark.parametrize(
    "metadata", [b"plain", b"\xc3\xa4", b"\xe4 \xff", b"\xe4\xc3\xa4", "a\u3000b\xa0c".encode()]
)
def test_a_signature_may_be_over_the_bytes_that_were_sent(metadata: bytes) -> None:
    assert check(signed_over(metadata, sent=metadata)).credentials == ROOT


def test_a_signature_may_be_over_the_text_that_was_sent_in_latin_1() -> None:
    request = signed_over("ä".encode(), sent=b"\xe4")
    assert check(request).credentials == ROOT
    assert request.headers["x-amz-meta-a"] == "ä"


@pytest.mark.parametrize(("metadata", "sent"), [(b"\xe4", b"\xe5"), (b"\xe4", b"\xc3\xa4")])
def test_other_bytes_than_those_that_were_signed_are_refused(metadata: bytes, sent: bytes) -> None:
    assert refused(signed_over(metadata, sent)).code == "SignatureDoesNotMatch"


def test_one_changed_byte_of_what_is_signed_is_refused() -> None:
    headers = signed_headers("PUT", "/media/key", b"hello", [("x-amz-meta-a", "1")])
    changed = [(name, "2" if name == "x-amz-meta-a" else text) for name, text in headers]
    assert refused(request_of("PUT", "/media/key", changed)).code == "SignatureDoesNotMatch"
    assert refused(request_of("PUT", "/media/kez", headers)).code == "SignatureDoesNotMatch"
    assert refused(request_of("GET", "/media/key", headers)).code == "SignatureDoesNotMatch"
    assert refused(request_of("PUT", "/media/key?acl", headers)).code == "SignatureDoesNotMatch"
    target = presigned("/media/key")
    assert (
        refused(request_of("GET", target.replace("key", "kez"), [("Host", HOST)])).code
        == "SignatureDoesNotMatch"
    )


def test_a_header_that_is_added_behind_the_signature_is_refused() -> None:
    headers = [*signed_headers("PUT", "/media/key", b""), ("x-amz-acl", "public-read")]
    error = refused(request_of("PUT", "/media/key", headers))
    assert (error.code, error.fields["HeadersNotSigned"]) == ("AccessDenied", "x-amz-acl")


def test_a_header_of_bucketwires_own_is_signed_like_those_of_s3() -> None:
    own = ("x-bucketwire-move", "true")
    signed = signed_headers("PUT", "/media/key", b"", [own])
    assert check(request_of("PUT", "/media/key", signed)).credentials == ROOT
    added = [*signed_headers("PUT", "/media/key", b""), own]
    assert refused(request_of("PUT", "/media/key", added)).fields == {"HeadersNotSigned": own[0]}


@pytest.mark.parametrize("name", sorted(query_names() - EXPLAINED))
def test_version_2_signs_all_of_a_query_but_what_narrows_a_listing(name: str) -> None:
    target = presigned_v2("/media/key")
    for written in (name, f"%{ord(name[0]):02x}{name[1:]}"):
        request = request_of("GET", f"{target}&{written}=x", [("Host", HOST)])
        if name in NARROWING:
            assert check(request).credentials == ROOT
        else:
            assert refused(request).code in {"SignatureDoesNotMatch", "AccessDenied"}


@pytest.mark.parametrize(
    ("minutes", "code"), [(14, None), (16, "RequestTimeTooSkewed"), (-16, "RequestTimeTooSkewed")]
)
def test_the_clocks_may_differ_by_a_quarter_of_an_hour(minutes: int, code: str | None) -> None:
    request = request_of("GET", "/", signed_headers("GET", "/", b""))
    now = datetime.now(UTC) + timedelta(minutes=minutes)
    if code is None:
        assert check(request, now).credentials == ROOT
    else:
        assert refused(request, now).code == code


def test_a_presigned_request_expires_and_is_not_valid_before_its_time() -> None:
    request = request_of("GET", presigned("/media/key", expires=60), [("Host", HOST)])
    expired = refused(request, datetime.now(UTC) + timedelta(seconds=62))
    assert (expired.code, expired.message) == ("AccessDenied", "Request has expired")
    assert refused(request, datetime.now(UTC) - timedelta(hours=1)).code == "AccessDenied"


def test_a_presigned_request_from_the_end_of_time_is_not_valid_yet() -> None:
    target = presigned("/media/key")
    stamp = dict(parse_qsl(target.partition("?")[2]))["X-Amz-Date"]
    late = target.replace(stamp, "99991231T235959Z").replace(stamp.partition("T")[0], "99991231")
    error = refused(request_of("GET", late, [("Host", HOST)]))
    assert (error.code, error.message) == ("AccessDenied", "Request is not valid yet")


def test_an_unknown_key_is_named_and_no_secret_is_told() -> None:
    headers = [
        (name, text.replace(ROOT.access_key, "NOBODY")) for name, text in signed_headers("GET", "/", b"")
    ]
    error = refused(request_of("GET", "/", headers))
    assert (error.code, error.fields) == ("InvalidAccessKeyId", {"AWSAccessKeyId": "NOBODY"})


@pytest.mark.parametrize(
    ("target", "headers", "code"),
    [
        ("/", [("Authorization", "")], "AccessDenied"),
        ("/", [("Authorization", "Bearer x")], "InvalidArgument"),
        ("/", [("Authorization", "AWS key:signature")], "InvalidAccessKeyId"),
        ("/", [("Authorization", "AWS HAHAHA")], "InvalidArgument"),
        ("/", [("Authorization", "AWS4-HMAC-SHA256 Credential=a/b")], "AuthorizationHeaderMalformed"),
        (
            "/",
            [("Authorization", "AWS4-HMAC-SHA256 Credential=a/b, SignedHeaders=host, Signature=x")],
            "AuthorizationHeaderMalformed",
        ),
        (
            "/",
            [
                (
                    "Authorization",
                    "AWS4-HMAC-SHA256 Credential=a/20260101/r/s3/aws4_request,SignedHeaders=host,Signature=x",
                )
            ],
            "AccessDenied",
        ),
        ("/?X-Amz-Algorithm=AWS4-HMAC-SHA256", [], "AuthorizationQueryParametersError"),
        ("/?AWSAccessKeyId=a&Signature=b&Expires=1", [], "InvalidAccessKeyId"),
        ("/?AWSAccessKeyId=a&Signature=b", [], "AccessDenied"),
    ],
)
def test_a_request_that_does_not_say_who_sent_it_is_refused(
    target: str, headers: list[tuple[str, str]], code: str
) -> None:
    assert refused(request_of("GET", target, headers)).code == code


@pytest.mark.parametrize("expires", ["0", "604801", "x", "-1", "٣", "9" * 30])
def test_a_presigned_request_lasts_a_second_to_a_week(expires: str) -> None:
    target = presigned("/media/key").replace("X-Amz-Expires=60", f"X-Amz-Expires={quote(expires)}")
    assert refused(request_of("GET", target, [("Host", HOST)])).code == "AuthorizationQueryParametersError"


def test_s3_wants_the_hash_of_the_body_in_a_header(app: InProcess) -> None:
    headers = [each for each in signed_headers("GET", "/", b"") if each[0] != "X-Amz-Content-SHA256"]
    answered = app.send("GET", "/", headers)
    assert (answered.status, answered.code) == (400, "InvalidRequest")


def test_a_request_without_a_claim_is_anonymous() -> None:
    assert check(request_of("PUT", "/media/key", [("Content-Length", "5")])).credentials is None
