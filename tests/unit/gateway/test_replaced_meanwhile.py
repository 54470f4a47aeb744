"""An object that is replaced between the check of who may change it and the change stays as it is."""

from collections.abc import Callable
from typing import Any

import pytest

from bucketwire.event.name import Operation
from factories import new_object, origin
from gateway.in_process import Answered, InProcess

TAGS = b"<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>"
MOVE = [("x-amz-copy-source", "/media/k"), ("x-bucketwire-move", "true")]
ACTS: dict[str, Callable[[InProcess], Answered]] = {
    "set_acl": lambda app: app.signed("PUT", "/media/k?acl", headers=[("x-amz-acl", "public-read")]),
    "set_tags": lambda app: app.signed("PUT", "/media/k?tagging", TAGS),
    "move": lambda app: app.signed("PUT", "/media/moved", headers=MOVE),
}


@pytest.mark.parametrize("name", ACTS)
def test_what_was_not_checked_is_not_changed(
    app: InProcess, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    objects = app.metabase.objects
    app.signed("PUT", "/media/k", b"checked")
    mutation = getattr(objects, name)

    def replaced_before(*given: Any) -> Any:
        objects.put("media", new_object("k"), Operation.PUT, origin())
        return mutation(*given)

    monkeypatch.setattr(objects, name, replaced_before)
    answered = ACTS[name](app)
    assert (answered.status, answered.code) == (412, "PreconditionFailed")
    left = objects.get("media", "k")
    assert (left.inline, left.acl, left.tags) == (b"hello", "private", {})
    monkeypatch.undo()
    assert ACTS[name](app).status == 200


@pytest.mark.parametrize("name", ACTS)
def test_what_was_replaced_once_is_checked_again(
    app: InProcess, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    objects, replacements = app.metabase.objects, iter([b"replaced"])
    app.signed("PUT", "/media/k", b"checked")
    mutation = getattr(objects, name)

    def replaced_before(*given: Any) -> Any:
        for content in replacements:
            app.metabase.objects.put("media", new_object("k", content), Operation.PUT, origin())
        return mutation(*given)

    monkeypatch.setattr(objects, name, replaced_before)
    assert ACTS[name](app).status == 200
    changed = objects.get("media", "moved" if name == "move" else "k")
    assert changed.inline == b"replaced"
    assert (changed.acl, changed.tags) != ("private", {}) or name == "move"
