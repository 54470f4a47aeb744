"""Who may do what with a bucket and its objects: owners everything, others what a canned ACL opens.

Two documents of a bucket stand above its ACLs: the block of public access, and the ownership controls.
"""

from enum import StrEnum

import msgspec

from bucketwire.errors import Denied, InvalidRequest
from bucketwire.metabase.base import Buckets
from bucketwire.metabase.values import Bucket, StoredObject

ACL_DOCUMENT = "acl"
"""The kind under which a bucket's canned ACL is kept."""
BLOCK_DOCUMENT = "public-access-block"
OWNERSHIP_DOCUMENT = "ownership-controls"
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
_FOR_BUCKET_OWNER = frozenset({"bucket-owner-read", "bucket-owner-full-control"})
PUBLIC_ACLS = _OBJECT_OPENS
"""Those that open something to people whom the owner does not know."""
CANNED_ACLS = frozenset({PRIVATE, *_BUCKET_OPENS, *_FOR_BUCKET_OWNER})


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
    if caller_id == bucket.owner_id:
        return bucket
    if _public_acls(buckets, name).ignored or _acls_disabled(buckets, name):
        raise Denied("Access Denied")
    if permission is Permission.READ:
        return bucket
    acl = buckets.document(name, ACL_DOCUMENT) or PRIVATE
    if permission not in _BUCKET_OPENS.get(acl, ()) or _signed_only(acl, caller_id):
        raise Denied("Access Denied")
    return bucket


def check_object(bucket: Bucket, stored: StoredObject, caller_id: str) -> None:
    """Raise `Denied` unless the caller may read the object."""
    if _owns(bucket, stored, caller_id):
        return
    if stored.acl not in _OBJECT_OPENS or _signed_only(stored.acl, caller_id):
        raise Denied("Access Denied")


def check_object_owner(bucket: Bucket, stored: StoredObject, caller_id: str) -> None:
    """Raise `Denied` unless the caller may see and set the object's ACL and tags."""
    if not _owns(bucket, stored, caller_id):
        raise Denied("Access Denied")


def check_new_acl(buckets: Buckets, name: str, acl: str) -> None:
    """Raise unless the bucket lets itself, or an object in it, have this ACL."""
    if acl in PUBLIC_ACLS and _public_acls(buckets, name).refused:
        raise Denied("Access Denied")
    if acl not in {PRIVATE, "bucket-owner-full-control"} and _acls_disabled(buckets, name):
        raise InvalidRequest("The bucket does not allow ACLs", code="AccessControlListNotSupported")


def _owns(bucket: Bucket, stored: StoredObject, caller_id: str) -> bool:
    """Nobody owns what was written without a signature, but the owner of the bucket."""
    return caller_id == bucket.owner_id or (caller_id == stored.owner_id and caller_id != ANONYMOUS)


def _signed_only(acl: str, caller_id: str) -> bool:
    return acl == "authenticated-read" and caller_id == ANONYMOUS


class _PublicAcls(msgspec.Struct, frozen=True):
    """What the block of public access, a document in JSON, says of ACLs."""

    refused: bool = msgspec.field(default=False, name="BlockPublicAcls")
    ignored: bool = msgspec.field(default=False, name="IgnorePublicAcls")


def _public_acls(buckets: Buckets, name: str) -> _PublicAcls:
    return msgspec.json.decode(buckets.document(name, BLOCK_DOCUMENT) or "{}", type=_PublicAcls)


def _acls_disabled(buckets: Buckets, name: str) -> bool:
    return "BucketOwnerEnforced" in (buckets.document(name, OWNERSHIP_DOCUMENT) or "")
