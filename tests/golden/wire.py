"""Messages off the wire, in the lines of a golden file: what travels beside the body, if any; the body."""

import time
from urllib.parse import unquote

import msgspec

from bucketwire.event.message import Message
from services.http_endpoint import Received
from services.kafka import read_topic

PATIENCE_SECONDS = 60.0


def lines_of_request(request: Received) -> list[bytes]:
    """The attributes of a CloudEvent in binary mode, from the headers, and the body."""
    headers = {name[3:]: unquote(text) for name, text in request.headers.items() if name.startswith("ce-")}
    return [*_attributes(headers), request.body]


def lines_of_message(message: Message) -> list[bytes]:
    """Likewise, of a message that was not sent: a key stands before the body."""
    key = [] if message.partition_key is None else [message.partition_key]
    return [*key, *_attributes(message.cloudevent), message.body]


def _attributes(attributes: dict[str, str]) -> list[bytes]:
    return [msgspec.json.encode(attributes)] if attributes else []


def lines_from_kafka(port: int, name: str, count: int) -> list[list[bytes]]:
    """The keys and bodies that a topic holds when it holds so many; `AssertionError` if they do not come."""
    until = time.monotonic() + PATIENCE_SECONDS
    while len(found := read_topic(port, name)) < count:
        assert time.monotonic() < until, f"{len(found)} of {count} messages came"
    return [[bytes(each.key() or b""), bytes(each.value() or b"")] for each in found]
