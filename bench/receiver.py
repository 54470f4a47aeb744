"""A lean HTTP/1.1 receiver, in a process of its own, so that a benchmark measures the sender.

Every request but those under `/-/` is counted, its arrival noted, and answered `200` with no body. Requests
are split by hand, over keep-alive connections, pipelined ones too: no framework, and of the headers only
Content-Length is read. A chunked request is refused, as the publisher never sends one.

    GET  /-/count    {"requests": 20000, "size_bytes": 12000000}
    GET  /-/dump     a JSON line a request: {"received_at_ns": 1, "body": "..."}; body only with --keep bodies
    POST /-/reset    forget all of it

`running_receiver()` starts it on a free port and gives the caller the other end of this interface.
"""

import argparse
import asyncio
import json
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvloop

_OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
_REFUSED = b"HTTP/1.1 411 Length Required\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_content_length = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE).search
_chunked = re.compile(rb"\r\ntransfer-encoding:", re.IGNORECASE).search


class Receipts:
    """What has arrived: counts always, times and bodies if they are to be kept."""

    def __init__(self, keep: str) -> None:
        self.keeps_times = keep in {"times", "bodies"}
        self.keeps_bodies = keep == "bodies"
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self.requests = 0
        self.size_bytes = 0
        self.times_ns: list[int] = []
        self.bodies: list[bytes] = []

    def add(self, body: bytes) -> None:
        """Note one request, now."""
        self.requests += 1
        self.size_bytes += len(body)
        if self.keeps_times:
            self.times_ns.append(time.time_ns())
            if self.keeps_bodies:
                self.bodies.append(body)

    def count(self) -> bytes:
        """The totals, as JSON."""
        return json.dumps({"requests": self.requests, "size_bytes": self.size_bytes}).encode()

    def dump(self) -> bytes:
        """One JSON line a request, in order of arrival."""
        lines: list[dict[str, Any]] = [{"received_at_ns": moment} for moment in self.times_ns]
        for line, body in zip(lines, self.bodies, strict=False):
            line["body"] = body.decode(errors="replace")
        return "".join(json.dumps(line) + "\n" for line in lines).encode()


class ReceiverProtocol(asyncio.Protocol):
    """One connection."""

    def __init__(self, receipts: Receipts) -> None:
        self._receipts = receipts
        self._transport: asyncio.Transport
        self._rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the other end."""
        self._transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        """Answer each complete request, in one write, and keep the rest for the next packet."""
        buffer = self._rest + data if self._rest else data
        start = 0
        answers = []
        while (head_end := buffer.find(b"\r\n\r\n", start)) >= 0:
            length = _content_length(buffer, start, head_end)
            end = head_end + 4 + (int(length[1]) if length else 0)
            if end > len(buffer):
                break
            if length is None and _chunked(buffer, start, head_end):
                answers.append(_REFUSED)
                self._transport.write(b"".join(answers))
                self._transport.close()
                return
            answers.append(self._answer(buffer, start, head_end + 4, end))
            start = end
        self._rest = buffer[start:]
        if answers:
            self._transport.write(b"".join(answers))

    def _answer(self, buffer: bytes, start: int, body_start: int, end: int) -> bytes:
        if b" /-/" not in buffer[start : start + 16]:
            self._receipts.add(buffer[body_start:end])
            return _OK
        return self._control(buffer[start:body_start].split(b" ", 2)[1])

    def _control(self, path: bytes) -> bytes:
        match path:
            case b"/-/count":
                return _answer_with(self._receipts.count())
            case b"/-/dump":
                return _answer_with(self._receipts.dump())
            case b"/-/reset":
                self._receipts.reset()
                return _OK
            case _:
                return b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"


def _answer_with(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (
        len(body),
        body,
    )


class RunningReceiver:
    """A receiver in another process: `url` takes messages, the methods ask what has come."""

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self.process = process
        self.url = url

    def count(self) -> int:
        """How many requests have come since the start or the last reset."""
        return int(json.loads(self._ask("GET", "count"))["requests"])

    def dump(self) -> list[dict[str, Any]]:
        """The requests, in order of arrival."""
        return [json.loads(line) for line in self._ask("GET", "dump").splitlines()]

    def reset(self) -> None:
        """Forget what has come."""
        self._ask("POST", "reset")

    def wait_for(self, requests: int, timeout_seconds: float) -> int:
        """Wait until that many have come or the time is over; how many have come."""
        give_up = time.monotonic() + timeout_seconds
        while (count := self.count()) < requests and time.monotonic() < give_up:
            time.sleep(0.005)
        return count

    def _ask(self, method: str, what: str) -> bytes:
        request = urllib.request.Request(f"{self.url}/-/{what}", method=method)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=30) as answer:
            return bytes(answer.read())


@contextmanager
def running_receiver(keep: str = "times") -> Iterator[RunningReceiver]:
    """Start a receiver on a free port; it ends with the block. `keep` is counts, times or bodies."""
    command = [sys.executable, __file__, "--port", "0", "--keep", keep]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield RunningReceiver(process, process.stdout.readline().strip())
        finally:
            process.terminate()


async def serve(host: str, port: int, receipts: Receipts) -> None:
    """Serve until cancelled; the first line printed is the URL."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: ReceiverProtocol(receipts), host, port, backlog=1024)
    print(f"http://{host}:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


def main() -> None:
    """Run as a program."""
    parser = argparse.ArgumentParser(description="A lean HTTP receiver for benchmarks.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--keep", choices=("counts", "times", "bodies"), default="times")
    options = parser.parse_args()
    try:
        uvloop.run(serve(options.host, options.port, Receipts(options.keep)))
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
