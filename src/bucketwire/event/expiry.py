"""What an expiry is called by the kind of what has expired, as Ceph does.

AWS names the effect (`LifecycleExpiration:Delete`), Ceph the cause (`ObjectLifecycle:Expiration:Current`). A
rule may have been written with either.
"""

from bucketwire.event.change import ObjectChange, Versioning
from bucketwire.event.name import Operation

CURRENT = "ObjectLifecycle:Expiration:Current"
NONCURRENT = "ObjectLifecycle:Expiration:NonCurrent"
DELETE_MARKER = "ObjectLifecycle:Expiration:DeleteMarker"
EXPIRY_NAMES = (CURRENT, NONCURRENT, DELETE_MARKER)


def expiry_name(change: ObjectChange) -> str | None:
    """The name, or None for a change that is no expiry."""
    if change.operation is Operation.EXPIRATION_DELETE_MARKER_CREATED:
        return CURRENT
    if change.operation is not Operation.EXPIRATION_DELETE:
        return None
    if change.old is not None and change.old.is_marker:
        return DELETE_MARKER
    # where there are versions, the current one is hidden by a marker; only others are removed
    return CURRENT if change.bucket.versioning is Versioning.UNVERSIONED else NONCURRENT
