"""Large objects up or down, in a process of its own; prints megabytes a second over all clients.

python -m bench.transfer up --port 9000 --clients 16 --megabytes 256
"""

import argparse
import http.client
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

from bench.load import derived_key, signed_head

MEGABYTE = 1024 * 1024


def main() -> None:
    """Read the options, run, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("direction", choices=("up", "down"))
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--clients", type=int, default=1)
    parser.add_argument("--megabytes", type=int, default=1024)
    options = parser.parse_args()
    work = upload if options.direction == "up" else download
    began = time.monotonic()
    with ThreadPoolExecutor(options.clients) as threads:
        list(
            threads.map(
                lambda n: work(options.port, f"object-{n}", options.megabytes), range(options.clients)
            )
        )
    seconds = time.monotonic() - began
    print(options.clients * options.megabytes * MEGABYTE / 1e6 / seconds)


def upload(port: int, key: str, megabytes: int) -> None:
    """PUT so many megabytes, as they are made."""
    headers = {**_signed("PUT", port, key), "Content-Length": str(megabytes * MEGABYTE)}
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("PUT", f"/large/{key}", _content(megabytes), headers)
    answer = connection.getresponse()
    assert answer.status == 200, answer.read()
    connection.close()


def download(port: int, key: str, megabytes: int) -> None:
    """GET the object, and throw its bytes away."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", f"/large/{key}", headers=_signed("GET", port, key))
    answer = connection.getresponse()
    buffer = bytearray(MEGABYTE)
    received = 0
    while count := answer.readinto(buffer):
        received += count
    assert (answer.status, received) == (200, megabytes * MEGABYTE)
    connection.close()


def _content(megabytes: int) -> Iterator[bytes]:
    piece = bytes(MEGABYTE)
    for _ in range(megabytes):
        yield piece


def _signed(method: str, port: int, key: str) -> dict[str, str]:
    now = datetime.now(UTC)
    return signed_head(method, port, "large", key, now, derived_key(now))


if __name__ == "__main__":
    main()
