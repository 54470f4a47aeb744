"""The cases behind the golden files: `make golden` writes them anew, a review reads the difference.

    <case>.jsonl    the S3 message, one line a dialect
                    IBM COS: key, payload, payload of a system with a name
                    CloudEvents in structured mode, one line a dialect
                    CloudEvents in binary mode, two lines a dialect: attributes, body

There is a case for each operation in each versioning state, and of the removals for each state before that
the message may tell of; each removal has a second one, `-before-image`, for topics that ask what was there.
No two states of one removal or overwrite have a size, an eTag, a version or an entry in common, so that none
is told in another's place.
A marker that another marker hides is no state of a change: there was no object.

What Amazon S3 and radosgw have sent is apart, in `golden.vectors`: the tests of the dialects hold messages
against that.
"""

from collections.abc import Iterator
from pathlib import Path

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
from bucketwire.event.compose import WORTH_A_WRITER, Subscription
from bucketwire.event.dialect import AWS, DIALECTS
from bucketwire.event.installation import Installation
from bucketwire.event.message import Message
from bucketwire.event.name import Operation
from factories import change, rule, state, topic

FOLDER = Path(__file__).parent
SYSTEM_UUID = "48def817f0a34949abe29193be91de22"
SYSTEM_NAME = "My DsNet"
BEFORE_IMAGE = "-before-image"

BARE = state(5)
VERSIONED = ObjectState(
    Status.COMMITTED_VERSIONED,
    11,
    "0b4e7a0e5fe84ad35fb5f95b9ceeac79",
    "0123456789abcdef",
    content_type="video/mp4",
    metadata={"color": "red"},
    tags={"team": "blue"},
)
NULL = msgspec.structs.replace(VERSIONED, status=Status.COMMITTED_UNVERSIONED, version_id=None)
"""The same, where there are no versions."""
DESCRIBED = ObjectState(
    Status.COMMITTED_UNVERSIONED,
    7,
    "7ac66c0f148de9519b8bd264312c4d64",
    content_type="image/jpg",
    metadata={"mandm": "green", "foobar": "foobar value", "odd": "ä\x01=?utf-8?B?w6Q=?="},
    tags={"day": "4", "env": "test"},
)
MARKER = ObjectState(
    Status.DELETE_MARKER_VERSIONED, 0, "d41d8cd98f00b204e9800998ecf8427e", "0123456789abcdf0"
)
NULL_MARKER = msgspec.structs.replace(MARKER, status=Status.DELETE_MARKER_UNVERSIONED, version_id=None)
LIFECYCLE = Origin("s3.amazonaws.com", "s3.amazonaws.com", "4F1D0A2B3C4D5E6F", "lifecycle")
BUCKETS = {"": Versioning.UNVERSIONED, "versioned-": Versioning.ENABLED, "suspended-": Versioning.SUSPENDED}
"""What the names of cases begin with."""


def changed(
    versioning: Versioning,
    operation: Operation,
    *,
    new: ObjectState | None = None,
    old: ObjectState | None = None,
    previous: ObjectState | None = None,
) -> ObjectChange:
    """A change in a bucket of that kind."""
    plain = change("video.mp4", operation)
    bucket = msgspec.structs.replace(plain.bucket, versioning=versioning)
    origin = LIFECYCLE if "Expiration" in operation else plain.origin
    return msgspec.structs.replace(plain, bucket=bucket, origin=origin, new=new, old=old, previous=previous)


def creations() -> Iterator[tuple[str, ObjectChange]]:
    """Objects of all kinds in a bucket without versions, and every way to make one in every bucket."""
    yield "put", change("storj-logo-mark-color.jpg", size_bytes=64908)
    yield "put-empty", change("empty", size_bytes=0)
    yield "put-odd-key", change("folder name/ä+b@c%20.txt")
    yield "put-control-key", change("line\nend\x7f\u2028\ufffe\U0001f600")
    yield "put-huge", change("huge", size_bytes=2**63 - 1)
    yield "put-described", msgspec.structs.replace(change("photo.jpg"), new=DESCRIBED)
    ways = {
        "overwrite": Operation.PUT,
        "post": Operation.POST,
        "copy": Operation.COPY,
        "multipart": Operation.COMPLETE_MULTIPART_UPLOAD,
    }
    for prefix, versioning in BUCKETS.items():
        kept = versioning is Versioning.ENABLED
        made = VERSIONED if kept else NULL
        for name, operation in ways.items():
            replaced = {} if name != "overwrite" else {"previous" if kept else "old": DESCRIBED}
            yield prefix + name, changed(versioning, operation, new=made, **replaced)
        if prefix:
            yield f"{prefix}put", changed(versioning, Operation.PUT, new=made)


def descriptions() -> Iterator[tuple[str, ObjectChange]]:
    """Changes of what describes an object."""
    for prefix, versioning in BUCKETS.items():
        there = VERSIONED if versioning is Versioning.ENABLED else NULL
        bare = msgspec.structs.replace(there, tags={})
        yield f"{prefix}acl-put", changed(versioning, Operation.ACL_PUT, new=there, old=there)
        yield f"{prefix}tagging-put", changed(versioning, Operation.TAGGING_PUT, new=there, old=bare)
        yield f"{prefix}tagging-delete", changed(versioning, Operation.TAGGING_DELETE, new=bare, old=there)


_Removals = dict[str, tuple[Operation, dict[str, ObjectState]]]
_MARK = Operation.DELETE_MARKER_CREATED


def _in_both_ways(states: dict[str, dict[str, ObjectState]]) -> _Removals:
    """By a marker that a client makes, and by one that the lifecycle makes."""
    ways = {"delete": _MARK, "expire": Operation.EXPIRATION_DELETE_MARKER_CREATED}
    return {way + name: (operation, told) for way, operation in ways.items() for name, told in states.items()}


_UNVERSIONED_REMOVALS: _Removals = {
    "delete": (Operation.DELETE, {"old": BARE}),
    "delete-described": (Operation.DELETE, {"old": DESCRIBED}),
    "delete-missing": (Operation.DELETE, {}),
    "expire": (Operation.EXPIRATION_DELETE, {"old": DESCRIBED}),
}
_VERSIONED_REMOVALS: _Removals = {
    **_in_both_ways(
        {
            "": {"new": MARKER, "previous": VERSIONED},
            "-hides-null": {"new": MARKER, "previous": DESCRIBED},
        }
    ),
    "delete-hides-marker": (_MARK, {"new": MARKER}),
    "delete-hides-null-marker": (_MARK, {"new": MARKER}),
    "delete-missing": (_MARK, {"new": MARKER}),
}
_SUSPENDED_REMOVALS: _Removals = {
    **_in_both_ways(
        {
            "": {"new": NULL_MARKER, "old": DESCRIBED},
            "-hides-version": {"new": NULL_MARKER, "previous": VERSIONED},
            "-hides-version-replaces-null": {"new": NULL_MARKER, "old": DESCRIBED, "previous": VERSIONED},
            "-hides-version-replaces-marker": {"new": NULL_MARKER, "old": NULL_MARKER, "previous": VERSIONED},
        }
    ),
    "delete-bare": (_MARK, {"new": NULL_MARKER, "old": BARE}),
    "delete-replaces-marker": (_MARK, {"new": NULL_MARKER, "old": NULL_MARKER}),
    "delete-hides-marker": (_MARK, {"new": NULL_MARKER}),
    "delete-hides-marker-replaces-null": (_MARK, {"new": NULL_MARKER, "old": DESCRIBED}),
    "delete-missing": (_MARK, {"new": NULL_MARKER}),
}
_OF_ONE_VERSION: _Removals = {
    "delete-version": (Operation.DELETE, {"old": VERSIONED}),
    "delete-null": (Operation.DELETE, {"old": DESCRIBED}),
    "delete-marker": (Operation.DELETE, {"old": MARKER}),
    "delete-null-marker": (Operation.DELETE, {"old": NULL_MARKER}),
    "expire-noncurrent": (Operation.EXPIRATION_DELETE, {"old": VERSIONED}),
    "expire-noncurrent-null": (Operation.EXPIRATION_DELETE, {"old": DESCRIBED}),
    "expire-marker": (Operation.EXPIRATION_DELETE, {"old": MARKER}),
    "expire-null-marker": (Operation.EXPIRATION_DELETE, {"old": NULL_MARKER}),
}
_REMOVALS = {
    "": _UNVERSIONED_REMOVALS,
    "versioned-": _VERSIONED_REMOVALS | _OF_ONE_VERSION,
    "suspended-": _SUSPENDED_REMOVALS | _OF_ONE_VERSION,
}


def removals() -> Iterator[tuple[str, ObjectChange]]:
    """What may be removed in each bucket; each for topics that do not ask what it was, and that do."""
    for prefix, versioning in BUCKETS.items():
        for name, (operation, states) in _REMOVALS[prefix].items():
            removed = changed(versioning, operation, **states)
            yield prefix + name, removed
            yield f"{prefix}{name}{BEFORE_IMAGE}", removed


CHANGES = dict((*creations(), *descriptions(), *removals()))
FORMS: dict[str, dict[str, str]] = {
    "s3": {},
    "headers": {"cloudevents": "true"},
    "cos": {"format": "cos"},
    "cloudevents": {"format": "cloudevents"},
    "binary": {"format": "cloudevents", "cloudevents-mode": "binary"},
}
"""Attributes of topics, by what is told of them here."""
FORMATS = {**dict.fromkeys(DIALECTS, 1), "cos": 3, "cloudevents": len(DIALECTS), "binary": 2 * len(DIALECTS)}
"""What a golden file has, in this order, and in how many lines."""

REPEATS = WORTH_A_WRITER + 2
"""The first messages of a shape come from the structs, later ones are written straight: both count."""


def change_of(case: str, dialect: str) -> ObjectChange:
    """As a gateway of that dialect commits it."""
    found = CHANGES[case]
    if DIALECTS[dialect].creations_are_puts and found.operation in _CALLED_PUTS:
        return msgspec.structs.replace(found, operation=Operation.PUT)
    return found


_CALLED_PUTS = {Operation.POST, Operation.COMPLETE_MULTIPART_UPLOAD}


def asks_before_image(case: str) -> bool:
    """Whether the topics of this case ask for the state before a removal."""
    return case.endswith(BEFORE_IMAGE)


def composed(case: str, dialect: str, *, name: str = "", **attributes: str) -> Message:
    """The message of the case, for a topic with these attributes."""
    if asks_before_image(case):
        attributes["before-image"] = "true"
    installation = Installation(DIALECTS[dialect], SYSTEM_UUID, name)
    mine = topic(OpaqueData="mine", **attributes)
    subscription = Subscription(rule(id="ObjectEvents"), mine, installation)
    read, is_plain = read_change(encode_change(change_of(case, dialect)))
    for _ in range(REPEATS):
        message = (subscription.write if is_plain else subscription.compose)(read)
    return message


def lines(case: str, form: str) -> Iterator[bytes]:
    """The lines of that form in the golden file, without their ends, as they are composed now."""
    match form:
        case "cos":
            plain = composed(case, AWS.name, **FORMS["cos"])
            yield plain.partition_key or b""
            yield plain.body
            yield composed(case, AWS.name, name=SYSTEM_NAME, **FORMS["cos"]).body
        case "cloudevents":
            for dialect in DIALECTS:
                yield composed(case, dialect, **FORMS["cloudevents"]).body
        case "binary":
            for dialect in DIALECTS:
                message = composed(case, dialect, **FORMS["binary"])
                yield msgspec.json.encode(message.cloudevent)
                yield message.body
        case dialect:
            yield composed(case, dialect).body


def golden(case: str, form: str) -> list[bytes]:
    """The lines of that form, as the golden file has them."""
    first = first_line(form)
    return path(case).read_bytes().splitlines()[first : first + FORMATS[form]]


def first_line(form: str) -> int:
    """Where in a golden file it begins."""
    before = list(FORMATS)[: list(FORMATS).index(form)]
    return sum(FORMATS[each] for each in before)


def path(case: str) -> Path:
    """Of the golden file."""
    return FOLDER / f"{case}.jsonl"


if __name__ == "__main__":
    for file in FOLDER.glob("*.jsonl"):
        file.unlink()
    for each in CHANGES:
        written = (line + b"\n" for kind in FORMATS for line in lines(each, kind))
        path(each).write_bytes(b"".join(written))
