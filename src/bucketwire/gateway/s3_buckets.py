"""Operations on buckets."""

from datetime import UTC, datetime
from typing import Any

from bucketwire.errors import Conflict, Denied, InvalidRequest
from bucketwire.gateway.answer import Answer
from bucketwire.gateway.protocol.faults import not_implemented
from bucketwire.gateway.protocol.serialize import location_document
from bucketwire.gateway.s3_acl import GRANT_HEADERS, header_acl
from bucketwire.gateway.s3_bucket_documents import OWNERSHIPS, ownership_document
from bucketwire.gateway.s3_tagging import TAGS_DOCUMENT, bucket_tags_document
from bucketwire.gateway.services import Call, Operation, Reply, takes
from bucketwire.metabase.values import Bucket
from bucketwire.metainfo.buckets import bucket_region, check_bucket_name
from bucketwire.metainfo.permission import (
    ACL_DOCUMENT,
    ANONYMOUS,
    OWNERSHIP_DOCUMENT,
    PRIVATE,
    PUBLIC_ACLS,
    Permission,
)

_MAX_BUCKETS = 10_000
_UNNAMED_REGION = "us-east-1"
"""The region whose buckets have no location constraint."""


async def list_buckets(call: Call) -> Reply:
    """The caller's buckets, by name. One who has not signed has none."""

    def job() -> Reply:
        owned = call.services.metabase.buckets.owned_by(call.user_id)
        return _page(call.input, owned, call.services.owner(call.user_id))

    return await call.services.run(job)


async def create_bucket(call: Call) -> Reply:
    """Make a bucket of the caller's."""
    if call.user_id == ANONYMOUS:
        raise Denied("Access Denied")
    check_bucket_name(call.bucket)
    if call.input.get("ObjectLockEnabledForBucket"):
        raise not_implemented("x-amz-bucket-object-lock-enabled")
    await call.services.run(_create, call, _new_documents(call))
    return {"Location": f"/{call.bucket}"}


def _page(asked: dict[str, Any], owned: list[Bucket], owner: dict[str, str]) -> dict[str, Any]:
    prefix, region, after = (
        asked.get("Prefix", ""),
        asked.get("BucketRegion"),
        asked.get("ContinuationToken", ""),
    )
    found = [
        bucket
        for bucket in owned
        if bucket.name.startswith(prefix) and region in {None, bucket.region} and bucket.name > after
    ]
    limit = min(max(asked.get("MaxBuckets", _MAX_BUCKETS), 1), _MAX_BUCKETS)
    return {
        "Owner": owner,
        "Buckets": [_listed(bucket) for bucket in found[:limit]],
        "ContinuationToken": found[limit - 1].name if len(found) > limit else None,
        "Prefix": asked.get("Prefix"),
    }


def _new_documents(call: Call) -> dict[str, str]:
    """The parts of the new bucket's configuration, by kind, as they are kept."""
    documents: dict[str, str] = {}
    acl = header_acl(call.input, call.user_id, call.user_id)
    if acl is not None:
        documents[ACL_DOCUMENT] = acl
    if (ownership := call.input.get("ObjectOwnership")) is not None:
        documents[OWNERSHIP_DOCUMENT] = _checked_ownership(ownership, acl or PRIVATE)
    if tags := call.input.get("CreateBucketConfiguration", {}).get("Tags"):
        documents[TAGS_DOCUMENT] = bucket_tags_document(tags)
    return documents


def _checked_ownership(ownership: str, acl: str) -> str:
    if ownership not in OWNERSHIPS:
        raise InvalidRequest(
            "Invalid x-amz-object-ownership header",
            code="InvalidArgument",
            fields={"ArgumentName": "x-amz-object-ownership", "ArgumentValue": ownership},
        )
    if ownership == "BucketOwnerEnforced" and acl in PUBLIC_ACLS:
        raise InvalidRequest(
            "Bucket cannot have ACLs set with ObjectOwnership's BucketOwnerEnforced setting",
            code="InvalidBucketAclWithObjectOwnership",
        )
    return ownership_document(ownership)


def _create(call: Call, documents: dict[str, str]) -> None:
    """Make the bucket with its documents."""
    buckets = call.services.metabase.buckets
    asked = call.input.get("CreateBucketConfiguration", {})
    for member in asked.keys() - {"LocationConstraint", "Tags"}:
        raise not_implemented(member)
    region = bucket_region(asked.get("LocationConstraint"), call.services.settings.region)
    try:
        buckets.create(call.bucket, call.user_id, region, documents.items())
    except Conflict as taken:
        _check_recreation(call, taken, documents.get(ACL_DOCUMENT, PRIVATE))


def _check_recreation(call: Call, taken: Conflict, acl: str) -> None:
    """Making one's own bucket again is harmless in one region, if it is the same bucket."""
    services = call.services
    if taken.code != "BucketAlreadyOwnedByYou":
        raise taken
    if (services.metabase.buckets.document(call.bucket, ACL_DOCUMENT) or PRIVATE) != acl:
        raise Conflict(
            "The bucket exists with another ACL", code="BucketAlreadyExists", fields=taken.fields
        ) from taken
    if services.settings.region != services.dialect.recreated_bucket_region:
        raise taken


async def head_bucket(call: Call) -> Reply:
    """Whether the bucket exists and is the caller's."""
    return {"BucketRegion": (await _usable(call)).region}


async def delete_bucket(call: Call) -> Reply:
    """Remove an empty bucket."""

    def job() -> None:
        call.permit(Permission.OWN)
        call.services.metabase.buckets.delete(call.bucket)

    await call.services.run(job)
    return {}


async def get_bucket_location(call: Call) -> Reply:
    """The bucket's region."""
    region = (await _usable(call)).region
    document = location_document("" if region == _UNNAMED_REGION else region)
    return Answer(200, [("content-type", "application/xml")], document)


async def _usable(call: Call) -> Bucket:
    return await call.services.run(call.permit, Permission.LIST)


def _listed(bucket: Bucket) -> dict[str, Any]:
    created = datetime.fromtimestamp(bucket.created_at_ns / 1e9, UTC)
    return {"Name": bucket.name, "CreationDate": created, "BucketRegion": bucket.region}


OPERATIONS = {
    "ListBuckets": Operation(
        list_buckets, takes("MaxBuckets", "ContinuationToken", "Prefix", "BucketRegion")
    ),
    "CreateBucket": Operation(
        create_bucket,
        takes(
            "CreateBucketConfiguration",
            "ACL",
            *GRANT_HEADERS,
            "ObjectOwnership",
            "ObjectLockEnabledForBucket",
        ),
    ),
    "HeadBucket": Operation(head_bucket, takes("ExpectedBucketOwner")),
    "DeleteBucket": Operation(delete_bucket, takes("ExpectedBucketOwner")),
    "GetBucketLocation": Operation(get_bucket_location, takes("ExpectedBucketOwner")),
}
