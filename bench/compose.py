"""Messages a second of `compose` on one core, in every format, beside the bare dump of the same dictionaries.

The changes are decoded anew in each round, as in a worker that reads the stream, and so are the dictionaries.
Only composing and dumping are measured, in CPU time of this process, best of several rounds, so that other
processes count little. A dump is of all that a message tells: the body, the key of the COS format, and the
CloudEvents attributes beside the body.
"""

import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import msgspec

from bucketwire.event.change import (
    ObjectChange,
    ObjectState,
    Origin,
    Status,
    Versioning,
    decode_change,
    encode_change,
)
from bucketwire.event.compose import Subscription
from bucketwire.event.dialect import DIALECTS
from bucketwire.event.installation import Installation
from bucketwire.event.message import Message
from factories import change, rule, topic

CHANGES = 2_000
ROUNDS = 15
APART_NS = 500_009
"""So that a second has changes enough to be worth knowing, and a millisecond has not."""
HOST_ID = b64encode(bytes(range(100, 148))).decode()
S3_TARGET, OTHERS_TARGET = 150_000, 120_000
BINARY = {"format": "cloudevents", "cloudevents-mode": "binary"}
TOPICS: dict[str, tuple[str, dict[str, str], int]] = {
    **{f"s3, {name}": (name, {}, S3_TARGET) for name in DIALECTS},
    "s3 with CloudEvents headers, ceph": ("ceph", {"cloudevents": "true"}, OTHERS_TARGET),
    "cos": ("aws", {"format": "cos"}, OTHERS_TARGET),
    "cloudevents structured, aws": ("aws", {"format": "cloudevents"}, OTHERS_TARGET),
    "cloudevents binary, aws": ("aws", BINARY, OTHERS_TARGET),
}


def measured() -> Iterator[tuple[str, str, str]]:
    """One line for each format."""
    stored = [encode_change(_change(number)) for number in range(CHANGES)]
    for name, (dialect, attributes, target) in TOPICS.items():
        installation = Installation(DIALECTS[dialect], "48def817f0a34949abe29193be91de22")
        subscription = Subscription(rule(id="bench"), topic(**attributes), installation)
        composing, dumping = _seconds(stored, subscription)
        dumps = ", ".join(f"{each} {1 / seconds:.0f}" for each, seconds in dumping.items())
        value = f"{1 / composing:.0f} /s (dump: {dumps}; {composing / dumping['msgspec']:.2f}x)"
        yield f"compose: {name}", value, f"> {target} /s, 2x"


def _seconds(stored: list[bytes], subscription: Subscription) -> tuple[float, dict[str, float]]:
    """Of composing one change, and of dumping the dictionaries that it makes, with each encoder there is."""
    composing: list[float] = []
    encoders = _encoders()
    dumping: dict[str, list[float]] = {name: [] for name in encoders}
    for _ in range(ROUNDS):
        changes = [decode_change(each) for each in stored]
        began = time.process_time()
        messages = [subscription.compose(each) for each in changes]
        composing.append(time.process_time() - began)
        dictionaries = [each for message in messages for each in _dictionaries(message)]
        del changes, messages
        for name, encode in encoders.items():
            began = time.process_time()
            dumped = [encode(each) for each in dictionaries]
            dumping[name].append(time.process_time() - began)
            del dumped
    return min(composing) / CHANGES, {name: min(found) / CHANGES for name, found in dumping.items()}


def _encoders() -> dict[str, Callable[[Any], bytes]]:
    encoders: dict[str, Callable[[Any], bytes]] = {"msgspec": msgspec.json.Encoder().encode}
    if find_spec("orjson"):
        encoders["orjson"] = import_module("orjson").dumps
    return encoders


def _dictionaries(message: Message) -> Iterator[dict[str, Any]]:
    """All that a message tells."""
    yield msgspec.json.decode(message.body)
    if message.partition_key is not None:
        yield msgspec.json.decode(message.partition_key)
    if message.cloudevent:
        yield message.cloudevent


def _change(number: int) -> ObjectChange:
    """A PUT of its own key and time, with metadata and a tag, in a bucket with versions."""
    plain = change(
        f"videos/2026/{number:08d}.mp4", committed_at_ns=1_763_238_280_123_456_789 + number * APART_NS
    )
    new = ObjectState(
        Status.COMMITTED_VERSIONED,
        number * 1_000_003,
        f"{number:032x}",
        f"{number:016x}",
        content_type="video/mp4",
        metadata={"color": "red"},
        tags={"team": "blue"},
    )
    bucket = msgspec.structs.replace(plain.bucket, versioning=Versioning.ENABLED)
    origin = Origin("AIDA6ZQXN7EXAMPLE0001", "192.0.2.7", f"{number:016X}", HOST_ID)
    return msgspec.structs.replace(plain, new=new, bucket=bucket, origin=origin)


if __name__ == "__main__":
    for measure, value, target in measured():
        print(f"| {measure:48} | {value:48} | {target} |")
