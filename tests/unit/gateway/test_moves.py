"""Who may move an object, and where to."""

import uuid

import pytest

from bucketwire.access.credentials import Credentials
from bucketwire.errors import NotFound
from bucketwire.event.change import Versioning
from bucketwire.metainfo.permission import BLOCK_DOCUMENT, OWNERSHIP_DOCUMENT
from gateway.in_process import HOST, Answered, InProcess
from gateway.running import OTHER, ROOT

OPEN = [("x-amz-acl", "public-read-write")]
READABLE = [("x-amz-acl", "public-read")]
DENIED = (403, "AccessDenied")


@pytest.fixture
def opened(app: InProcess) -> str:
    """A bucket that all may write to, with an object that all may read."""
    name = f"open-{uuid.uuid4().hex}"
    assert app.signed("PUT", f"/{name}", headers=OPEN).status == 200
    assert app.signed("PUT", f"/{name}/old", b"x", READABLE).status == 200
    return name


def move(app: InProcess, source: str, target: str, who: Credentials = ROOT) -> Answered:
    return app.signed("PUT", target, b"", moving(source), who=who)


def moving(source: str) -> list[tuple[str, str]]:
    return [("x-amz-copy-source", source), ("x-bucketwire-move", "true")]


def told(answered: Answered) -> tuple[int, str | None]:
    return answered.status, answered.code


def is_there(app: InProcess, bucket: str, key: str) -> bool:
    try:
        return not app.metabase.objects.get(bucket, key).is_marker
    except NotFound:
        return False


@pytest.mark.parametrize("versioning", [Versioning.ENABLED, Versioning.SUSPENDED])
def test_where_versions_are_kept_the_owner_of_the_bucket_alone_moves(
    app: InProcess, opened: str, versioning: Versioning
) -> None:
    app.metabase.buckets.set_versioning(opened, versioning)
    assert told(move(app, f"/{opened}/old", f"/{opened}/new", OTHER)) == DENIED
    assert is_there(app, opened, "old")
    assert move(app, f"/{opened}/old", f"/{opened}/new").status == 200
    assert (is_there(app, opened, "old"), is_there(app, opened, "new")) == (False, True)


def test_where_no_versions_are_kept_those_move_who_may_write(app: InProcess, opened: str) -> None:
    assert move(app, f"/{opened}/old", f"/{opened}/new", OTHER).status == 200
    assert (is_there(app, opened, "old"), is_there(app, opened, "new")) == (False, True)


def test_nobody_moves_without_a_signature(app: InProcess, opened: str) -> None:
    headers = [("Host", HOST), ("Content-Length", "0"), *moving(f"/{opened}/old")]
    assert told(app.send("PUT", f"/{opened}/new", headers)) == DENIED
    assert is_there(app, opened, "old")


@pytest.mark.parametrize(
    ("kind", "document", "answer"),
    [
        (BLOCK_DOCUMENT, '{"BlockPublicAcls":true}', DENIED),
        (OWNERSHIP_DOCUMENT, "BucketOwnerEnforced", (400, "AccessControlListNotSupported")),
    ],
)
def test_an_acl_that_the_destination_refuses_does_not_come_with_a_move(
    app: InProcess, opened: str, kind: str, document: str, answer: tuple[int, str]
) -> None:
    closed = f"closed-{uuid.uuid4().hex}"
    app.signed("PUT", f"/{closed}")
    app.metabase.buckets.set_document(closed, kind, document)
    assert told(move(app, f"/{opened}/old", f"/{closed}/new")) == answer
    assert (is_there(app, opened, "old"), is_there(app, closed, "new")) == (True, False)
    app.signed("PUT", f"/{opened}/private", b"x")
    assert move(app, f"/{opened}/private", f"/{closed}/new").status == 200
