"""A real HTTP endpoint for tests, on a free loopback port, whose behaviour can be switched while it runs.

    with HttpEndpoint() as endpoint:          # or start() and stop()
        ... push-endpoint = endpoint.url ...
        endpoint.wait_for(3, timeout_seconds=10)
        endpoint.events()[0].decoded["Records"]

`events()` has what was acknowledged in good order; `attempts` counts every request that arrived, whatever
became of it.
"""

import asyncio
import json
import ssl
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Self


class Mode(StrEnum):
    """What the endpoint does with a request."""

    OK = "ok"
    REFUSE = "refuse"
    """Answers with `status` and `answer_headers`."""
    HALF = "half"
    """Refuses every second request."""
    SLOW = "slow"
    """Acknowledges, `delay_seconds` late."""
    HANG = "hang"
    CLOSE_EARLY = "close early"
    """Reads the request, then closes the connection."""
    CUT_SHORT = "cut short"
    """Says 200 and closes in the middle of the body."""
    GARBAGE = "garbage"
    """Answers with what is not HTTP."""
    ENDLESS_BODY = "endless body"
    TRICKLE = "trickle"
    """Says 200, then sends a byte of the body now and then, for ever."""
    ENDLESS_HEADERS = "endless headers"
    DOWN = "down"
    """Nobody listens; open connections are closed. Any other mode listens on the same port again."""


@dataclass(frozen=True, slots=True)
class Received:
    """A request that arrived. Names of headers are in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    connection: int
    """The number of the connection it came on."""
    received_at_ns: int = field(default_factory=time.time_ns)

    @property
    def decoded(self) -> Any:
        """The body, from JSON."""
        return json.loads(self.body)


class HttpEndpoint:
    """The endpoint. Set `mode` (and `status`, `answer_headers`, `delay_seconds`) at any time."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.status = 503
        self.answer_headers: dict[str, str] = {}
        self.delay_seconds = 0.02
        self.attempts = 0
        self.connections = 0
        self.port = 0
        self._tls = tls
        self._mode = Mode.OK
        self._events: list[Received] = []
        self._arrival = threading.Condition()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="http-endpoint", daemon=True)
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()

    def start(self) -> str:
        """Listen; the URL to post to."""
        self._thread.start()
        self._run(self._listen())
        return self.url

    def stop(self) -> None:
        """Close everything."""
        self._run(self._go_down())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """Where to post."""
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}/hook"

    @property
    def mode(self) -> Mode:
        """What happens to the next request."""
        return self._mode

    @mode.setter
    def mode(self, mode: Mode) -> None:
        self._mode = mode
        self._run(self._go_down() if mode is Mode.DOWN else self._listen())

    def events(self) -> list[Received]:
        """What was acknowledged, in order of arrival."""
        with self._arrival:
            return list(self._events)

    def wait_for(self, count: int, timeout_seconds: float) -> list[Received]:
        """Wait until that many were acknowledged; `AssertionError` if they do not come."""
        with self._arrival:
            if not self._arrival.wait_for(lambda: len(self._events) >= count, timeout_seconds):
                raise AssertionError(f"{len(self._events)} of {count} events came in {timeout_seconds} s")
            return list(self._events)

    def take(self) -> list[Received]:
        """What was acknowledged since the last time: for those who count for so long that memory matters."""
        with self._arrival:
            taken, self._events = self._events, []
            return taken

    def forget(self) -> None:
        """Start counting anew."""
        with self._arrival:
            self._events.clear()
            self.attempts = 0

    def _run(self, work: Any) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout=10)

    async def _listen(self) -> None:
        if self._server is None:
            self._server = await asyncio.start_server(
                self._converse, "127.0.0.1", self.port, ssl=self._tls, backlog=1024
            )
            self.port = self._server.sockets[0].getsockname()[1]

    async def _go_down(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        talks = list(self._open)
        for talk in talks:
            talk.cancel()
        await asyncio.gather(*talks, return_exceptions=True)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        talk = asyncio.ensure_future(self._serve(reader, writer, self.connections))
        self._open.add(talk)
        try:
            await asyncio.wait([talk])
        finally:
            self._open.discard(talk)
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        with suppress(asyncio.IncompleteReadError, OSError, asyncio.CancelledError):
            while True:
                request = await _read_request(reader, number)
                self.attempts += 1
                await self._answer(request, writer)

    async def _answer(self, request: Received, writer: asyncio.StreamWriter) -> None:
        match self._mode:
            case Mode.OK:
                await self._acknowledge(request, writer)
            case Mode.HALF if self.attempts % 2:
                await self._acknowledge(request, writer)
            case Mode.SLOW:
                await asyncio.sleep(self.delay_seconds)
                await self._acknowledge(request, writer)
            case Mode.REFUSE | Mode.HALF:
                writer.write(_answer_head(self.status, self.answer_headers))
                await writer.drain()
            case mode:
                await _misbehave(mode, writer)

    async def _acknowledge(self, request: Received, writer: asyncio.StreamWriter) -> None:
        with self._arrival:
            self._events.append(request)
            self._arrival.notify_all()
        writer.write(_answer_head(200, {}))
        await writer.drain()


async def _read_request(reader: asyncio.StreamReader, connection: int) -> Received:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.rstrip("\r\n").split("\r\n")
    method, path, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Received(method, path, headers, body, connection)


def _answer_head(status: int, headers: dict[str, str]) -> bytes:
    lines = [
        f"HTTP/1.1 {status} Status",
        "Content-Length: 0",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


async def _misbehave(mode: Mode, writer: asyncio.StreamWriter) -> None:
    """What only a broken or hostile endpoint does; ends with the connection."""
    match mode:
        case Mode.GARBAGE:
            writer.write(b"\x16\x03\x01 this is not HTTP\r\n\r\n")
        case Mode.CUT_SHORT:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc")
        case Mode.ENDLESS_BODY:
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
            await _write_for_ever(writer, b"x" * 4096, pause_seconds=0)
        case Mode.TRICKLE:
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
            await _write_for_ever(writer, b"x", pause_seconds=0.01)
        case Mode.ENDLESS_HEADERS:
            writer.write(b"HTTP/1.1 200 OK\r\n")
            await _write_for_ever(writer, b"X-More: " + b"x" * 4096 + b"\r\n", pause_seconds=0)
        case Mode.HANG:
            await asyncio.Event().wait()
    await writer.drain()
    writer.close()
    await writer.wait_closed()
    raise ConnectionError


async def _write_for_ever(writer: asyncio.StreamWriter, piece: bytes, pause_seconds: float) -> None:
    while True:
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(pause_seconds)
