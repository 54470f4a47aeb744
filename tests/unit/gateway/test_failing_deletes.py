"""A delete of many that fails halfway: what is committed is delivered, and the error is told."""

from collections.abc import Sequence
from threading import Event
from typing import Any

import pytest
from structlog.testing import capture_logs

from bucketwire.event.change import ObjectChange
from factories import rule, topic
from gateway.in_process import InProcess

KEYS = [f"k{number}" for number in range(6)]
A_WHILE_SECONDS = 0.1


def test_the_deletes_that_others_have_committed_are_pushed(
    app: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = app.app._services
    synchronous = topic(name="pushed", persistent="false")
    app.metabase.topics.put(synchronous)
    app.metabase.rules.edit("media", lambda _: [rule("s3:ObjectRemoved:*", topic_arn=synchronous.arn)])
    services.synchronous.look_again()
    for key in KEYS:
        app.signed("PUT", f"/media/{key}", b"x")
    delivered: list[str] = []
    told = Event()
    delete = app.metabase.objects.delete

    def failing(bucket: str, key: str, *given: Any, **more: Any) -> Any:
        if key == KEYS[0]:
            raise RuntimeError("unforeseen")
        told.wait(A_WHILE_SECONDS)
        return delete(bucket, key, *given, **more)

    async def deliver(changes: Sequence[ObjectChange]) -> None:
        delivered.extend(change.key for change in changes)
        told.set()

    monkeypatch.setattr(app.metabase.objects, "delete", failing)
    monkeypatch.setattr(services.pushes, "deliver", deliver)
    listed = "".join(f"<Object><Key>{key}</Key></Object>" for key in KEYS)
    with capture_logs():
        answered = app.signed("POST", "/media?delete", f"<Delete>{listed}</Delete>".encode())
    assert answered.code == "InternalError"
    left = {each.key for each in app.metabase.objects.versions_of_keys("media", after="", limit=100)}
    assert delivered
    assert sorted(delivered) == sorted(set(KEYS) - left)
