"""The gateway's own pages, and its log."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from bucketwire.gateway.readiness import ReadyState
from gateway.in_process import InProcess, signed_headers
from gateway.running import ROOT


def test_live_and_metrics_are_there_for_anyone(app: InProcess) -> None:
    app.signed("GET", "/")
    assert app.send("GET", "/-/live").status == 200
    page = app.send("GET", "/-/metrics").body.decode()
    assert 'bucketwire_requests_total{operation="ListBuckets",status="200"}' in page
    assert app.send("GET", "/-/nothing").status == 404


def test_ready_tells_the_reason_when_it_is_not(tmp_path: Path) -> None:
    states = [ReadyState(), ReadyState("the pipeline is not running")]
    app = InProcess(tmp_path, ready=lambda: states.pop(0))
    assert app.send("GET", "/-/ready").body == b'{"ready":true}'
    answered = app.send("GET", "/-/ready")
    app.close()
    assert answered.status == 503
    assert msgspec.json.decode(answered.body) == {"ready": False, "reason": "the pipeline is not running"}


def test_a_warning_does_not_take_the_gateway_out_of_service(tmp_path: Path) -> None:
    app = InProcess(tmp_path, ready=lambda: ReadyState(warning="the pipeline is 100 h behind"))
    answered = app.send("GET", "/-/ready")
    app.close()
    assert answered.status == 200
    assert msgspec.json.decode(answered.body) == {"ready": True, "warning": "the pipeline is 100 h behind"}


def test_a_request_is_one_log_line_without_secrets(app: InProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[dict[str, Any]] = []

    class Log:
        def info(self, event: str, **fields: Any) -> None:
            lines.append({"event": event, **fields})

    monkeypatch.setattr(app.app, "_log", Log())
    sent = signed_headers("PUT", "/media/key?x-id=PutObject", b"hello")
    answered = app.send("PUT", "/media/key?x-id=PutObject", sent, b"hello")
    (line,) = lines
    assert line.keys() == {"event", "method", "operation", "status", "milliseconds", "request_id"}
    assert (line["operation"], line["status"]) == ("PutObject", 200)
    assert line["request_id"] == answered.headers["x-amz-request-id"]
    assert ROOT.secret_key not in str(line)


def test_ids_of_requests_differ_and_the_hosts_stays(app: InProcess) -> None:
    first, second = app.send("GET", "/"), app.send("GET", "/")
    assert first.headers["x-amz-id-2"] == second.headers["x-amz-id-2"]
    assert first.headers["x-amz-request-id"] != second.headers["x-amz-request-id"]
    assert len(first.headers["x-amz-request-id"]) == 16
