"""Operations on buckets."""

from datetime import UTC, datetime
from typing import Any

from bucketwire.errors import Conflict
from bucketwire.gateway.answer import Answer
from bucketwire.gateway.protocol.faults import not_implemented
from bucketwire.gateway.protocol.serialize import location_document
from bucketwire.gateway.services import Call, Operation, Reply, takes
from bucketwire.metabase.values import Bucket
from bucketwire.metainfo.buckets import bucket_region, check_bucket_name
from bucketwire.metainfo.permission import Permission

_MAX_BUCKETS = 10_000
_UNNAMED_REGION = "us-east-1"
"""The region whose buckets have no location constraint."""


async def list_buckets(call: Call) -> Reply:
    """The caller's buckets, by name."""
    owned = await call.services.run(call.services.metabase.buckets.owned_by, call.user_id)
    prefix, region = call.input.get("Prefix", ""), call.input.get("BucketRegion")
    after = call.input.get("ContinuationToken", "")
    found = [
        bucket
        for bucket in owned
        if bucket.name.startswith(prefix) and region in {None, bucket.region} and bucket.name > after
    ]
    limit = min(max(call.input.get("MaxBuckets", _MAX_BUCKETS), 1), _MAX_BUCKETS)
    return {
        "Owner": {"ID": call.user_id, "DisplayName": call.caller.credentials.display_name},
        "Buckets": [_listed(bucket) for bucket in found[:limit]],
        "ContinuationToken": found[limit - 1].name if len(found) > limit else None,
        "Prefix": call.input.get("Prefix"),
    }


async def create_bucket(call: Call) -> Reply:
    """Make a bucket of the caller's."""
    check_bucket_name(call.bucket)
    asked = call.input.get("CreateBucketConfiguration", {})
    for member in asked.keys() - {"LocationConstraint"}:
        raise not_implemented(member)
    settings = call.services.settings
    region = bucket_region(asked.get("LocationConstraint"), settings.region)
    try:
        await call.services.run(call.services.metabase.buckets.create, call.bucket, call.user_id, region)
    except Conflict as taken:
        again = taken.code == "BucketAlreadyOwnedByYou"
        if not (again and settings.region == call.services.dialect.recreated_bucket_region):
            raise
    return {"Location": f"/{call.bucket}"}


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
        takes("CreateBucketConfiguration", ACL="private", ObjectOwnership="BucketOwnerEnforced"),
    ),
    "HeadBucket": Operation(head_bucket, takes("ExpectedBucketOwner")),
    "DeleteBucket": Operation(delete_bucket, takes("ExpectedBucketOwner")),
    "GetBucketLocation": Operation(get_bucket_location, takes("ExpectedBucketOwner")),
}
