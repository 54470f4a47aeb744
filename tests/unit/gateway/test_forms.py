"""Forms, however odd, and however they are cut into pieces."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.in_process import HOST, InProcess, signed_headers

fuzzed = settings(max_examples=60)
line = st.sampled_from(
    [
        b"--b\r\n",
        b"\r\n--b\r\n",
        b"\r\n--b--\r\n",
        b'Content-Disposition: form-data; name="key"\r\n\r\n',
        b'Content-Disposition: form-data; name="policy"\r\n\r\n',
        b'Content-Disposition: form-data; name="signature"\r\n\r\n',
        b'Content-Disposition: form-data; name="AWSAccessKeyId"\r\n\r\n',
        b'Content-Disposition: form-data; name="file"; filename="a"\r\n\r\n',
        b"AKROOT",
        b"bnVsbA==",
        b"\r\n",
    ]
) | st.binary(max_size=8)


def send(app: InProcess, bucket: str, pieces: list[bytes]) -> int:
    headers = [
        ("Host", HOST),
        ("Content-Type", "multipart/form-data; boundary=b"),
        ("Content-Length", str(sum(map(len, pieces)))),
    ]
    return app.send("POST", f"/{bucket}", headers, pieces).status


def test_a_form_that_is_signed_by_its_head_says_nothing_of_its_body(app: InProcess) -> None:
    form = (
        b'--b\r\nContent-Disposition: form-data; name="key"\r\n\r\nsigned\r\n'
        b'--b\r\nContent-Disposition: form-data; name="file"; filename="x"\r\n\r\ncontent\r\n--b--\r\n'
    )
    kind = [("Content-Type", "multipart/form-data; boundary=b")]
    digest = signed_headers("POST", "/media", form, kind)
    refused = app.send("POST", "/media", digest, form.replace(b"content", b"another"))
    assert (refused.status, refused.code) == (501, "NotImplemented")
    unsigned = signed_headers("POST", "/media", form, kind, payload="UNSIGNED-PAYLOAD")
    assert app.send("POST", "/media", unsigned, form).status == 204
    assert app.metabase.objects.get("media", "signed").inline == b"content"


@pytest.mark.parametrize("boundary", ["", "b b", "bound€ry".encode().decode("latin-1")])
def test_a_boundary_that_is_none_is_refused(app: InProcess, boundary: str) -> None:
    headers = [("Host", HOST), ("Content-Type", f"multipart/form-data; boundary={boundary}")]
    refused = app.send("POST", "/media", headers, b"--x--\r\n")
    assert (refused.status, refused.code) == (400, "MalformedPOSTRequest")


@fuzzed
@given(st.lists(line, min_size=1, max_size=12))
def test_any_form_that_nobody_signed_is_refused(app: InProcess, pieces: list[bytes]) -> None:
    assert 400 <= send(app, "media", pieces) < 500


@fuzzed
@given(st.data())
def test_a_form_may_arrive_in_any_pieces(app: InProcess, data: st.DataObject) -> None:
    content = data.draw(st.binary(max_size=60) | st.just(b"\r\n--\r\n--a\r\n-"))
    form = (
        b'--b\r\nContent-Disposition: form-data; name="key"\r\n\r\nthe key\r\n'
        b'--b\r\nContent-Disposition: form-data; name="file"; filename="x"\r\n\r\n'
        + content
        + b"\r\n--b--\r\n"
    )
    cuts = sorted(data.draw(st.lists(st.integers(0, len(form)), max_size=5)))
    pieces = [form[start:end] for start, end in zip([0, *cuts], [*cuts, len(form)], strict=True)]
    app.signed("PUT", "/open", headers=[("x-amz-acl", "public-read-write")])
    if b"\r\n--b" in content:
        return
    assert send(app, "open", pieces) == 204
    assert app.metabase.objects.get("open", "the key").inline == content
