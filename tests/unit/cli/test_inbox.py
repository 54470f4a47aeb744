"""What the inbox prints, and the command as a process."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.client import HTTPConnection

import pytest
from click.testing import CliRunner

from bucketwire.cli.inbox import header_lines, inbox, json_line, lines
from bucketwire.cli.shown import printable
from bucketwire.event.compose import Subscription
from bucketwire.event.dialect import AWS, CEPH, DIALECTS, Dialect
from bucketwire.event.installation import Installation
from factories import change, rule, topic

BUCKETWIRE = (sys.executable, "-c", "from bucketwire.cli.main import main; main()")
NOW = datetime(2025, 11, 15, 20, 24, 40, 523_000, tzinfo=UTC)


def shown(body: bytes) -> list[str]:
    return [line.plain for line in lines(body, NOW)]


def body_of(key: str, dialect: Dialect = AWS, **attributes: str) -> bytes:
    installation = Installation(dialect, "48def817-f0a3-4949-abe2-9193be91de22")
    found = Subscription(rule(), topic(**attributes), installation).compose(change(key, size_bytes=1500))
    return found.body


def test_a_record_is_one_line_with_all_that_matters() -> None:
    (line,) = shown(body_of("video.mp4"))
    assert line.split() == [
        "2025-11-15T20:24:40.123Z",
        "ObjectCreated:Put",
        "media/video.mp4",
        *("1.5", "kB"),
        *("eTag", "5d41402abc4b2a76b9719d911017c592"),
        *("+400", "ms"),
    ]


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
def test_the_key_is_shown_as_the_customer_wrote_it(dialect: Dialect) -> None:
    (line,) = shown(body_of("summer 2026/a+b%20ü.jpg", dialect))
    assert "  media/summer 2026/a+b%20ü.jpg  " in line


FORMATS: dict[str, dict[str, str]] = {
    "CloudEvents": {"format": "cloudevents"},
    "CloudEvents, binary": {"format": "cloudevents", "cloudevents-mode": "binary"},
    "COS": {"format": "cos"},
}


@pytest.mark.parametrize("attributes", FORMATS.values(), ids=FORMATS)
@pytest.mark.parametrize("dialect", [AWS, CEPH], ids=["aws", "ceph"])
def test_other_formats_are_one_line_too(attributes: dict[str, str], dialect: Dialect) -> None:
    (line,) = shown(body_of("summer 2026/ü.mp4", dialect, **attributes))
    name = "Object:Write" if attributes["format"] == "cos" else "ObjectCreated:Put"
    assert line.startswith("2025-11-15T20:24:40.123")
    assert f"  {name}  media/summer 2026/ü.mp4  1.5 kB  eTag 5d41" in line
    assert line.endswith("+400 ms")


def test_headers_are_shown_below_without_those_that_say_nothing_of_the_event() -> None:
    headers = [
        (b"host", b"127.0.0.1:8085"),
        (b"accept", b"*/*"),
        (b"content-length", b"12"),
        (b"content-type", b"application/json"),
        (b"bucketwire-event-id", b"187847dfad211d15"),
        (b"authorization", b"Basic dXNlcjpodXNo"),
        (b"ce-subject", b"a%20b.mp4"),
        (b"odd\x1b", b"\x1b[31m\xfc"),
    ]
    assert [line.plain for line in header_lines(headers)] == [
        "    content-type: application/json",
        "    bucketwire-event-id: 187847dfad211d15",
        "    authorization: Basic ****",
        "    ce-subject: a%20b.mp4",
        "    odd\\x1b: \\x1b[31mü",
    ]


def test_a_removal_needs_no_size() -> None:
    record = json.loads(body_of("gone"))["Records"][0]
    record["eventName"] = "ObjectRemoved:Delete"
    del record["s3"]["object"]["size"], record["s3"]["object"]["eTag"]
    (line,) = shown(json.dumps({"Records": [record]}).encode())
    assert line.split()[1:] == ["ObjectRemoved:Delete", "media/gone", "+400", "ms"]


def test_each_record_has_its_line() -> None:
    records = [json.loads(body_of(key))["Records"][0] for key in ("a", "b")]
    assert len(shown(json.dumps({"Records": records}).encode())) == 2


@pytest.mark.parametrize("is_cloudevent", [False, True])
def test_the_test_event_is_shown(*, is_cloudevent: bool) -> None:
    event = {
        "Service": "Amazon S3",
        "Event": "s3:TestEvent",
        "Time": "2025-11-15T20:24:40.500Z",
        "Bucket": "media",
    }
    sent = {"specversion": "1.0", "id": "1", "data": event} if is_cloudevent else event
    (line,) = shown(json.dumps(sent).encode())
    assert line.split() == ["2025-11-15T20:24:40.500Z", "s3:TestEvent", "media", "+23", "ms"]


def test_other_json_is_set_out() -> None:
    assert shown(b'{"a":{"b":[1]}}') == json.dumps({"a": {"b": [1]}}, indent=2).splitlines()


@pytest.mark.parametrize(
    "body",
    [
        b'{"specversion": "1.0", "data": {"any": 1}}', b'{"specversion": "1.0", "data": null}',
        b'{"format": "2.0"}', b'{"specversion": 1, "data": "\xff"}',
        b"hello", b"\xff\xfe\x00", b"{", b"[" * 100_000, b"1" * 5000, b'{"Records": []}', b'{"Records": [1]}',
        b'{"Records": null}', b'{"Event": 1}', b'"\\ud800"', b"NaN", b'{"Event": "s3:TestEvent"}',
        body_of("k").replace(b"2025-11-15T20:24:40.123Z", b"yesterday"),
        body_of("k").replace(b"2025-11-15T20:24:40.123Z", b"2025-11-15T20:24:40"),
        body_of("k").replace(b"1500", b"9" * 30),
    ],
)  # fmt: skip
def test_garbage_is_shown_too(body: bytes) -> None:
    assert "".join(shown(body))
    json.loads(json_line(body))
    "".join(shown(body)).encode()


@pytest.mark.parametrize("evil", ["\x1b]0;owned\x07", "\r\n", "\x9b31m", "\u202egnp.exe", "\x7f", "\u2028"])
def test_nothing_that_a_terminal_obeys_gets_through(evil: str) -> None:
    bodies = [
        body_of(f"a{evil}b"),
        body_of(f"a{evil}b", CEPH),
        *(body_of(f"a{evil}b", **attributes) for attributes in FORMATS.values()),
        json.dumps({"Event": "s3:TestEvent", "Time": evil, "Bucket": evil}, ensure_ascii=False).encode(),
        json.dumps({"any": evil}, ensure_ascii=False).encode(),
        evil.encode() + b"text",
    ]
    for body in bodies:
        assert all(line.isprintable() for line in shown(body))
        assert json_line(body).isprintable()


def test_what_is_printable_stays_as_it_is() -> None:
    assert printable("Füße 文件 🎬.mp4") == "Füße 文件 🎬.mp4"
    assert printable("a\x1bb\ud800\u202e") == "a\\x1bb\\ud800\\u202e"


def test_a_printable_line_of_json_is_printed_as_it_came() -> None:
    assert json_line(b'{"b" : 1,"a":2}') == '{"b" : 1,"a":2}'
    assert json_line(b'{\n"b": "\xc2\x9b"}') == '{"b": "\\u009b"}'
    assert json_line(b"not json") == '"not json"'


@contextmanager
def running_inbox(*options: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """The command as a process on a free port, and that port."""
    command = [*BUCKETWIRE, "inbox", "--port", "0", *options]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "COLUMNS": "40"},
    ) as process:
        greeting = process.stderr if "--json" in options else process.stdout
        assert greeting is not None
        found = re.search(r"http://127\.0\.0\.1:(\d+)/", greeting.readline())
        assert found
        assert f"push-endpoint=http://127.0.0.1:{found[1]}/" in greeting.readline()
        try:
            yield process, int(found[1])
        finally:
            process.kill()


def test_the_command_answers_prints_and_ends_on_ctrl_c() -> None:
    with running_inbox() as (process, port):
        connection = HTTPConnection("127.0.0.1", port, timeout=30)
        for body in (body_of("one.mp4"), b"\xff garbage", body_of("two.mp4")):
            connection.request("POST", "/any/path", body)
            answer = connection.getresponse()
            assert (answer.status, answer.read()) == (200, b"")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
        connection.close()
    assert [line.split()[2] if "media" in line else line for line in out.splitlines()] == [
        "media/one.mp4",
        "\\xff garbage",
        "media/two.mp4",
    ]
    assert "Traceback" not in err
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("name", "value", "shown_value"),
    [
        ("authorization", "Bearer hush", "Bearer ****"),
        ("authorization", "hush", "****"),
        ("authorization", "Basic\thush", "****"),
        ("proxy-authorization", "Basic hush", "Basic ****"),
        ("cookie", "session=1 hush", "****"),
        ("x-api-key", "hush hush", "****"),
    ],
)
def test_credentials_are_not_shown(name: str, value: str, shown_value: str) -> None:
    (line,) = header_lines([(name.encode(), value.encode())])
    assert line.plain == f"    {name}: {shown_value}"


def test_an_event_with_a_size_beyond_all_numbers_is_shown_without_it() -> None:
    body = body_of("film.mp4").replace(b'"size":1500', b'"size":1' + 400 * b"0")
    (line,) = shown(body)
    assert "  media/film.mp4  eTag " in line


def test_with_headers_the_command_prints_those_of_each_request() -> None:
    with running_inbox("--headers") as (process, port):
        connection = HTTPConnection("127.0.0.1", port, timeout=30)
        for number in "12":
            connection.request("POST", "/", body_of(number), {"Webhook-Id": f"id-{number}"})
            assert connection.getresponse().read() == b""
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=30)
        connection.close()
    assert [line.split()[2] if "media" in line else line for line in out.splitlines()] == [
        *("media/1", "    webhook-id: id-1"),
        *("media/2", "    webhook-id: id-2"),
    ]


def test_headers_are_not_for_json() -> None:
    ended = CliRunner().invoke(inbox, ["--json", "--headers"])
    assert ended.exit_code == 2
    assert "--json prints bodies alone" in ended.output


def test_with_json_only_bodies_are_on_stdout() -> None:
    with running_inbox("--json") as (process, port):
        connection = HTTPConnection("127.0.0.1", port, timeout=30)
        connection.request("POST", "/", b'{"n":\n1}')
        assert connection.getresponse().read() == b""
        with socket.create_connection(("127.0.0.1", port), timeout=30) as raw:
            raw.sendall(b"\x16\x03\x01 no HTTP at all\r\n\r\n")
            raw.recv(1024)
        connection.request("POST", "/", b'{"n":2}')
        assert connection.getresponse().status == 200
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=30)
        connection.close()
    assert out == '{"n": 1}\n{"n":2}\n'
    assert process.returncode == 0


def test_a_port_in_use_is_a_clear_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = subprocess.run(
            [*BUCKETWIRE, "inbox", "--port", str(port)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert ended.returncode == 1
    assert f"port {port}" in ended.stderr
    assert "Traceback" not in ended.stderr
