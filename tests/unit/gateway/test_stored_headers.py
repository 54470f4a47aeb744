"""What is kept with an object comes back as headers, so it must be fit for that, however it was sent."""

from urllib.parse import quote

import pytest
from botocore.auth import S3SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from gateway.in_process import HOST, Answered, InProcess
from gateway.running import ROOT

REDIRECT = "x-amz-website-redirect-location"
LEGIBLE = [
    "",
    "a\tb",
    "\u00e9t\u00e9 \u4e16\u754c",
    "\u00a0\u200b",
    "\u6771\u4eac\u3000\u5927\u962a",
    "\U0001f469\u200d\U0001f680",
    "\u0085\u2028",
]


def presigned(app: InProcess, method: str, path: str, **query: str) -> Answered:
    """Send a request whose URL ROOT has signed in advance."""
    text = "&".join(f"{quote(name)}={quote(value)}" for name, value in query.items())
    request = AWSRequest(method, f"http://{HOST}{path}?{text}")
    S3SigV4QueryAuth(Credentials(ROOT.access_key, ROOT.secret_key), "s3", "us-east-1").add_auth(request)
    target = request.url.removeprefix(f"http://{HOST}")
    return app.send(method, target, [("Host", HOST), ("Content-Length", "0")])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("x-amz-meta-a b", "1"),
        ("x-amz-meta-a:b", "1"),
        ("x-amz-meta-a\r\nb", "1"),
        ("x-amz-meta-\u00e9", "1"),
        ("x-amz-meta-a", "1\r\nset-cookie: x"),
        ("x-amz-meta-a", "\0"),
        ("x-amz-meta-a", "\x7f"),
        (REDIRECT, "/a\nb"),
    ],
)
@pytest.mark.parametrize(("method", "more"), [("PUT", {}), ("POST", {"uploads": ""})])
def test_what_no_header_can_say_is_refused(
    app: InProcess, method: str, more: dict[str, str], name: str, value: str
) -> None:
    refused = presigned(app, method, "/media/key", **more, **{name: value})
    assert (refused.status, refused.code) == (400, "InvalidArgument")


@pytest.mark.parametrize("value", LEGIBLE)
def test_what_a_header_can_say_is_kept(app: InProcess, value: str) -> None:
    assert presigned(app, "PUT", "/media/key", **{"x-amz-meta-a.b_c": value}).status == 200
    got = app.signed("GET", "/media/key")
    assert got.headers["x-amz-meta-a.b_c"].encode("latin-1").decode() == value


def posted(app: InProcess, *fields: tuple[str, str]) -> Answered:
    """Send a form that nobody signed to a bucket that is open."""
    parts = [
        f'--b\r\nContent-Disposition: form-data; name="{each}"\r\n\r\n{text}\r\n'
        for each, text in [("key", "posted"), *fields]
    ]
    parts.append('--b\r\nContent-Disposition: form-data; name="file"; filename="x"\r\n\r\nx\r\n--b--\r\n')
    app.signed("PUT", "/open", headers=[("x-amz-acl", "public-read-write")])
    form = "".join(parts).encode()
    kind, size = "multipart/form-data; boundary=b", str(len(form))
    headers = [("Host", HOST), ("Content-Type", kind), ("Content-Length", size)]
    return app.send("POST", "/open", headers, form)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("x-amz-meta-a b", "1"),
        ("x-amz-meta-a", "1\r\n2"),
        ("x-amz-meta-a", "\0"),
        ("x-amz-meta-a", "\x7f"),
        (REDIRECT, "/a\nb"),
        ("Content-Type", "a\rb"),
        ("Cache-Control", "a\nb"),
        ("success_action_redirect", "http://a/\r\nset-cookie: x"),
        ("redirect", "https://a/\n"),
    ],
)
def test_a_field_of_a_form_is_no_exception(app: InProcess, name: str, value: str) -> None:
    refused = posted(app, (name, value))
    assert (refused.status, refused.code) == (400, "InvalidArgument")


@pytest.mark.parametrize("value", LEGIBLE)
def test_a_form_says_what_a_header_can_say(app: InProcess, value: str) -> None:
    assert posted(app, ("x-amz-meta-a.b_c", value), ("Cache-Control", value)).status == 204
    got = app.signed("GET", "/open/posted")
    for name in ("x-amz-meta-a.b_c", "cache-control"):
        assert got.headers[name].encode("latin-1").decode() == value


@pytest.mark.parametrize("name", ["x-ignore-note", "note", "success_action_status"])
def test_a_field_that_becomes_no_header_may_have_lines(app: InProcess, name: str) -> None:
    assert posted(app, (name, "one\r\ntwo\0")).status == 204


def test_of_a_repeated_field_the_last_counts(app: InProcess) -> None:
    assert posted(app, ("x-amz-meta-a", "1"), ("X-Amz-Meta-A", "2")).status == 204
    assert app.signed("GET", "/open/posted").headers["x-amz-meta-a"] == "2"


@pytest.mark.parametrize("name", ["content-type", "content-disposition", "cache-control", "expires"])
def test_what_the_client_wants_instead_is_no_exception(app: InProcess, name: str) -> None:
    app.signed("PUT", "/media/key", b"x")
    refused = app.signed("GET", f"/media/key?response-{name}=a%0D%0Ab")
    assert (refused.status, refused.code) == (400, "InvalidArgument")
