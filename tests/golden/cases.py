"""The cases behind the golden files: `make golden` writes them anew, a review reads the difference.

    <case>.<dialect>.json         the S3 message
    <case>.cos.jsonl              IBM COS: key, payload, payload of a system with a name
    <case>.cloudevents.jsonl      structured mode, one line a dialect
    <case>.binary.jsonl           binary mode, two lines a dialect: attributes, body

`put.aws.json` and `delete.aws.json` have the fields and the order of events captured from AWS
(spec, storj phase 1, appendix); `*.ceph.json` those recorded from radosgw.
"""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from bucketwire.event.change import (
    ObjectChange,
    ObjectState,
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

VERSIONED = ObjectState(
    Status.COMMITTED_VERSIONED,
    7,
    "5d41402abc4b2a76b9719d911017c592",
    "0123456789abcdef",
    metadata={"color": "red"},
    tags={"team": "blue"},
)
DESCRIBED = ObjectState(
    Status.COMMITTED_UNVERSIONED,
    7,
    "5d41402abc4b2a76b9719d911017c592",
    content_type="image/jpg",
    metadata={"mandm": "green", "foobar": "foobar value", "odd": "ä\x01=?utf-8?B?w6Q=?="},
    tags={"team": "blue", "env": "test"},
)
MARKER = ObjectState(
    Status.DELETE_MARKER_VERSIONED, 0, "d41d8cd98f00b204e9800998ecf8427e", "0123456789abcdf0"
)
NULL_MARKER = msgspec.structs.replace(MARKER, status=Status.DELETE_MARKER_UNVERSIONED, version_id=None)


def versioned(
    operation: Operation,
    *,
    new: ObjectState | None = None,
    old: ObjectState | None = None,
    previous: ObjectState | None = None,
    versioning: Versioning = Versioning.ENABLED,
) -> ObjectChange:
    """A change in a bucket with versions."""
    plain = change("video.mp4", operation)
    bucket = msgspec.structs.replace(plain.bucket, versioning=versioning)
    return msgspec.structs.replace(plain, bucket=bucket, new=new, old=old, previous=previous)


def suspended(operation: Operation, **states: ObjectState) -> ObjectChange:
    """A change in a bucket whose versioning is suspended."""
    return versioned(operation, versioning=Versioning.SUSPENDED, **states)


CHANGES: dict[str, ObjectChange] = {
    "put": change("storj-logo-mark-color.jpg", size_bytes=64908),
    "put-empty": change("empty", size_bytes=0),
    "put-odd-key": change("folder name/ä+b@c%20.txt"),
    "put-control-key": change("line\nend\x7f\u2028\ufffe\U0001f600"),
    "put-huge": change("huge", size_bytes=2**63 - 1),
    "put-described": msgspec.structs.replace(change("photo.jpg"), new=DESCRIBED),
    "post": change("form.txt", Operation.POST),
    "delete": change("video.mp4", Operation.DELETE, old=state(7)),
    "delete-described": change("photo.jpg", Operation.DELETE, old=DESCRIBED),
    "delete-before-image": change("photo.jpg", Operation.DELETE, old=DESCRIBED),
    "delete-missing": change("nothing", Operation.DELETE),
    "versioned-put": versioned(Operation.PUT, new=VERSIONED),
    "versioned-copy": versioned(Operation.COPY, new=VERSIONED),
    "versioned-multipart": versioned(
        Operation.COMPLETE_MULTIPART_UPLOAD,
        new=msgspec.structs.replace(VERSIONED, etag="9b2cf535f27731c974343645a3985328-2"),
    ),
    "versioned-delete-marker": versioned(Operation.DELETE_MARKER_CREATED, new=MARKER, previous=VERSIONED),
    "versioned-delete-marker-before-image": versioned(
        Operation.DELETE_MARKER_CREATED, new=MARKER, previous=VERSIONED
    ),
    "versioned-delete-version": versioned(Operation.DELETE, old=VERSIONED),
    "versioned-delete-null": versioned(Operation.DELETE, old=DESCRIBED),
    "versioned-delete-the-marker": versioned(Operation.DELETE, old=MARKER),
    "suspended-put": suspended(Operation.PUT, new=DESCRIBED),
    "suspended-delete-of-null": suspended(Operation.DELETE_MARKER_CREATED, new=NULL_MARKER, old=state(7)),
    "suspended-delete-of-null-described": suspended(
        Operation.DELETE_MARKER_CREATED, new=NULL_MARKER, old=DESCRIBED
    ),
    "suspended-delete-of-null-marker": suspended(
        Operation.DELETE_MARKER_CREATED, new=NULL_MARKER, old=NULL_MARKER
    ),
    "suspended-delete-without-null": suspended(
        Operation.DELETE_MARKER_CREATED, new=NULL_MARKER, previous=VERSIONED
    ),
    "suspended-delete-hides-a-version": suspended(
        Operation.DELETE_MARKER_CREATED, new=NULL_MARKER, old=DESCRIBED, previous=VERSIONED
    ),
    "suspended-delete-hides-a-version-before-image": suspended(
        Operation.DELETE_MARKER_CREATED, new=NULL_MARKER, old=DESCRIBED, previous=VERSIONED
    ),
    "suspended-delete-of-null-marker-before-image": suspended(
        Operation.DELETE_MARKER_CREATED, new=NULL_MARKER, old=NULL_MARKER
    ),
    "suspended-delete-version": suspended(Operation.DELETE, old=VERSIONED),
    "suspended-delete-the-null": suspended(Operation.DELETE, old=DESCRIBED),
    "acl-put": versioned(Operation.ACL_PUT, new=VERSIONED, old=VERSIONED),
    "tagging-put": versioned(Operation.TAGGING_PUT, new=VERSIONED, old=VERSIONED),
    "tagging-delete": versioned(
        Operation.TAGGING_DELETE, new=msgspec.structs.replace(VERSIONED, tags={}), old=VERSIONED
    ),
    "expire-unversioned": change("video.mp4", Operation.EXPIRATION_DELETE, old=state(7)),
    "expire-current": versioned(Operation.EXPIRATION_DELETE_MARKER_CREATED, new=MARKER, previous=VERSIONED),
    "expire-noncurrent": versioned(Operation.EXPIRATION_DELETE, old=VERSIONED),
    "expire-marker": versioned(Operation.EXPIRATION_DELETE, old=MARKER),
}
FORMATS = (*DIALECTS, "cos", "cloudevents", "binary")
"""What there is a file of, for each case."""

REPEATS = WORTH_A_WRITER + 2
"""The first messages of a shape come from the structs, later ones are written straight: both count."""


def composed(case: str, dialect: str, *, name: str = "", **attributes: str) -> Message:
    """The message of the case, for a topic with these attributes."""
    if case.endswith("-before-image"):
        attributes["before-image"] = "true"
    installation = Installation(DIALECTS[dialect], SYSTEM_UUID, name)
    mine = topic(OpaqueData="mine", **attributes)
    subscription = Subscription(rule(id="ObjectEvents"), mine, installation)
    read, is_plain = read_change(encode_change(CHANGES[case]))
    for _ in range(REPEATS):
        message = (subscription.write if is_plain else subscription.compose)(read)
    return message


def rendered(case: str, form: str) -> bytes:
    """What the golden file has."""
    return b"".join(line + b"\n" for line in lines(case, form))


def lines(case: str, form: str) -> Iterator[bytes]:
    """The lines of the golden file, without their ends."""
    match form:
        case "cos":
            plain = composed(case, AWS.name, format="cos")
            yield plain.partition_key or b""
            yield plain.body
            yield composed(case, AWS.name, name=SYSTEM_NAME, format="cos").body
        case "cloudevents":
            for dialect in DIALECTS:
                yield composed(case, dialect, format="cloudevents").body
        case "binary":
            for dialect in DIALECTS:
                message = composed(case, dialect, format="cloudevents", **{"cloudevents-mode": "binary"})
                yield msgspec.json.encode(message.cloudevent)
                yield message.body
        case dialect:
            yield composed(case, dialect).body


def path(case: str, form: str) -> Path:
    return FOLDER / f"{case}.{form}.{'json' if form in DIALECTS else 'jsonl'}"


if __name__ == "__main__":
    for each in CHANGES:
        for kind in FORMATS:
            path(each, kind).write_bytes(rendered(each, kind))
