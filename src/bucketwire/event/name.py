"""Event names: what can be subscribed to, and what a committed operation is called.

A rule holds *patterns* as the customer wrote them (`s3:ObjectCreated:*`); a change has one `Operation`,
whose value is the event name as it stands in a record (`ObjectCreated:Put`).
"""

from enum import StrEnum

PREFIX = "s3:"

EVENT_NAMES = frozenset(
    PREFIX + name
    for name in (
        "ObjectCreated:*",
        "ObjectCreated:Put",
        "ObjectCreated:Post",
        "ObjectCreated:Copy",
        "ObjectCreated:CompleteMultipartUpload",
        "ObjectRemoved:*",
        "ObjectRemoved:Delete",
        "ObjectRemoved:DeleteMarkerCreated",
        "ObjectRestore:*",
        "ObjectRestore:Post",
        "ObjectRestore:Completed",
        "ObjectRestore:Delete",
        "ReducedRedundancyLostObject",
        "Replication:*",
        "Replication:OperationFailedReplication",
        "Replication:OperationMissedThreshold",
        "Replication:OperationReplicatedAfterThreshold",
        "Replication:OperationNotTracked",
        "LifecycleTransition",
        "IntelligentTiering",
        "ObjectAcl:Put",
        "LifecycleExpiration:*",
        "LifecycleExpiration:Delete",
        "LifecycleExpiration:DeleteMarkerCreated",
        "ObjectTagging:*",
        "ObjectTagging:Put",
        "ObjectTagging:Delete",
        "ObjectAnnotation:*",
        "ObjectAnnotation:Put",
        "ObjectAnnotation:Delete",
        "ObjectRetention:Put",
    )
)
"""The patterns that may be written in a rule."""

CEPH_EVENT_NAMES = EVENT_NAMES | {
    PREFIX + name
    for name in (
        "ObjectLifecycle:*",
        "ObjectLifecycle:Expiration:*",
        "ObjectLifecycle:Expiration:Current",
        "ObjectLifecycle:Expiration:NonCurrent",
        "ObjectLifecycle:Expiration:DeleteMarker",
        "ObjectLifecycle:Expiration:AbortMultipartUpload",
    )
}
"""Likewise, where expiry is also known by its kind."""


STORJ_EVENT_NAMES = frozenset(
    PREFIX + name
    for name in (
        "ObjectCreated:*",
        "ObjectCreated:Put",
        "ObjectCreated:Copy",
        "ObjectRemoved:*",
        "ObjectRemoved:Delete",
        "ObjectRemoved:DeleteMarkerCreated",
    )
)
"""Likewise, where only the basic ones are known."""


class Operation(StrEnum):
    """What was done to an object, named as in the `eventName` of a record."""

    PUT = "ObjectCreated:Put"
    POST = "ObjectCreated:Post"
    COPY = "ObjectCreated:Copy"
    COMPLETE_MULTIPART_UPLOAD = "ObjectCreated:CompleteMultipartUpload"
    DELETE = "ObjectRemoved:Delete"
    DELETE_MARKER_CREATED = "ObjectRemoved:DeleteMarkerCreated"
    TAGGING_PUT = "ObjectTagging:Put"
    TAGGING_DELETE = "ObjectTagging:Delete"
    ACL_PUT = "ObjectAcl:Put"
    EXPIRATION_DELETE = "LifecycleExpiration:Delete"
    EXPIRATION_DELETE_MARKER_CREATED = "LifecycleExpiration:DeleteMarkerCreated"


REMOVALS = frozenset(
    {
        Operation.DELETE,
        Operation.DELETE_MARKER_CREATED,
        Operation.EXPIRATION_DELETE,
        Operation.EXPIRATION_DELETE_MARKER_CREATED,
    }
)
"""Operations after which an object is gone or hidden."""


def pattern_accepts(pattern: str, event_name: str) -> bool:
    """Whether `s3:ObjectCreated:*` and the like cover the event name."""
    name = PREFIX + event_name
    return pattern == name or (pattern.endswith("*") and name.startswith(pattern[:-1]))
