"""The gateway's own pages, and its log."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from bucketwire.gateway.readiness import ReadyState
from gateway.in_process import Headers, InProcess, signed_headers
from gateway.running import ROOT


def test_live_is_there_for_anyone(app: InProcess) -> None:
    assert app.send("GET", "/-/live").status == 200
    assert app.send("GET", "/-/nothing").status == 404


@pytest.mark.parametrize("peer", ["127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1"])
def test_metrics_are_there_for_this_machine_without_any_setting(app: InProcess, peer: str) -> None:
    app.signed("GET", "/")
    answered = app.send("GET", "/-/metrics", peer=peer)
    assert answered.status == 200
    assert 'bucketwire_requests_total{operation="ListBuckets",status="200"}' in answered.body.decode()


@pytest.mark.parametrize(
    ("peer", "headers"),
    [
        ("192.0.2.7", []),
        ("-", []),
        ("::ffff:192.0.2.7", []),
        ("127.0.0.1", [("Forwarded", "for=192.0.2.7")]),
        ("127.0.0.1", [("X-Forwarded-For", "127.0.0.1")]),
        ("127.0.0.1", [("X-Forwarded-Proto", "https")]),
        ("127.0.0.1", [("X-Real-IP", "192.0.2.7")]),
        ("192.0.2.7", [("Authorization", "Bearer ")]),
        ("192.0.2.7", [("Authorization", "Bearer")]),
    ],
)
def test_metrics_are_for_nobody_else_where_there_is_no_token(
    app: InProcess, peer: str, headers: Headers
) -> None:
    answered = app.send("GET", "/-/metrics", headers, peer=peer)
    assert (answered.status, answered.body.count(b"\n")) == (403, 1)
    assert b"--metrics-token" in answered.body


def test_metrics_are_for_who_sends_the_token(tmp_path: Path) -> None:
    app = InProcess(tmp_path, metrics_token="a-token")
    tried = [
        "Bearer a-token",
        "bearer  a-token",
        "Bearer another",
        "Bearer \u00e9",
        "Basic a-token",
        "a-token",
    ]
    answered = [app.send("GET", "/-/metrics", [("Authorization", each)]).status for each in tried]
    unsigned, local = app.send("GET", "/-/metrics"), app.send("GET", "/-/metrics", peer="127.0.0.1")
    app.close()
    assert answered == [200, 200, 403, 403, 403, 403]
    assert (unsigned.status, local.status) == (403, 200)


def test_metrics_count_as_work_under_way(app: InProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bucketwire.gateway.app.MAX_UNDER_WAY", 0)
    answered = app.send("GET", "/-/metrics", peer="127.0.0.1")
    assert (answered.status, answered.headers["retry-after"]) == (503, "1")
    monkeypatch.setattr("bucketwire.gateway.app.MAX_UNDER_WAY", 1)
    assert app.send("GET", "/-/metrics", peer="127.0.0.1").status == 200


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
