"""Messages a second on one core, in every format, beside the bare dump of the same dictionaries.

A worker reads a change and composes its messages at once, and holds them until they are sent. So the
changes are read anew in each round, a hundred at a time, and so are the dictionaries; all that was made is
held to the end of the round. Only composing and dumping are measured, in CPU time of this process, so that
other processes count little. The rate is that of the best of several rounds; how many times as long as a dump
composing takes is the median of the rounds, as a processor may become faster or slower between two of them.
A dump is of all that a message tells: the body, the key of the COS format, and the CloudEvents attributes
beside the body.
"""

import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

import msgspec
import orjson

from bucketwire.event.change import (
    BACKSLASH,
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
from bucketwire.event.name import Operation
from factories import change, rule, topic

CHANGES = 2_000
AT_ONCE = 100
ROUNDS = 15
APART_NS = 500_009
"""So that a second has changes enough to be worth knowing, and a millisecond has not."""
COMPOSING = "composing"
ENCODERS: dict[str, Callable[[Any], bytes]] = {
    "msgspec": msgspec.json.Encoder().encode,
    "orjson": orjson.dumps,
}
HOST_ID = b64encode(bytes(range(100, 148))).decode()
S3_TARGET, OTHERS_TARGET = 150_000, 120_000
DUMPS_TARGET = 2
"""Composing takes less than so many times as long as the bare dump."""
BINARY = {"format": "cloudevents", "cloudevents-mode": "binary"}
TOPICS: dict[str, tuple[str, dict[str, str], int]] = {
    **{f"s3, {name}": (name, {}, S3_TARGET) for name in DIALECTS},
    "s3 with CloudEvents headers, ceph": ("ceph", {"cloudevents": "true"}, OTHERS_TARGET),
    "cos": ("aws", {"format": "cos"}, OTHERS_TARGET),
    "cloudevents structured, aws": ("aws", {"format": "cloudevents"}, OTHERS_TARGET),
    "cloudevents binary, aws": ("aws", BINARY, OTHERS_TARGET),
}


def measured() -> Iterator[tuple[str, str, str]]:
    """One line for each format, of the usual change; and one for the formats of each other kind of change."""
    for name, (target, rate, ratios) in _formats(KINDS["usual"]):
        beside = ", ".join(f"{_times(ratio)} {each}'s dump" for each, ratio in ratios.items())
        yield f"compose: {name}", f"{rate:.0f} /s; {beside}", f"> {target} /s, < {DUMPS_TARGET}x"
    for kind, make in KINDS.items():
        if kind != "usual":
            yield f"compose: {kind}, all formats", *_summary(_formats(make))


def _summary(formats: Iterator[tuple[str, tuple[int, float, dict[str, float]]]]) -> tuple[str, str]:
    """The slowest and the fastest."""
    measures = [(rate, ratios) for _, (_, rate, ratios) in formats]
    rates = [rate for rate, _ in measures]
    found = {each: [ratios[each] for _, ratios in measures] for each in ENCODERS}
    beside = ", ".join(
        f"{_times(min(ratios))} to {_times(max(ratios))} {each}'s dump" for each, ratios in found.items()
    )
    target = f"> {S3_TARGET} /s (S3), {OTHERS_TARGET} /s, < {DUMPS_TARGET}x"
    return f"{min(rates):.0f} to {max(rates):.0f} /s; {beside}", target


def _times(ratio: float) -> str:
    """What misses the target is bold."""
    return f"{ratio:.2f}x" if ratio < DUMPS_TARGET else f"**{ratio:.2f}x**"


def _formats(
    make: Callable[[int], ObjectChange],
) -> Iterator[tuple[str, tuple[int, float, dict[str, float]]]]:
    """The target, the messages a second, and the times of each dump, by the name of the format."""
    stored = [encode_change(make(number)) for number in range(CHANGES)]
    for name, (dialect, attributes, target) in TOPICS.items():
        installation = Installation(DIALECTS[dialect], "48def817f0a34949abe29193be91de22")
        subscription = Subscription(rule(id="bench"), topic(**attributes), installation)
        yield name, (target, *_speed(stored, subscription))


def _speed(stored: list[bytes], subscription: Subscription) -> tuple[float, dict[str, float]]:
    """Messages a second, and how many times as long as dumping their dictionaries it takes, by encoder."""
    rounds = [_round(stored, subscription) for _ in range(ROUNDS)]
    rate = len(stored) / min(spent[COMPOSING] for spent in rounds)
    return rate, {name: median(spent[COMPOSING] / spent[name] for spent in rounds) for name in ENCODERS}


def _round(stored: list[bytes], subscription: Subscription) -> dict[str, float]:
    """The CPU time of composing, and of each encoder."""
    spent = dict.fromkeys((COMPOSING, *ENCODERS), 0.0)
    held: list[Message | bytes] = []
    for start in range(0, len(stored), AT_ONCE):
        changes = [(decode_change(each), each) for each in stored[start : start + AT_ONCE]]
        began = time.process_time()
        messages = [
            subscription.write(change) if BACKSLASH not in encoded else subscription.compose(change)
            for change, encoded in changes
        ]
        spent[COMPOSING] += time.process_time() - began
        held += messages
        for name, encode in ENCODERS.items():
            dictionaries = [each for message in messages for each in _dictionaries(message)]
            began = time.process_time()
            dumped = [encode(each) for each in dictionaries]
            spent[name] += time.process_time() - began
            held += dumped
    return spent


def _dictionaries(message: Message) -> Iterator[dict[str, Any]]:
    """All that a message tells."""
    yield msgspec.json.decode(message.body)
    if message.partition_key is not None:
        yield msgspec.json.decode(message.partition_key)
    if message.cloudevent:
        yield message.cloudevent


def _usual(number: int) -> ObjectChange:
    """A PUT of its own key and time, with metadata and a tag, in a bucket with versions."""
    plain = change(
        f"videos/2026/{number:08d}.mp4", committed_at_ns=1_763_238_280_123_456_789 + number * APART_NS
    )
    bucket = msgspec.structs.replace(plain.bucket, versioning=Versioning.ENABLED)
    origin = Origin("AIDA6ZQXN7EXAMPLE0001", "192.0.2.7", f"{number:016X}", HOST_ID)
    return msgspec.structs.replace(plain, new=_object(number), bucket=bucket, origin=origin)


def _object(number: int) -> ObjectState:
    return ObjectState(
        Status.COMMITTED_VERSIONED,
        number * 1_000_003,
        f"{number:032x}",
        f"{number:016x}",
        content_type="video/mp4",
        metadata={"color": "red"},
        tags={"team": "blue"},
    )


def _bare(number: int) -> ObjectChange:
    """Of an object without all that it may be without, in a bucket that never had versions."""
    usual = _usual(number)
    bucket = msgspec.structs.replace(usual.bucket, versioning=Versioning.UNVERSIONED)
    new = ObjectState(Status.COMMITTED_UNVERSIONED, number * 1_000_003, f"{number:032x}")
    return msgspec.structs.replace(usual, bucket=bucket, new=new)


def _described(number: int) -> ObjectChange:
    """With three entries of metadata and three tags."""
    entries = {"team": "blue", "camera": "left", "day": "4"}
    new = msgspec.structs.replace(_object(number), metadata=entries, tags=entries)
    return msgspec.structs.replace(_usual(number), new=new)


def _long_described(number: int) -> ObjectChange:
    """With a dozen entries of metadata and the ten tags that an object may have."""
    metadata = {f"camera-{each}": f"on the left side, {each}" for each in range(12)}
    tags = {f"team-{each}": f"blue {each}" for each in range(10)}
    new = msgspec.structs.replace(_object(number), metadata=metadata, tags=tags)
    return msgspec.structs.replace(_usual(number), new=new)


def _escaped(number: int) -> ObjectChange:
    """With text in which JSON escapes something."""
    new = msgspec.structs.replace(_object(number), metadata={"title": 'The "Red" One'})
    return msgspec.structs.replace(_usual(number), new=new)


def _odd_key(number: int) -> ObjectChange:
    return msgspec.structs.replace(_usual(number), key=f"vidéos 2026/{number:08d}.mp4")


def _deleted(number: int) -> ObjectChange:
    """Of one version."""
    usual = _usual(number)
    return msgspec.structs.replace(usual, operation=Operation.DELETE, new=None, old=usual.new)


def _hidden(number: int) -> ObjectChange:
    """By a delete marker."""
    usual = _usual(number)
    marker = ObjectState(
        Status.DELETE_MARKER_VERSIONED, 0, "d41d8cd98f00b204e9800998ecf8427e", f"{number:016X}"
    )
    return msgspec.structs.replace(
        usual, operation=Operation.DELETE_MARKER_CREATED, new=marker, previous=usual.new
    )


def _in_turn(number: int) -> ObjectChange:
    """Five kinds of one bucket: each message is of another shape than the one before."""
    kinds = (_usual, _bare, _described, _deleted, _hidden)
    made = kinds[number % len(kinds)](number)
    return msgspec.structs.replace(made, bucket=_usual(number).bucket)


def _many_in_turn(number: int) -> ObjectChange:
    """Of 24 shapes: four ways to put an object with none to two entries of metadata, and none or one tag."""
    operations = (Operation.PUT, Operation.POST, Operation.COPY, Operation.COMPLETE_MULTIPART_UPLOAD)
    operation = operations[number % 4]
    metadata = {f"camera-{each}": "left" for each in range(number // 4 % 3)}
    tags = {"team": "blue"} if number // 12 % 2 else {}
    new = msgspec.structs.replace(_object(number), metadata=metadata, tags=tags)
    return msgspec.structs.replace(_usual(number), operation=operation, new=new)


KINDS: dict[str, Callable[[int], ObjectChange]] = {
    "usual": _usual,
    "bare object": _bare,
    "three entries of metadata, three tags": _described,
    "key with a space and an accent": _odd_key,
    "version deleted": _deleted,
    "delete marker": _hidden,
    "five kinds in turn": _in_turn,
    "24 shapes in turn": _many_in_turn,
    "12 entries of metadata, 10 tags": _long_described,
    "text with escapes": _escaped,
}

if __name__ == "__main__":
    for measure, value, target in measured():
        print(f"| {measure:48} | {value:48} | {target} |")
