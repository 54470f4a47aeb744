"""Canned ACLs as the grants that they stand for, and back.

Only canned ACLs are kept: a list of grants is understood if it says the same as one of them.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from bucketwire.errors import InvalidRequest
from bucketwire.metainfo.permission import CANNED_ACLS, PRIVATE

ALL_USERS = "http://acs.amazonaws.com/groups/global/AllUsers"
AUTHENTICATED_USERS = "http://acs.amazonaws.com/groups/global/AuthenticatedUsers"

_TO_GROUPS = {
    "public-read": ((ALL_USERS, "READ"),),
    "public-read-write": ((ALL_USERS, "READ"), (ALL_USERS, "WRITE")),
    "authenticated-read": ((AUTHENTICATED_USERS, "READ"),),
}
_TO_BUCKET_OWNER = {"bucket-owner-read": "READ", "bucket-owner-full-control": "FULL_CONTROL"}


@dataclass(frozen=True, slots=True)
class Grant:
    """A permission, and who has it: a user's id, or the URI of a group."""

    grantee: str
    permission: str


def checked_acl(name: str) -> str:
    """The name, if it is one of a canned ACL; else `InvalidRequest` with InvalidArgument."""
    if name not in CANNED_ACLS:
        raise InvalidRequest(
            "The specified canned ACL is not valid",
            code="InvalidArgument",
            fields={"ArgumentName": "x-amz-acl", "ArgumentValue": name},
        )
    return name


def grants_of(acl: str, owner_id: str, bucket_owner_id: str) -> list[Grant]:
    """What the canned ACL grants on a thing of that owner: to groups first, as Ceph lists them."""
    grants = [Grant(group, permission) for group, permission in _TO_GROUPS.get(acl, ())]
    grants.append(Grant(owner_id, "FULL_CONTROL"))
    if acl in _TO_BUCKET_OWNER and bucket_owner_id != owner_id:
        grants.append(Grant(bucket_owner_id, _TO_BUCKET_OWNER[acl]))
    return grants


def acl_of(grants: Iterable[Grant], owner_id: str, bucket_owner_id: str) -> str | None:
    """The canned ACL that grants just this, if there is one."""
    wanted = set(grants)
    by_plainness = [PRIVATE, *sorted(CANNED_ACLS - {PRIVATE})]
    return next(
        (acl for acl in by_plainness if set(grants_of(acl, owner_id, bucket_owner_id)) == wanted), None
    )
