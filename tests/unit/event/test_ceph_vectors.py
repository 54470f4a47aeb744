"""The ceph dialect beside events that radosgw 16.2 has sent: tests/golden/ceph-vectors, as recorded.

Each recorded request is told as a change; the record must have the same fields, in the same order, with the
same values, but for those that cannot be equal (ids, times, sequencers) and those where ours does better.
"""

import json
from typing import Any

import msgspec
import pytest

from bucketwire.event.change import BucketRef, ObjectChange, ObjectState, Status, Versioning
from bucketwire.event.compose import Subscription
from bucketwire.event.dialect import CEPH
from bucketwire.event.installation import Installation
from bucketwire.event.name import Operation
from factories import change, origin, rule, topic
from golden.vectors import CEPH_VECTORS, flat

HELLO = ObjectState(Status.COMMITTED_UNVERSIONED, 5, "5d41402abc4b2a76b9719d911017c592")
DESCRIBED = msgspec.structs.replace(
    HELLO, metadata={"color": "red", "size": "XL"}, tags={"team": "blue", "env": "test"}
)
MARKER_ID = "u57Z81sJsrm02CbCh0AIgrRAHaW1nbw"
VERSION_ID = "Y5nE118yz01GLQY9gyKqyY9Gf74WtpQ"
MARKER = ObjectState(Status.DELETE_MARKER_VERSIONED, 0, "d41d8cd98f00b204e9800998ecf8427e", MARKER_ID)
VERSIONED = msgspec.structs.replace(DESCRIBED, status=Status.COMMITTED_VERSIONED, version_id=VERSION_ID)
LATER = msgspec.structs.replace(VERSIONED, size_bytes=14, etag="f084be37ed84e9d0d2a02d4d4be59745")
PLAIN, ENABLED, SUSPENDED = Versioning.UNVERSIONED, Versioning.ENABLED, Versioning.SUSPENDED


def hello(**fields: Any) -> ObjectState:
    return msgspec.structs.replace(HELLO, **fields)


def put(key: str, state: ObjectState, operation: Operation = Operation.PUT, **states: Any) -> ObjectChange:
    return msgspec.structs.replace(change(key, operation), new=state, **states)


def delete(key: str, old: ObjectState | None) -> ObjectChange:
    return change(key, Operation.DELETE, old=old)


RED = {"color": "red"}
RECORDED: dict[str, tuple[ObjectChange, Versioning]] = {
    "copy-onto-itself": (put("meta.txt", hello(metadata={"color": "blue"}), Operation.COPY), PLAIN),
    "copy-replace-metadata": (
        put("copied2", hello(metadata={"color": "green"}, tags=DESCRIBED.tags), Operation.COPY),
        PLAIN,
    ),
    "copy": (put("copied", DESCRIBED, Operation.COPY), PLAIN),
    "delete-nonexistent": (delete("nothere", None), PLAIN),
    "delete-unversioned": (delete("d1", DESCRIBED), PLAIN),
    "filter-all-three": (put("a1", hello(metadata=RED, tags={"team": "blue"})), PLAIN),
    "filter-metadata": (put("a", hello(metadata=RED)), PLAIN),
    "filter-regex": (put("abc-12", HELLO), PLAIN),
    "filter-tags": (put("a", hello(tags={"team": "blue", "o": "p"})), PLAIN),
    "multi-delete-unversioned": (delete("md-a", DESCRIBED), PLAIN),
    "multi-delete-unversioned.2": (delete("md-b", DESCRIBED), PLAIN),
    "multi-delete-unversioned.3": (delete("md-c", DESCRIBED), PLAIN),
    "multipart-complete": (
        put(
            "mp",
            hello(size_bytes=5242884, etag="30dcfd3901d1c613b7fb532281748544-2", metadata=RED),
            Operation.COMPLETE_MULTIPART_UPLOAD,
        ),
        PLAIN,
    ),
    "post-form": (
        put(
            "form.txt",
            hello(size_bytes=9, etag="457961fda857c604ea06021ffe0a8706", metadata=RED),
            Operation.POST,
        ),
        PLAIN,
    ),
    "put-empty": (put("empty", hello(size_bytes=0, etag=MARKER.etag)), PLAIN),
    "put-meta-tags": (put("meta.txt", DESCRIBED), PLAIN),
    "put-overwrite": (
        put("plain.txt", hello(size_bytes=11, etag="44997f87b891f89472b7f2bbe4e000c3"), old=HELLO),
        PLAIN,
    ),
    "put-simple": (put("plain.txt", HELLO), PLAIN),
    "put-special-key": (put("dir a/k+é&<>\"' %.txt", HELLO), PLAIN),
    "suspended-delete-of-null": (
        put(
            "o",
            msgspec.structs.replace(MARKER, version_id=None),
            Operation.DELETE_MARKER_CREATED,
            old=hello(size_bytes=14, etag="98b8d235536079ad56c4de3299680e8c"),
        ),
        SUSPENDED,
    ),
    "suspended-put": (put("o", hello(size_bytes=12, etag="a9a4a173de26c7ac0e2f173b693093bd")), SUSPENDED),
    "topic-opaque-json": (put("opaque-json-0", DESCRIBED), PLAIN),
    "versioned-delete-marker": (put("o", MARKER, Operation.DELETE_MARKER_CREATED, previous=LATER), ENABLED),
    "versioned-delete-the-marker": (delete("o", MARKER), ENABLED),
    "versioned-delete-version": (delete("o", VERSIONED), ENABLED),
    "versioned-put": (put("o", VERSIONED), ENABLED),
}
BETTER: dict[str, dict[str, str]] = {
    # newer releases tell the marker's version too
    "versioned-delete-marker": {"s3.object.versionId": MARKER_ID},
    # a delete marker was made, the answer to the client says so too
    "suspended-delete-of-null": {"eventName": "ObjectRemoved:DeleteMarkerCreated"},
}
RANDOM = {
    "awsRegion",
    "eventTime",
    "eventId",
    "requestParameters.sourceIPAddress",
    "responseElements.x-amz-request-id",
    "responseElements.x-amz-id-2",
    "s3.object.sequencer",
}


def recorded(name: str) -> dict[str, Any]:
    """The recorded event, without request headers among the metadata, and versions that are none."""
    (record,) = json.loads((CEPH_VECTORS / f"{name}.json").read_bytes())["Records"]
    fields = flat(record)
    fields["s3.object.metadata"] = [
        pair for pair in fields["s3.object.metadata"] if pair["key"].startswith("x-amz-meta-")
    ]
    if not fields["s3.object.versionId"] and "s3.object.versionId" not in BETTER.get(name, {}):
        del fields["s3.object.versionId"]
    return fields | BETTER.get(name, {})


def test_every_vector_is_compared() -> None:
    assert {path.stem for path in CEPH_VECTORS.iterdir()} == RECORDED.keys()


@pytest.mark.parametrize("name", RECORDED)
def test_a_record_is_what_radosgw_has_sent(name: str) -> None:
    wanted = recorded(name)
    told, versioning = RECORDED[name]
    bucket = BucketRef(
        wanted["s3.bucket.id"], wanted["s3.bucket.name"], "peer", "us-east-1", versioning=versioning
    )
    told = msgspec.structs.replace(told, bucket=bucket, origin=origin("peer"))
    subscription = rule(id=wanted["s3.configurationId"]), topic(OpaqueData=wanted["opaqueData"])
    message = Subscription(*subscription, Installation(CEPH)).compose(told)
    written = flat(json.loads(message.body)["Records"][0])
    assert list(written) == list(wanted)
    assert {path: written[path] for path in written.keys() - RANDOM} == {
        path: wanted[path] for path in wanted.keys() - RANDOM
    }
