"""`bucketwire inbox`: an HTTP endpoint that prints each event, so that a first event needs nothing else.

    request --> 200 at once --> one line an event, or the body, set out readably --> terminal
                                its headers below, if they are asked for

Whatever arrives is a stranger's: what is not printable (terminal controls, reversed writing) is shown as an
escape and never sent to the terminal.
"""

import json
import socket
import sys
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote_plus

import click
import msgspec
import uvicorn
from rich.console import Console
from rich.filesize import decimal
from rich.text import Text

from bucketwire.cli.env import endpoint
from bucketwire.cli.shown import printable
from bucketwire.errors import ConfigError
from bucketwire.event.dialect import DIALECTS

BODY_LIMIT_BYTES = 16 * 1024 * 1024
"""A larger body is answered 413 and not kept."""

_COLOURS = {
    "ObjectCreated": "green",
    "ObjectRemoved": "red",
    "Object:Write": "green",
    "Object:Delete": "red",
    "s3:TestEvent": "cyan",
}
_CREDENTIALS = {b"authorization", b"proxy-authorization", b"cookie", b"x-api-key"}
_NOISE = frozenset(
    {
        b"accept",
        b"accept-encoding",
        b"connection",
        b"content-length",
        b"expect",
        b"host",
        b"transfer-encoding",
    }
)
"""Headers that say nothing of the event."""
_ENCODING = {dialect.event_source for dialect in DIALECTS.values() if dialect.url_encoded_key}
"""Sources of events whose keys are URL-encoded."""

Headers = Iterable[tuple[bytes, bytes]]
Messages = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    default=8085,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="Port to listen on; 0 takes a free one.",
)
@click.option("--json", "as_json", is_flag=True, help="Print each body as one line of JSON.")
@click.option(
    "--headers", is_flag=True, help="Print the headers that tell of each event below it; not with --json."
)
def inbox(host: str, port: int, *, as_json: bool, headers: bool) -> None:
    """Listen on HTTP and print each event received."""
    if as_json and headers:
        raise click.UsageError("--json prints bodies alone: leave it out to see --headers")
    listener = _listen(host, port)
    _greet(endpoint(host, listener.getsockname()[1]) + "/", Console(stderr=as_json, highlight=False))
    app = Inbox(print_json if as_json else Printer(Console(highlight=False), headers=headers))
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            lifespan="off",
            ws="none",
            access_log=False,
            log_config=None,
            server_header=False,
            timeout_graceful_shutdown=1,
        )
    )
    app.on_closed_output = lambda: setattr(server, "should_exit", True)
    try:
        server.run(sockets=[listener])
    except KeyboardInterrupt:
        click.echo(err=True)  # the prompt goes on a line of its own, after ^C


def _listen(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server(
            (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=1024
        )
    except OSError as error:
        raise ConfigError(
            f"cannot listen on {host} port {port}: {error.strerror or error}. Choose another with --port."
        ) from error


def _greet(url: str, console: Console) -> None:
    command = f"aws sns create-topic --name inbox --attributes push-endpoint={url}"
    console.print(Text.assemble("Listening on ", (url, "bold"), "; Ctrl-C ends it."), soft_wrap=True)
    console.print(Text.assemble("Send events here with:  ", (command, "cyan")), soft_wrap=True)


class Inbox:
    """The ASGI application: takes a body, answers, then shows it with its headers."""

    def __init__(self, show: Callable[[bytes, Headers], None]) -> None:
        self._show = show
        self.on_closed_output: Callable[[], None] = lambda: None

    async def __call__(self, scope: dict[str, Any], receive: Messages, send: Send) -> None:
        """Serve one request."""
        body = await _body(receive)
        status = 413 if body is None else 200
        await send({"type": "http.response.start", "status": status, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body"})
        if body:
            self._print(body, scope["headers"])

    def _print(self, body: bytes, headers: Headers) -> None:
        try:
            self._show(body, headers)
        except (BrokenPipeError, SystemExit):  # as in `bucketwire inbox | head`; rich makes it an exit
            self.on_closed_output()


async def _body(receive: Messages) -> bytes | None:
    """The whole body; None if it is too large, empty if the sender went away in the middle."""
    pieces: list[bytes] = []
    size_bytes = 0
    while True:
        piece = await receive()
        if piece["type"] == "http.disconnect":
            return b""
        size_bytes += len(piece.get("body", b""))
        if size_bytes > BODY_LIMIT_BYTES:
            return None
        pieces.append(piece.get("body", b""))
        if not piece.get("more_body", False):
            return b"".join(pieces)


class Printer:
    """Prints events as coloured lines."""

    def __init__(self, console: Console, *, headers: bool) -> None:
        self._console = console
        self._headers = headers

    def __call__(self, body: bytes, headers: Headers) -> None:
        """Print what the body holds, and what stood above it."""
        below = header_lines(headers) if self._headers else []
        for line in [*lines(body, datetime.now(UTC)), *below]:
            self._console.print(line, soft_wrap=True)


def print_json(body: bytes, _: Headers) -> None:
    """Print the body as one line of JSON: as it came if that is one printable line already."""
    sys.stdout.write(json_line(body) + "\n")
    sys.stdout.flush()


class _Bucket(msgspec.Struct):
    name: str


class _Object(msgspec.Struct):
    key: str
    size: int | None = None
    etag: str | None = msgspec.field(default=None, name="eTag")


class _Subject(msgspec.Struct):
    bucket: _Bucket
    object: _Object


class _Record(msgspec.Struct, rename="camel"):
    event_name: str
    event_time: str
    s3: _Subject
    event_source: str = ""


class _Event(msgspec.Struct):
    records: list[_Record] = msgspec.field(name="Records")


class _TestEvent(msgspec.Struct, rename="pascal"):
    event: str
    time: str
    bucket: str


class _CosMessage(msgspec.Struct):
    format: str
    event_type: str
    request_time: str
    bucket_name: str
    object_name: str
    object_length: int | None = None
    object_etag: str | None = None


class _CloudEvent(msgspec.Struct):
    specversion: str
    data: msgspec.Raw


def lines(body: bytes, now: datetime) -> list[Text]:
    """A line for each record of an S3 event, one for any other event of ours; else the body, indented."""
    around = _decoded(body, _CloudEvent)
    event = body if around is None else bytes(around.data)
    return [_line(each, now) for each in _told(event)] or _other(body)


def header_lines(headers: Headers) -> list[Text]:
    """A line for each header that tells of the event, indented. Of credentials only the kind is shown."""
    return [
        Text.assemble("    ", (printable(f"{name.decode('latin-1')}:"), "dim"), " ", _header(name, value))
        for name, value in headers
        if name not in _NOISE
    ]


def _header(name: bytes, value: bytes) -> str:
    if name not in _CREDENTIALS:
        return printable(value.decode("latin-1"))
    kind, space, _ = value.partition(b" ")
    return f"{kind.decode()} ****" if space and kind.isalpha() and b"authorization" in name else "****"


def json_line(body: bytes) -> str:
    """One line of JSON, with nothing in it that a terminal would obey; what is not JSON becomes a string."""
    text = body.decode(errors="backslashreplace")
    try:
        parsed = json.loads(text)
        return text if text.isprintable() else json.dumps(parsed)
    except (ValueError, RecursionError):
        return json.dumps(text)


def _decoded(body: bytes, kind: type[Any]) -> Any:
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


@dataclass(frozen=True, slots=True)
class _Told:
    """What a line says."""

    time: str
    name: str
    subject: str
    size_bytes: int | None = None
    etag: str | None = None


def _told(event: bytes) -> list[_Told]:
    """What there is to say of an event, whatever its format; nothing if it is none of ours."""
    if (records := _decoded(event, _Event)) is not None and records.records:
        return [_told_of_record(each) for each in records.records]
    if (test := _decoded(event, _TestEvent)) is not None and test.event == "s3:TestEvent":
        return [_Told(test.time, test.event, test.bucket)]
    if (record := _decoded(event, _Record)) is not None:
        return [_told_of_record(record)]
    if (message := _decoded(event, _CosMessage)) is not None:
        return [_told_of_cos(message)]
    return []


def _told_of_record(record: _Record) -> _Told:
    subject = record.s3.object
    key = unquote_plus(subject.key) if record.event_source in _ENCODING else subject.key
    where = f"{record.s3.bucket.name}/{key}"
    return _Told(record.event_time, record.event_name, where, subject.size, subject.etag)


def _told_of_cos(message: _CosMessage) -> _Told:
    where = f"{message.bucket_name}/{message.object_name}"
    return _Told(message.request_time, message.event_type, where, message.object_length, message.object_etag)


def _line(told: _Told, now: datetime) -> Text:
    details = [
        _size(told.size_bytes),
        None if told.etag is None else f"eTag {told.etag}",
        _latency(told.time, now),
    ]
    colour = _COLOURS.get(told.name) or _COLOURS.get(told.name.partition(":")[0], "yellow")
    return Text.assemble(
        (printable(told.time), "dim"),
        "  ",
        (printable(told.name), colour),
        "  ",
        (printable(told.subject), "bold"),
        "  ",
        (printable("  ".join(detail for detail in details if detail)), "dim"),
    )


def _size(size_bytes: int | None) -> str | None:
    try:
        return None if size_bytes is None else decimal(size_bytes)
    except OverflowError:  # there is no such object
        return None


def _latency(event_time: str, now: datetime) -> str | None:
    """How long the event was under way; nothing if its time cannot be read."""
    try:
        return f"{(now - datetime.fromisoformat(event_time)).total_seconds() * 1000:+.0f} ms"
    except (ValueError, TypeError, OverflowError):
        return None


def _other(body: bytes) -> list[Text]:
    """The body, indented if it is JSON."""
    text = body.decode(errors="backslashreplace")
    with suppress(ValueError, RecursionError):
        text = json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    return [Text(printable(line)) for line in text.splitlines()]
