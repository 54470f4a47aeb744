"""The aws dialect beside events that Amazon S3 has sent: tests/golden/aws-vectors.

Each is told as a change; the message must have the same fields, in the same order, with the same values, but
for the sequencer, and for the fraction of a millisecond in the time that no record tells.
"""

import json
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from bucketwire.event.change import BucketRef, ObjectChange, ObjectState, Origin, Status, Versioning
from bucketwire.event.compose import Subscription
from bucketwire.event.dialect import AWS
from bucketwire.event.formats.test_event import Trial, render_test_event
from bucketwire.event.installation import Installation
from bucketwire.event.name import Operation
from factories import change, rule, topic
from golden.vectors import AWS_VECTORS, flat

TEST_EVENT = "test-event"
SEQUENCER = "s3.object.sequencer"
LOGO = ObjectState(Status.COMMITTED_UNVERSIONED, 64908, "648edf24a9148598217c55b41c42a84a")
PAPER = ObjectState(
    Status.COMMITTED_VERSIONED,
    749643,
    "ae88c74482d6b23aa5de21a129611762",
    "rJiPdgcFaEeV2N2Us6yYU8ObkyJeEL7j",
    content_type="application/pdf",
    metadata={"color": "red"},
    tags={"team": "blue"},
)
COPIED = msgspec.structs.replace(PAPER, version_id="ggUgyNgN95Fe9pTZ0a7e.O3dDSrOYimf")
FILM = ObjectState(
    Status.COMMITTED_VERSIONED,
    276134947,
    "e30d2648a6e1c6d43d00f84006340bc2-17",
    "RpZ29eNhA3jU1YCUADX6ijqUlZuJ54VB",
)
MARKER = ObjectState(
    Status.DELETE_MARKER_VERSIONED,
    0,
    "d41d8cd98f00b204e9800998ecf8427e",
    "86iGIOikTC_a1B1ofO9rfAlEEb1ShcVy",
)
CAPTURED: dict[str, tuple[str, Operation, dict[str, ObjectState]]] = {
    "put": ("storj-logo-mark-color.jpg", Operation.PUT, {"new": LOGO}),
    "delete": ("storj-logo-mark-color.jpg", Operation.DELETE, {"old": LOGO}),
    "versioned-put": ("storjv3.pdf", Operation.PUT, {"new": PAPER}),
    "versioned-copy": ("copy/storjv3.pdf", Operation.COPY, {"new": COPIED}),
    "versioned-delete": (
        "storjv3.pdf",
        Operation.DELETE_MARKER_CREATED,
        {"new": MARKER, "previous": PAPER},
    ),
    "versioned-delete-marker": ("storjv3.pdf", Operation.DELETE, {"old": MARKER}),
    "versioned-delete-version": ("storjv3.pdf", Operation.DELETE, {"old": PAPER}),
    "versioned-multipart": (
        "bbb_sunflower_1080p_30fps_normal.mp4",
        Operation.COMPLETE_MULTIPART_UPLOAD,
        {"new": FILM},
    ),
}


def captured(name: str) -> Any:
    return json.loads((AWS_VECTORS / f"{name}.json").read_bytes())


def nanoseconds(time: str) -> int:
    """Of a time as S3 writes it; nobody is told the microseconds behind it."""
    whole, behind = time.removesuffix("Z").split(".")
    second = int(datetime.fromisoformat(whole).replace(tzinfo=UTC).timestamp())
    return second * 1_000_000_000 + int(behind) * 1_000_000 + 987_654


def told(name: str, wanted: dict[str, Any]) -> ObjectChange:
    """The change that the event is about, by the same request."""
    key, operation, states = CAPTURED[name]
    versioning = Versioning.ENABLED if name.startswith("versioned-") else Versioning.UNVERSIONED
    owner = wanted["s3.bucket.ownerIdentity.principalId"]
    return msgspec.structs.replace(
        change(key, operation, committed_at_ns=nanoseconds(wanted["eventTime"])),
        bucket=BucketRef("id", wanted["s3.bucket.name"], owner, wanted["awsRegion"], versioning),
        origin=Origin(
            wanted["userIdentity.principalId"],
            wanted["requestParameters.sourceIPAddress"],
            wanted["responseElements.x-amz-request-id"],
            wanted["responseElements.x-amz-id-2"],
        ),
        **{side: states.get(side) for side in ("new", "old", "previous")},
    )


def test_every_vector_is_compared() -> None:
    assert {path.stem for path in AWS_VECTORS.iterdir()} == {*CAPTURED, TEST_EVENT}


@pytest.mark.parametrize("name", CAPTURED)
def test_a_record_is_what_amazon_s3_has_sent(name: str) -> None:
    (record,) = captured(name)["Records"]
    wanted = flat(record)
    subscription = Subscription(rule(id=wanted["s3.configurationId"]), topic(), Installation(AWS))
    message = json.loads(subscription.compose(told(name, wanted)).body)
    assert list(message) == ["Records"]
    (written,) = (flat(each) for each in message["Records"])
    assert list(written) == list(wanted)
    assert written | {SEQUENCER: ""} == wanted | {SEQUENCER: ""}


def test_the_test_event_is_what_amazon_s3_has_sent() -> None:
    wanted = captured(TEST_EVENT)
    at_ns = nanoseconds(wanted["Time"])
    trial = Trial(wanted["Bucket"], "us-east-1", at_ns, wanted["RequestId"], wanted["HostId"])
    assert render_test_event(trial, topic(), AWS).body == json.dumps(wanted, separators=(",", ":")).encode()
