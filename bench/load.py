"""A lean PUT client, in a process of its own: requests are signed before the clock starts.

    python -m bench.load --port 9000 --bucket b --seconds 5 --clients 16            as fast as it goes
    python -m bench.load --port 9000 --bucket b --seconds 20 --rate 100             at a steady rate

Prints one JSON object: puts, errors, seconds, milliseconds a PUT (p50, p99), and with --rate the time at
which each key was answered.
"""

import argparse
import asyncio
import hashlib
import hmac
import json
import statistics
import time
import uuid
from datetime import UTC, datetime
from itertools import count

import uvloop

from wire import ACCESS_KEY, REGION, SECRET_KEY

MOST_PUTS_A_SECOND = 5_000


def signed_head(
    method: str, port: int, bucket: str, key: str, now: datetime, signing_key: bytes
) -> dict[str, str]:
    """The headers of a request, with a signature over everything but the payload."""
    stamp = now.strftime("%Y%m%dT%H%M%SZ")
    host = f"127.0.0.1:{port}"
    names = "host;x-amz-content-sha256;x-amz-date"
    canonical = (
        f"{method}\n/{bucket}/{key}\n\nhost:{host}\nx-amz-content-sha256:UNSIGNED-PAYLOAD\n"
        f"x-amz-date:{stamp}\n\n{names}\nUNSIGNED-PAYLOAD"
    )
    scope = f"{stamp[:8]}/{REGION}/s3/aws4_request"
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    to_sign = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{digest}"
    signature = hmac.new(signing_key, to_sign.encode(), "sha256").hexdigest()
    return {
        "Host": host,
        "x-amz-date": stamp,
        "x-amz-content-sha256": "UNSIGNED-PAYLOAD",
        "Authorization": f"AWS4-HMAC-SHA256 Credential={ACCESS_KEY}/{scope}, SignedHeaders={names}, "
        f"Signature={signature}",
    }


def signed_put(port: int, bucket: str, key: str, body: bytes, now: datetime, signing_key: bytes) -> bytes:
    """The whole request."""
    headers = signed_head("PUT", port, bucket, key, now, signing_key)
    lines = [f"{name}: {value}" for name, value in {**headers, "Content-Length": len(body)}.items()]
    return "\r\n".join([f"PUT /{bucket}/{key} HTTP/1.1", *lines, "", ""]).encode() + body


def derived_key(now: datetime) -> bytes:
    """The signing key of the day."""
    key = ("AWS4" + SECRET_KEY).encode()
    for part in (now.strftime("%Y%m%d"), REGION, "s3", "aws4_request"):
        key = hmac.new(key, part.encode(), "sha256").digest()
    return key


class Client(asyncio.Protocol):
    """One connection, one request at a time."""

    def __init__(self) -> None:
        self._received = b""
        self._answer: asyncio.Future[bool] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the way out."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """A whole answer to a PUT has no body, or a length."""
        self._received += data
        head, found, body = self._received.partition(b"\r\n\r\n")
        if not found or self._answer is None:
            return
        _, has_length, rest = head.lower().partition(b"content-length: ")
        if has_length and len(body) < int(rest.partition(b"\r\n")[0]):
            return
        self._received = b""
        self._answer.set_result(head.startswith(b"HTTP/1.1 200"))

    def connection_lost(self, exc: Exception | None) -> None:
        """A connection that goes away is an error of the request on it."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(exc or ConnectionError("closed by the gateway"))

    async def put(self, request: bytes) -> bool:
        """Whether the PUT was acknowledged."""
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return await self._answer


async def run(options: argparse.Namespace) -> dict[str, object]:
    """Put until the time is over."""
    loop = asyncio.get_running_loop()
    now = datetime.now(UTC)
    signing_key = derived_key(now)
    body = b"x" * options.size
    limit = int(options.seconds * (options.rate or MOST_PUTS_A_SECOND))
    prefix = uuid.uuid4().hex[:8]
    keys = [f"{prefix}/{number}" for number in range(limit)]
    requests = [signed_put(options.port, options.bucket, key, body, now, signing_key) for key in keys]
    clients = [
        (await loop.create_connection(Client, "127.0.0.1", options.port))[1] for _ in range(options.clients)
    ]
    answered: dict[str, int] = {}
    took: list[float] = []
    numbers = count()
    began = loop.time()

    async def work(client: Client) -> None:
        while (number := next(numbers)) < limit and loop.time() < began + options.seconds:
            if options.rate:
                await asyncio.sleep(began + number / options.rate - loop.time())
            sent = loop.time()
            if await client.put(requests[number]):
                answered[keys[number]] = time.time_ns()
                took.append(loop.time() - sent)

    await asyncio.gather(*(work(client) for client in clients))
    seconds = loop.time() - began
    percentiles = statistics.quantiles(took, n=100)
    return {
        "puts": len(answered),
        "errors": min(next(numbers), limit) - len(answered) - (0 if options.rate else options.clients),
        "seconds": seconds,
        "p50_ms": percentiles[49] * 1000,
        "p99_ms": percentiles[98] * 1000,
        "answered_at_ns": answered if options.rate else {},
    }


def main() -> None:
    """Read the options, run, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--bucket", required=True)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--size", type=int, default=1024)
    parser.add_argument("--rate", type=float, default=0.0)
    print(json.dumps(uvloop.run(run(parser.parse_args()))))


if __name__ == "__main__":
    main()
