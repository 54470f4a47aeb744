"""ACLs of buckets and objects: canned ones, by name or by the grants that they stand for."""

import re
from collections.abc import Mapping
from typing import Any

from bucketwire.errors import InvalidRequest, NotFound
from bucketwire.gateway.protocol.faults import not_implemented
from bucketwire.gateway.services import Call, Operation, Reply, takes
from bucketwire.gateway.unchanged import on_what_was_checked
from bucketwire.metabase.mutations import no_such_key
from bucketwire.metabase.values import Bucket, Condition, StoredObject
from bucketwire.metainfo.acl import Grant, acl_of, checked_acl, grants_of
from bucketwire.metainfo.permission import (
    ACL_DOCUMENT,
    PRIVATE,
    Permission,
    check_new_acl,
    check_object_owner,
)

GRANT_HEADERS = {
    "GrantFullControl": "FULL_CONTROL",
    "GrantRead": "READ",
    "GrantReadACP": "READ_ACP",
    "GrantWrite": "WRITE",
    "GrantWriteACP": "WRITE_ACP",
}
_GRANTEE = re.compile(r'(id|uri|emailAddress)\s*+=\s*+"?([^"]++)"?')
"""Its repeats give nothing back, or long runs of spaces would take hours."""
_PERMISSIONS = frozenset(GRANT_HEADERS.values())


def header_acl(asked: Mapping[str, Any], owner_id: str, bucket_owner_id: str) -> str | None:
    """The canned ACL that the headers of a request name or spell out; None when they do not."""
    granted = [(member, asked[member]) for member in GRANT_HEADERS if member in asked]
    if "ACL" not in asked:
        if not granted:
            return None
        grants = [Grant(each, GRANT_HEADERS[member]) for member, text in granted for each in _grantees(text)]
        return _canned([Grant(owner_id, "FULL_CONTROL"), *grants], owner_id, bucket_owner_id)
    if granted:
        raise InvalidRequest("Specifying both Canned ACLs and Header Grants is not allowed")
    return checked_acl(asked["ACL"])


def owned_object(call: Call) -> StoredObject:
    """The object that is named, if its ACL and tags are the caller's to see and to set. Blocks."""
    bucket = call.permit(Permission.READ)
    version = call.input.get("VersionId")
    try:
        stored = call.services.metabase.objects.get(call.bucket, call.key, version)
    except NotFound:
        call.permit(Permission.LIST)  # who may not list must not learn that it is missing
        raise
    check_object_owner(bucket, stored, call.user_id)
    if stored.is_marker:
        raise no_such_key(call.key) if version is None else _marker_named()
    return stored


async def get_bucket_acl(call: Call) -> Reply:
    """Who may do what with the bucket."""

    def job() -> Reply:
        bucket = call.permit(Permission.OWN)
        acl = call.services.metabase.buckets.document(call.bucket, ACL_DOCUMENT) or PRIVATE
        return _policy(call, grants_of(acl, bucket.owner_id, bucket.owner_id), bucket.owner_id)

    return await call.services.run(job)


async def put_bucket_acl(call: Call) -> Reply:
    """Set who may do what with the bucket."""

    def job() -> None:
        bucket = call.permit(Permission.OWN)
        acl = _asked_acl(call, bucket.owner_id, bucket)
        call.services.metabase.buckets.set_document(call.bucket, ACL_DOCUMENT, acl)

    await call.services.run(job)
    return {}


async def get_object_acl(call: Call) -> Reply:
    """Who may do what with the object."""

    def job() -> Reply:
        stored, bucket = owned_object(call), call.permit(Permission.READ)
        return _policy(call, grants_of(stored.acl, stored.owner_id, bucket.owner_id), stored.owner_id)

    return await call.services.run(job)


async def put_object_acl(call: Call) -> Reply:
    """Set who may do what with the object."""

    def job() -> None:
        stored, bucket = owned_object(call), call.permit(Permission.READ)
        acl = _asked_acl(call, stored.owner_id, bucket)
        objects, version = call.services.metabase.objects, call.input.get("VersionId")
        checked = Condition(if_version=stored.version)
        call.committed(objects.set_acl(call.bucket, call.key, version, acl, call.origin(), checked))

    await call.services.run(on_what_was_checked, job)
    return {}


def _asked_acl(call: Call, owner_id: str, bucket: Bucket) -> str:
    """The canned ACL that is asked for, in the headers or in the body."""
    acl = header_acl(call.input, owner_id, bucket.owner_id)
    policy = call.input.get("AccessControlPolicy")
    if (acl is None) == (policy is None):
        raise _missing_acl() if acl is None else _acl_twice()
    if acl is None:
        acl = _policy_acl(call, policy or {}, owner_id, bucket.owner_id)
    check_new_acl(call.services.metabase.buckets, call.bucket, acl)
    return acl


def _policy_acl(call: Call, policy: Mapping[str, Any], owner_id: str, bucket_owner_id: str) -> str:
    if policy.get("Owner", {}).get("ID") is None:
        raise _malformed_acl()
    if policy["Owner"]["ID"] != owner_id:
        raise InvalidRequest("Invalid owner: the owner cannot be changed", code="InvalidArgument")
    grants = [_grant(each) for each in policy.get("Grants", [])]
    for grantee in {each.grantee for each in grants} - {owner_id, bucket_owner_id}:
        _check_grantee(call, grantee)
    return _canned(grants, owner_id, bucket_owner_id)


def _check_grantee(call: Call, grantee: str) -> None:
    """Raises unless it is a group or a user that there is."""
    if not (grantee.startswith("http:") or call.services.names.knows(grantee)):
        raise InvalidRequest(
            "Invalid id",
            code="InvalidArgument",
            fields={"ArgumentName": "CanonicalUser/ID", "ArgumentValue": grantee},
        )


def _grant(given: Mapping[str, Any]) -> Grant:
    grantee, permission = given.get("Grantee", {}), given.get("Permission")
    named = grantee.get({"CanonicalUser": "ID", "Group": "URI"}.get(grantee.get("Type"), "EmailAddress"))
    if not named or permission not in _PERMISSIONS:
        raise _malformed_acl()
    if named == grantee.get("EmailAddress"):
        raise _unknown_address()
    return Grant(named, permission)


def _grantees(text: str) -> list[str]:
    """Those named in a grant header: `id="...", uri="..."`."""
    found = [_GRANTEE.fullmatch(part.strip()) for part in text.split(",")]
    if not all(found):
        raise InvalidRequest("Argument format not recognized", code="InvalidArgument")
    if any(each[1] == "emailAddress" for each in found if each):
        raise _unknown_address()
    return [each[2] for each in found if each]


def _canned(grants: list[Grant], owner_id: str, bucket_owner_id: str) -> str:
    acl = acl_of(grants, owner_id, bucket_owner_id)
    if acl is None:
        raise not_implemented("A list of grants that equals no canned ACL")
    return acl


def _policy(call: Call, grants: list[Grant], owner_id: str) -> Reply:
    return {
        "Owner": call.services.owner(owner_id),
        "Grants": [{"Grantee": _grantee(call, each), "Permission": each.permission} for each in grants],
    }


def _grantee(call: Call, grant: Grant) -> dict[str, str]:
    if grant.grantee.startswith("http:"):
        return {"Type": "Group", "URI": grant.grantee}
    return {"Type": "CanonicalUser", **call.services.owner(grant.grantee)}


def _unknown_address() -> InvalidRequest:
    """Users have no addresses here."""
    return InvalidRequest(
        "The e-mail address you provided does not match any account on record.",
        code="UnresolvableGrantByEmailAddress",
    )


def _marker_named() -> InvalidRequest:
    return InvalidRequest(
        "The specified method is not allowed against this resource.", code="MethodNotAllowed"
    )


def _missing_acl() -> InvalidRequest:
    return InvalidRequest("Your request was missing a required header", code="MissingSecurityHeader")


def _acl_twice() -> InvalidRequest:
    return InvalidRequest("This request does not support content", code="UnexpectedContent")


def _malformed_acl() -> InvalidRequest:
    return InvalidRequest(
        "The XML you provided was not well-formed or did not validate against our published schema",
        code="MalformedACLError",
    )


_OF_AN_OBJECT = ("VersionId", "RequestPayer", "ExpectedBucketOwner")
_ASKED = ("ACL", *GRANT_HEADERS, "AccessControlPolicy", "ContentMD5", "ChecksumAlgorithm")
OPERATIONS = {
    "GetBucketAcl": Operation(get_bucket_acl, takes("ExpectedBucketOwner")),
    "PutBucketAcl": Operation(put_bucket_acl, takes(*_ASKED, "ExpectedBucketOwner")),
    "GetObjectAcl": Operation(get_object_acl, takes(*_OF_AN_OBJECT)),
    "PutObjectAcl": Operation(put_object_acl, takes(*_ASKED, *_OF_AN_OBJECT)),
}
