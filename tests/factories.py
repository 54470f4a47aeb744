"""Values for tests: each factory takes only what matters to the test."""

import json

from bucketwire.event.change import BucketRef, ObjectChange, ObjectState, Origin, Status, Versioning
from bucketwire.event.message import Message
from bucketwire.event.name import Operation
from bucketwire.event.rule import Filter, Rule
from bucketwire.event.topic import Topic
from bucketwire.metabase.values import NewObject, Segment

TOPIC_ARN = "arn:aws:sns:us-east-1:000000000000:videos"


def origin(principal_id: str = "user-1") -> Origin:
    return Origin(principal_id, "192.0.2.7", "4F1D0A2B3C4D5E6F", "host-id")


def change(
    key: str = "video.mp4",
    operation: Operation = Operation.PUT,
    *,
    committed_at_ns: int = 1_763_238_280_123_456_789,
    size_bytes: int = 5,
    old: ObjectState | None = None,
    revision: int | None = None,
) -> ObjectChange:
    created = operation.value.startswith("ObjectCreated")
    return ObjectChange(
        operation=operation,
        committed_at_ns=committed_at_ns,
        bucket=BucketRef(
            "8b7bbeef9f6a192dd839a0b9a8c7f00d", "media", "owner-1", "us-east-1", Versioning.UNVERSIONED
        ),
        key=key,
        origin=origin(),
        new=state(size_bytes) if created else None,
        old=old,
        revision=revision,
    )


def state(size_bytes: int = 5, version_id: str | None = None) -> ObjectState:
    return ObjectState(
        Status.COMMITTED_UNVERSIONED, size_bytes, "5d41402abc4b2a76b9719d911017c592", version_id
    )


def rule(
    *events: str,
    id: str = "rule-1",  # noqa: A002 - the word of the field
    topic_arn: str = TOPIC_ARN,
    prefix: str = "",
    suffix: str = "",
) -> Rule:
    filters = [Filter(name, value) for name, value in (("prefix", prefix), ("suffix", suffix)) if value]
    return Rule(id, topic_arn, events or ("s3:ObjectCreated:*", "s3:ObjectRemoved:*"), tuple(filters))


def topic(endpoint: str = "http://127.0.0.1:1/", name: str = "videos", **attributes: str) -> Topic:
    arn = TOPIC_ARN.rpartition(":")[0] + f":{name}"
    return Topic(arn, name, "owner-1", {"push-endpoint": endpoint, **attributes})


def policy_for(principal: str) -> str:
    """A policy that lets them publish and nobody else."""
    statement = {"Effect": "Allow", "Principal": {"AWS": principal}, "Action": "sns:Publish", "Resource": "*"}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def message(event_id: str = "event-1", topic_arn: str = TOPIC_ARN, body: bytes = b"{}") -> Message:
    return Message(topic_arn, event_id, "video.mp4", body)


def new_object(key: str = "video.mp4", content: bytes = b"hello", *, blob: str | None = None) -> NewObject:
    return NewObject(
        key,
        len(content),
        "5d41402abc4b2a76b9719d911017c592",
        "owner-1",
        content_type="video/mp4",
        metadata={"project": "blue"},
        inline=None if blob else content,
        segments=(Segment(blob, len(content)),) if blob else (),
    )
