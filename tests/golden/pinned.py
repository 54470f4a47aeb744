"""Messages of a running gateway beside the golden files: what no two runs share gets the golden value.

The values to replace are those of the change that the gateway committed, so that a message with any other
value in their place does not become the golden one. They are replaced in the bytes as they came: order,
escapes and everything else stay. ETags are among them, as the golden objects' bytes are not told.
"""

from collections.abc import Iterator
from datetime import UTC, datetime

from bucketwire.event.change import ObjectChange, ObjectState
from bucketwire.event.compose import event_id
from bucketwire.event.rule import Rule

Pin = tuple[str, str]
"""What stands there, and what stands in the golden file."""


def pinned(line: bytes, pins: list[Pin]) -> bytes:
    """The line, with the golden values."""
    for ours, golden in pins:
        line = line.replace(ours.encode(), golden.encode())
    return line


def pins_of(change: ObjectChange, golden: ObjectChange, rule: Rule) -> list[Pin]:
    """Times, ids and addresses of the change, each with that of the golden one."""
    return [
        *_times(change.committed_at_ns, golden.committed_at_ns),
        (_sequencer(change), _sequencer(golden)),
        *_ids(event_id(change, rule), event_id(golden, rule)),
        *_ids(change.bucket.id, golden.bucket.id),
        (change.bucket.name, golden.bucket.name),
        (_owner(change), _owner(golden)),
        *zip(_origin(change), _origin(golden), strict=True),
        *_states(change.new, golden.new),
        *_states(change.old, golden.old),
        *_states(change.previous, golden.previous),
    ]


def _times(ours_ns: int, golden_ns: int) -> Iterator[Pin]:
    for digits in (3, 6):
        yield _time(ours_ns, digits), _time(golden_ns, digits)


def _time(at_ns: int, digits: int) -> str:
    second = datetime.fromtimestamp(at_ns // 10**9, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{second}.{at_ns % 10**9:09}"[: len(second) + 1 + digits] + "Z"


def _sequencer(change: ObjectChange) -> str:
    return f"{change.committed_at_ns:016X}"


def _ids(ours: str, golden: str) -> Iterator[Pin]:
    yield ours, golden
    yield _hyphenated(ours), _hyphenated(golden)


def _owner(change: ObjectChange) -> str:
    return f'"ownerIdentity":{{"principalId":"{change.bucket.owner_id}"}}'


def _origin(change: ObjectChange) -> list[str]:
    """With the names of their fields: for the lifecycle, principal and address are the same word."""
    origin = change.origin
    return [
        f'"userIdentity":{{"principalId":"{origin.principal_id}"}}',
        f'"sourceIPAddress":"{origin.source_ip}"',
        f'"x-amz-request-id":"{origin.request_id}"',
        f'"request_id":"{origin.request_id}"',
        f'"x-amz-id-2":"{origin.host_id}"',
    ]


def _states(ours: ObjectState | None, golden: ObjectState | None) -> Iterator[Pin]:
    if ours is None or golden is None:
        return
    yield f'"{ours.etag}"', f'"{golden.etag}"'
    if ours.version_id is not None and golden.version_id is not None:
        yield ours.version_id, golden.version_id


def _hyphenated(digits: str) -> str:
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
