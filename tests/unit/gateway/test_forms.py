"""Forms, however odd, and however they are cut into pieces."""

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.in_process import HOST, InProcess

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
