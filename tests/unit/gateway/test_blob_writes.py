"""Bytes whose commit fails: they go when it was refused, and stay when nobody knows."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bucketwire.errors import InvalidRequest, Unavailable
from gateway.in_process import Answered, InProcess, signed_headers

LARGE = b"x" * 20_000
FORM = (
    b'--b\r\nContent-Disposition: form-data; name="key"\r\n\r\nposted\r\n'
    b'--b\r\nContent-Disposition: form-data; name="file"; filename="x"\r\n\r\n' + LARGE + b"\r\n--b--\r\n"
)
FORM_TYPE = [("Content-Type", "multipart/form-data; boundary=b")]


def post(app: InProcess) -> Answered:
    headers = signed_headers("POST", "/media", FORM, FORM_TYPE, payload="UNSIGNED-PAYLOAD")
    return app.send("POST", "/media", headers, FORM)


def upload_part(app: InProcess) -> Answered:
    started = app.signed("POST", "/media/parts?uploads")
    return app.signed("PUT", f"/media/parts?partNumber=1&uploadId={started.field('UploadId')}", LARGE)


WRITES: dict[str, Callable[[InProcess], Answered]] = {
    "put": lambda app: app.signed("PUT", "/media/put", LARGE),
    "copy": lambda app: app.signed("PUT", "/media/copy", headers=[("x-amz-copy-source", "/media/source")]),
    "post": post,
    "part": upload_part,
}


@pytest.fixture
def app(tmp_path: Path) -> Iterator[InProcess]:
    app = InProcess(tmp_path)
    app.signed("PUT", "/media")
    app.signed("PUT", "/media/source", LARGE)
    yield app
    app.close()


def blobs(app: InProcess) -> int:
    """How many files there are, finished or not."""
    return sum(path.is_file() for path in app.objects.rglob("*"))


def fail_commits(app: InProcess, monkeypatch: pytest.MonkeyPatch, problem: Exception) -> None:
    def fail(*_given: Any) -> Any:
        raise problem

    monkeypatch.setattr(app.metabase.objects, "put", fail)
    monkeypatch.setattr(app.metabase.uploads, "put_part", fail)


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_bytes_stay_when_nobody_knows_whether_they_were_committed(
    app: InProcess, monkeypatch: pytest.MonkeyPatch, write: Callable[[InProcess], Answered]
) -> None:
    fail_commits(app, monkeypatch, Unavailable("gone while it committed"))
    assert (write(app).status, blobs(app)) == (503, 2)


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_bytes_go_when_they_were_refused(
    app: InProcess, monkeypatch: pytest.MonkeyPatch, write: Callable[[InProcess], Answered]
) -> None:
    fail_commits(app, monkeypatch, InvalidRequest("no"))
    assert (write(app).status, blobs(app)) == (400, 1)


@pytest.mark.parametrize("name", ["put", "post"])
def test_bytes_go_when_a_queue_has_filled_up_while_they_came(
    app: InProcess, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    looks: list[Any] = []

    def check(*given: Any) -> None:
        looks.append(given)
        if len(looks) > 1:
            raise Unavailable("full", code="SlowDown")

    monkeypatch.setattr(app.app._services.backpressure, "check", check)
    assert (WRITES[name](app).code, blobs(app)) == ("SlowDown", 1)
