"""Who may do what with a bucket and its objects: owners everything, others what a canned ACL opens."""

from enum import StrEnum

from bucketwire.errors import Denied
from bucketwire.metabase.base import Buckets
from bucketwire.metabase.values import Bucket, StoredObject

ACL_DOCUMENT = "acl"
"""The kind under which a bucket's canned ACL is kept."""
ANONYMOUS = "anonymous"
"""The user id of a caller who has not signed."""
PRIVATE = "private"


class Permission(StrEnum):
    """What an operation needs of a bucket."""

    LIST = "list"
    """Seeing which objects there are."""
    WRITE = "write"
    """Making and deleting objects."""
    READ = "read"
    """Reading an object, which the object's own ACL decides."""
    OWN = "own"
    """Everything else: configuration, ACLs, deleting the bucket."""


_BUCKET_OPENS = {
    "public-read": {Permission.LIST},
    "public-read-write": {Permission.LIST, Permission.WRITE},
    "authenticated-read": {Permission.LIST},
}
_OBJECT_OPENS = frozenset({"public-read", "public-read-write", "authenticated-read"})
CANNED_ACLS = frozenset(
    {PRIVATE, *_BUCKET_OPENS, "aws-exec-read", "bucket-owner-read", "bucket-owner-full-control"}
)


def permitted_bucket(
    buckets: Buckets,
    name: str,
    caller_id: str,
    permission: Permission,
    expected_owner: str | None = None,
) -> Bucket:
    """The bucket, if the caller may do this with it; `NotFound`, or `Denied`."""
    bucket = buckets.get(name)
    if expected_owner not in {None, bucket.owner_id}:
        raise Denied("Access Denied")
    if caller_id == bucket.owner_id or permission is Permission.READ:
        return bucket
    acl = buckets.document(name, ACL_DOCUMENT) or PRIVATE
    if permission not in _BUCKET_OPENS.get(acl, ()) or _signed_only(acl, caller_id):
        raise Denied("Access Denied")
    return bucket


def check_object(bucket: Bucket, stored: StoredObject, caller_id: str) -> None:
    """Raise `Denied` unless the caller may read the object."""
    if caller_id in {stored.owner_id, bucket.owner_id}:
        return
    if stored.acl not in _OBJECT_OPENS or _signed_only(stored.acl, caller_id):
        raise Denied("Access Denied")


def _signed_only(acl: str, caller_id: str) -> bool:
    return acl == "authenticated-read" and caller_id == ANONYMOUS
