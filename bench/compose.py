"""Messages a second of `compose` on one core, in every format, beside the bare dump of the same dictionaries.

A worker reads a change and composes its messages at once, and holds them until they are sent. So the
changes are read anew in each round, a hundred at a time, and so are the dictionaries; all that was made is
held to the end of the round. Only composing and dumping are measured, in CPU time of this process, best of
several rounds, so that other processes count little. A dump is of all that a message tells: the body, the key
of the COS format, and the CloudEvents attributes beside the body.
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
    encode_change,
    read_change,
)
from bucketwire.event.compose import Subscription
from bucketwire.event.dialect import DIALECTS
from bucketwire.event.installation import Installation
from bucketwire.event.message import Message
from factories import change, rule, topic

CHANGES = 2_000
AT_ONCE = 100
ROUNDS = 15
APART_NS = 500_009
"""So that a second has changes enough to be worth knowing, and a millisecond has not."""
COMPOSING = "composing"
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
    encoders = _encoders()
    rounds = [_round(stored, subscription, encoders) for _ in range(ROUNDS)]
    best = {name: min(spent[name] for spent in rounds) / len(stored) for name in (COMPOSING, *encoders)}
    return best.pop(COMPOSING), best


def _round(
    stored: list[bytes], subscription: Subscription, encoders: dict[str, Callable[[Any], bytes]]
) -> dict[str, float]:
    """The CPU time of composing, and of each encoder."""
    spent = dict.fromkeys((COMPOSING, *encoders), 0.0)
    held: list[Message | bytes] = []
    for start in range(0, len(stored), AT_ONCE):
        changes = [read_change(each) for each in stored[start : start + AT_ONCE]]
        began = time.process_time()
        messages = [
            subscription.write(change) if is_plain else subscription.compose(change)
            for change, is_plain in changes
        ]
        spent[COMPOSING] += time.process_time() - began
        held += messages
        for name, encode in encoders.items():
            dictionaries = [each for message in messages for each in _dictionaries(message)]
            began = time.process_time()
            dumped = [encode(each) for each in dictionaries]
            spent[name] += time.process_time() - began
            held += dumped
    return spent


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
