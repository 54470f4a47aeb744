"""Headers that name a key or a tag are UTF-8, percent-encoded or not: no other encoding is guessed."""

import pytest

from gateway.in_process import Answered, InProcess, signed_headers

NO_UTF8 = [b"\xe4", b"%E4", b"%C3%A4\xe4", b"\xff", b"%FF"]
IN_UTF8 = [b"\xc3\xa4", b"%C3%A4", b"%c3%a4"]
MOVE = ("x-bucketwire-move", "true")


def signed(
    app: InProcess, method: str, target: str, name: str, value: bytes, *more: tuple[str, str]
) -> Answered:
    """Send a header in these very bytes; its text is signed."""
    latin1 = value.decode("latin-1")
    try:
        text = value.decode()
    except UnicodeDecodeError:
        text = latin1
    headers = signed_headers(method, target, b"", [(name, text), *more])
    return app.send(method, target, [(each, latin1 if each == name else told) for each, told in headers])


def copies(app: InProcess, key: bytes) -> list[Answered]:
    """A copy, the copy of a part, and a move."""
    upload = app.signed("POST", "/media/whole?uploads").field("UploadId")
    part, source = f"/media/whole?partNumber=1&uploadId={upload}", b"/media/" + key
    return [
        signed(app, "PUT", "/media/copy", "x-amz-copy-source", source),
        signed(app, "PUT", part, "x-amz-copy-source", source),
        signed(app, "PUT", "/media/moved", "x-amz-copy-source", source, MOVE),
    ]


@pytest.fixture(autouse=True)
def _an_object(app: InProcess) -> None:
    assert app.signed("PUT", "/media/%C3%A4", b"x").status == 200


@pytest.mark.parametrize("key", NO_UTF8)
def test_a_source_that_is_no_utf8_is_refused(app: InProcess, key: bytes) -> None:
    for answered in copies(app, key):
        assert (answered.status, answered.code) == (400, "InvalidArgument")
        assert answered.field("ArgumentName") == "x-amz-copy-source"


@pytest.mark.parametrize("key", IN_UTF8)
def test_a_source_in_utf8_may_be_percent_encoded_or_not(app: InProcess, key: bytes) -> None:
    assert [answered.status for answered in copies(app, key)] == [200, 200, 200]


@pytest.mark.parametrize(("method", "target"), [("PUT", "/media/tagged"), ("POST", "/media/tagged?uploads")])
def test_tags_in_a_header_are_utf8_too(app: InProcess, method: str, target: str) -> None:
    for value in NO_UTF8:
        answered = signed(app, method, target, "x-amz-tagging", b"a=" + value)
        assert (answered.status, answered.code) == (400, "InvalidArgument")
        assert answered.field("ArgumentName") == "x-amz-tagging"
    for value in IN_UTF8:
        assert signed(app, method, target, "x-amz-tagging", b"a=" + value).status == 200


def test_metadata_beside_them_is_read_as_latin1_all_the_same(app: InProcess) -> None:
    more = [("x-amz-copy-source", "/media/%C3%A4"), ("x-amz-metadata-directive", "REPLACE")]
    assert signed(app, "PUT", "/media/described", "x-amz-meta-a", b"\xe4", *more).status == 200
    assert app.metabase.objects.get("media", "described").metadata == {"a": "\u00e4"}
