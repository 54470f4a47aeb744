"""The cases behind the golden files: `make golden` writes them anew, a review reads the difference.

`put.aws.json` and `delete.aws.json` have the fields and the order of events captured from AWS
(spec, storj phase 1, appendix); `*.ceph.json` those recorded from radosgw.
"""

from pathlib import Path

import msgspec

from bucketwire.event.change import ObjectChange, ObjectState, Status, Versioning
from bucketwire.event.compose import compose
from bucketwire.event.dialect import DIALECTS
from bucketwire.event.installation import Installation
from bucketwire.event.name import Operation
from factories import change, rule, state, topic

FOLDER = Path(__file__).parent

VERSIONED = ObjectState(
    Status.COMMITTED_VERSIONED,
    7,
    "5d41402abc4b2a76b9719d911017c592",
    "0123456789abcdef",
    metadata={"color": "red"},
    tags={"team": "blue"},
)
MARKER = ObjectState(
    Status.DELETE_MARKER_VERSIONED, 0, "d41d8cd98f00b204e9800998ecf8427e", "0123456789abcdf0"
)


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


CHANGES: dict[str, ObjectChange] = {
    "put": change("storj-logo-mark-color.jpg", size_bytes=64908),
    "put-empty": change("empty", size_bytes=0),
    "put-odd-key": change("folder name/ä+b@c%20.txt"),
    "delete": change("video.mp4", Operation.DELETE, old=state(7)),
    "delete-missing": change("nothing", Operation.DELETE),
    "versioned-put": versioned(Operation.PUT, new=VERSIONED),
    "versioned-copy": versioned(Operation.COPY, new=VERSIONED),
    "versioned-multipart": versioned(
        Operation.COMPLETE_MULTIPART_UPLOAD,
        new=msgspec.structs.replace(VERSIONED, etag="9b2cf535f27731c974343645a3985328-2"),
    ),
    "versioned-delete-marker": versioned(Operation.DELETE_MARKER_CREATED, new=MARKER, previous=VERSIONED),
    "versioned-delete-version": versioned(Operation.DELETE, old=VERSIONED),
    "versioned-delete-the-marker": versioned(Operation.DELETE, old=MARKER),
    "suspended-delete-of-null": versioned(
        Operation.DELETE_MARKER_CREATED,
        new=msgspec.structs.replace(MARKER, status=Status.DELETE_MARKER_UNVERSIONED, version_id=None),
        old=state(7),
        versioning=Versioning.SUSPENDED,
    ),
    "tagging-put": versioned(Operation.TAGGING_PUT, new=VERSIONED, old=VERSIONED),
    "tagging-delete": versioned(
        Operation.TAGGING_DELETE, new=msgspec.structs.replace(VERSIONED, tags={}), old=VERSIONED
    ),
    "expire-unversioned": change("video.mp4", Operation.EXPIRATION_DELETE, old=state(7)),
    "expire-current": versioned(Operation.EXPIRATION_DELETE_MARKER_CREATED, new=MARKER, previous=VERSIONED),
    "expire-noncurrent": versioned(Operation.EXPIRATION_DELETE, old=VERSIONED),
    "expire-marker": versioned(Operation.EXPIRATION_DELETE, old=MARKER),
}


def rendered(case: str, dialect: str) -> bytes:
    """The body of the case's message."""
    subscription = rule(id="ObjectEvents"), topic(OpaqueData="mine")
    (message,) = compose(CHANGES[case], [subscription], Installation(DIALECTS[dialect]))
    return message.body


def path(case: str, dialect: str) -> Path:
    return FOLDER / f"{case}.{dialect}.json"


if __name__ == "__main__":
    for case in CHANGES:
        for dialect in DIALECTS:
            path(case, dialect).write_bytes(rendered(case, dialect) + b"\n")
