"""A test event that fails as nobody foresaw is a destination that failed."""

from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from gateway.in_process import InProcess

SECRET = "what a tenant wrote"


@pytest.fixture
def testing(tmp_path: Path) -> Iterator[InProcess]:
    app = InProcess(tmp_path, test_events=True)
    app.signed("PUT", "/media")
    yield app
    app.close()


def test_its_type_is_told_and_its_text_nowhere(testing: InProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    trial: Future[str] = Future()
    trial.set_exception(RuntimeError(SECRET))
    monkeypatch.setattr(testing.app._services.trials, "start", lambda *_: trial)
    arn = new_topic(testing)
    with capture_logs() as logged:
        answered = put_rule(testing, arn)
    assert (answered.status, answered.code) == (400, "InvalidArgument")
    assert b"unexpected RuntimeError" in answered.body
    assert SECRET not in f"{logged}{answered.body!r}"
    assert [(each["event"], each["topic"]) for each in logged if each["log_level"] == "error"] == [
        ("test_event_failed", arn)
    ]


def new_topic(app: InProcess) -> str:
    made = app.signed(
        "POST",
        "/",
        b"Action=CreateTopic&Name=t&Attributes.entry.1.key=push-endpoint"
        b"&Attributes.entry.1.value=http://127.0.0.1:1/",
        service="sns",
    )
    return made.field("TopicArn") or ""


def put_rule(app: InProcess, arn: str) -> Any:
    configured = f"<Topic>{arn}</Topic><Event>s3:ObjectCreated:*</Event>"
    document = (
        f"<NotificationConfiguration><TopicConfiguration>{configured}</TopicConfiguration>"
        "</NotificationConfiguration>"
    )
    return app.signed("PUT", "/media?notification", document.encode())
