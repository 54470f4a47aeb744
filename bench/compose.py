"""Messages a second of `compose` on one core, in every format, beside the bare dump of the same dictionaries.

CPU time of this process is measured, best of several rounds, so that other processes count little.
"""

import time
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from bucketwire.event.change import ObjectChange, ObjectState, Status, Versioning
from bucketwire.event.compose import compose
from bucketwire.event.dialect import DIALECTS
from bucketwire.event.installation import Installation
from bucketwire.event.rule import Rule
from bucketwire.event.topic import Topic
from factories import change, rule, topic

CHANGES = 2_000
ROUNDS = 15
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
    changes = [_change(number) for number in range(CHANGES)]
    for name, (dialect, attributes, target) in TOPICS.items():
        subscription = rule(id="bench"), topic(**attributes)
        installation = Installation(DIALECTS[dialect], "48def817f0a34949abe29193be91de22")
        composing, dumping = _seconds(changes, subscription, installation)
        rate, limit = CHANGES / composing, CHANGES / dumping
        value = f"{rate:.0f} /s (dump {limit:.0f}, {limit / rate:.1f}x)"
        yield f"compose: {name}", value, f"> {target} /s, 2x"


def _seconds(
    changes: list[ObjectChange], subscription: tuple[Rule, Topic], installation: Installation
) -> tuple[float, float]:
    """Of composing all the changes, and of dumping the dictionaries that they make."""
    encode = msgspec.json.Encoder().encode
    subscriptions = [subscription]
    bodies: list[Any] = [
        msgspec.json.decode(message.body)
        for each in changes
        for message in compose(each, subscriptions, installation)
    ]
    composing = _best(lambda: [compose(each, subscriptions, installation) for each in changes])
    return composing, _best(lambda: [encode(body) for body in bodies])


def _best(run: Callable[[], object]) -> float:
    found = []
    for _ in range(ROUNDS):
        began = time.process_time()
        run()
        found.append(time.process_time() - began)
    return min(found)


def _change(number: int) -> ObjectChange:
    """A PUT of its own key and time, with metadata and a tag, in a bucket with versions."""
    plain = change(
        f"videos/2026/{number:08d}.mp4", committed_at_ns=1_763_238_280_123_456_789 + number * 10_007
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
    return msgspec.structs.replace(plain, new=new, bucket=bucket)


if __name__ == "__main__":
    for measure, value, target in measured():
        print(f"| {measure:48} | {value:32} | {target} |")
