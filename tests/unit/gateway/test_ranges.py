"""Ranges whose numbers are longer than any size, and those that are meant for one object only: If-Range."""

import pytest

from gateway.in_process import Answered, InProcess

CONTENT = b"0123456789"


@pytest.fixture(scope="module", autouse=True)
def stored(app: InProcess) -> Answered:
    app.signed("PUT", "/media/ranged", CONTENT)
    return app.signed("HEAD", "/media/ranged")


def read(app: InProcess, validator: str, asked: str = "bytes=2-4") -> Answered:
    return app.signed("GET", "/media/ranged", headers=[("range", asked), ("if-range", validator)])


@pytest.mark.parametrize("name", ["etag", "last-modified"])
def test_a_validator_of_the_object_gets_the_range(app: InProcess, stored: Answered, name: str) -> None:
    got = read(app, stored.headers[name])
    assert (got.status, got.body, got.headers["content-range"]) == (206, b"234", "bytes 2-4/10")
    assert read(app, stored.headers[name], "bytes=20-").status == 416


@pytest.mark.parametrize(
    "validator", ['"another"', "W/{etag}", "Sun, 15 Nov 2015 20:24:40 GMT", "*", "", "rubbish"]
)
def test_any_other_gets_the_whole_object(app: InProcess, stored: Answered, validator: str) -> None:
    got = read(app, validator.format(etag=stored.headers["etag"]))
    assert (got.status, got.body, got.headers.get("content-range")) == (200, CONTENT, None)
    assert read(app, '"another"', "bytes=20-").status == 200


def test_without_a_range_it_says_nothing(app: InProcess) -> None:
    got = app.signed("GET", "/media/ranged", headers=[("if-range", '"another"')])
    assert (got.status, got.body) == (200, CONTENT)


@pytest.mark.parametrize(
    ("asked", "content_range"),
    [
        ("bytes=5-9223372036854775806", "bytes 5-9/10"),
        (f"bytes=5-{'9' * 5000}", "bytes 5-9/10"),
        (f"bytes={'0' * 5000}5-{'0' * 5000}7", "bytes 5-7/10"),
        ("bytes=-9223372036854775807", "bytes 0-9/10"),
    ],
)
def test_a_range_may_end_far_behind_the_object(app: InProcess, asked: str, content_range: str) -> None:
    got = app.signed("GET", "/media/ranged", headers=[("range", asked)])
    assert (got.status, got.headers["content-range"]) == (206, content_range)


@pytest.mark.parametrize("start", ["9" * 19, "9" * 5000])
def test_no_range_starts_there(app: InProcess, start: str) -> None:
    got = app.signed("GET", "/media/ranged", headers=[("range", f"bytes={start}-")])
    assert (got.status, got.code, got.headers["content-range"]) == (416, "InvalidRange", "bytes */10")
    assert app.signed("GET", "/media/ranged", headers=[("range", f"bytes={start}-5")]).status == 200
