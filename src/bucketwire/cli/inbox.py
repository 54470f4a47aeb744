"""`bucketwire inbox`: an HTTP endpoint that prints each event, so that a first event needs nothing else.

    request --> 200 at once --> one line an event, or the body, set out readably --> terminal

Whatever arrives is a stranger's: what is not printable (terminal controls, reversed writing) is shown as an
escape and never sent to the terminal.
"""

import json
import socket
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
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

BODY_LIMIT_BYTES = 16 * 1024 * 1024
"""A larger body is answered 413 and not kept."""

_COLOURS = {"ObjectCreated": "green", "ObjectRemoved": "red"}

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
def inbox(host: str, port: int, *, as_json: bool) -> None:
    """Listen on HTTP and print each event received."""
    listener = _listen(host, port)
    _greet(endpoint(host, listener.getsockname()[1]) + "/", Console(stderr=as_json, highlight=False))
    app = Inbox(print_json if as_json else Printer(Console(highlight=False)))
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
    """The ASGI application: takes a body, answers, then shows it."""

    def __init__(self, show: Callable[[bytes], None]) -> None:
        self._show = show
        self.on_closed_output: Callable[[], None] = lambda: None

    async def __call__(self, _scope: dict[str, Any], receive: Messages, send: Send) -> None:
        """Serve one request."""
        body = await _body(receive)
        status = 413 if body is None else 200
        await send({"type": "http.response.start", "status": status, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body"})
        if body:
            self._print(body)

    def _print(self, body: bytes) -> None:
        try:
            self._show(body)
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

    def __init__(self, console: Console) -> None:
        self._console = console

    def __call__(self, body: bytes) -> None:
        """Print what the body holds."""
        for line in lines(body, datetime.now(UTC)):
            self._console.print(line, soft_wrap=True)


def print_json(body: bytes) -> None:
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


def lines(body: bytes, now: datetime) -> list[Text]:
    """A line for each record of an S3 event, one for a test event, and anything else as it is, indented."""
    event = _decoded(body, _Event)
    if event is not None and event.records:
        return [_record_line(record, now) for record in event.records]
    test = _decoded(body, _TestEvent)
    if test is not None and test.event == "s3:TestEvent":
        return [_line(test.time, test.event, "cyan", test.bucket, [_latency(test.time, now)])]
    return _other(body)


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


def _record_line(record: _Record, now: datetime) -> Text:
    subject = record.s3.object
    key = subject.key if record.event_source == "ceph:s3" else unquote_plus(subject.key)
    details = [
        None if subject.size is None else decimal(subject.size),
        None if subject.etag is None else f"eTag {subject.etag}",
        _latency(record.event_time, now),
    ]
    colour = _COLOURS.get(record.event_name.partition(":")[0], "yellow")
    return _line(record.event_time, record.event_name, colour, f"{record.s3.bucket.name}/{key}", details)


def _line(time: str, name: str, colour: str, subject: str, details: list[str | None]) -> Text:
    told = "  ".join(detail for detail in details if detail)
    return Text.assemble(
        (printable(time), "dim"),
        "  ",
        (printable(name), colour),
        "  ",
        (printable(subject), "bold"),
        "  ",
        (printable(told), "dim"),
    )


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
