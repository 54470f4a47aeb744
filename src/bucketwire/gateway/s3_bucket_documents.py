"""Parts of a bucket's configuration that clients ask for: those that are kept, and those that are never set.

What cannot be set answers as S3 does where nothing is set, so that tools can read a bucket's state.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from bucketwire.errors import NotFound
from bucketwire.gateway.protocol.xml import malformed_xml
from bucketwire.gateway.services import Call, Operation, Reply, takes
from bucketwire.metainfo.permission import (
    ACL_DOCUMENT,
    BLOCK_DOCUMENT,
    OWNERSHIP_DOCUMENT,
    PUBLIC_ACLS,
    Permission,
)

OWNERSHIPS = frozenset({"BucketOwnerEnforced", "BucketOwnerPreferred", "ObjectWriter"})
_NEVER_SET = {
    "GetBucketPolicy": ("NoSuchBucketPolicy", "The bucket policy does not exist"),
    "GetBucketCors": ("NoSuchCORSConfiguration", "The CORS configuration does not exist"),
    "GetBucketWebsite": (
        "NoSuchWebsiteConfiguration",
        "The specified bucket does not have a website configuration",
    ),
    "GetBucketEncryption": (
        "ServerSideEncryptionConfigurationNotFoundError",
        "The server side encryption configuration was not found",
    ),
    "GetBucketReplication": (
        "ReplicationConfigurationNotFoundError",
        "The replication configuration was not found",
    ),
    "GetObjectLockConfiguration": (
        "ObjectLockConfigurationNotFoundError",
        "Object Lock configuration does not exist for this bucket",
    ),
}
_EMPTY: dict[str, dict[str, Any]] = {
    "GetBucketLogging": {},
    "GetBucketAccelerateConfiguration": {},
    "GetBucketRequestPayment": {"Payer": "BucketOwner"},
    "DeleteBucketPolicy": {},
    "DeleteBucketCors": {},
    "DeleteBucketWebsite": {},
    "DeleteBucketEncryption": {},
    "DeleteBucketReplication": {},
}
"""Answers to what is never set, where that is no error."""

Answering = Callable[[Call], Awaitable[Reply]]


async def get_bucket_policy_status(call: Call) -> Reply:
    """Whether the bucket is public. Without policies, its ACL says so."""

    def job() -> Reply:
        call.permit(Permission.OWN)
        acl = call.services.metabase.buckets.document(call.bucket, ACL_DOCUMENT)
        return {"PolicyStatus": {"IsPublic": acl in PUBLIC_ACLS}}

    return await call.services.run(job)


async def put_public_access_block(call: Call) -> Reply:
    """Set what ACLs may open to the public."""
    return await _put(call, BLOCK_DOCUMENT, call.input["PublicAccessBlockConfiguration"])


async def put_bucket_ownership_controls(call: Call) -> Reply:
    """Set who owns the objects that others write."""
    controls = call.input["OwnershipControls"]
    owners = [rule["ObjectOwnership"] for rule in controls.get("Rules", [])]
    if len(owners) != 1 or owners[0] not in OWNERSHIPS:
        raise malformed_xml()
    return await _put(call, OWNERSHIP_DOCUMENT, controls)


def ownership_document(ownership: str) -> str:
    """The ownership controls that say just this, as they are kept."""
    return _text({"Rules": [{"ObjectOwnership": ownership}]})


async def _put(call: Call, kind: str, value: Any) -> Reply:
    def job() -> None:
        call.permit(Permission.OWN)
        call.services.metabase.buckets.set_document(call.bucket, kind, _text(value))

    await call.services.run(job)
    return {}


def _text(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _get(kind: str, member: str, code: str, message: str) -> Answering:
    """The operation that gives a document that is kept."""

    async def get(call: Call) -> Reply:
        def job() -> Reply:
            call.permit(Permission.OWN)
            document = call.services.metabase.buckets.document(call.bucket, kind)
            if document is None:
                raise NotFound(message, code=code, fields={"BucketName": call.bucket})
            return {member: msgspec.json.decode(document)}

        return await call.services.run(job)

    return get


def _delete(kind: str) -> Answering:
    """The operation that removes a document that is kept."""

    async def delete(call: Call) -> Reply:
        def job() -> None:
            call.permit(Permission.OWN)
            call.services.metabase.buckets.set_document(call.bucket, kind, None)

        await call.services.run(job)
        return {}

    return delete


def _never_set(code: str, message: str) -> Answering:
    async def missing(call: Call) -> Reply:
        await call.services.run(call.permit, Permission.OWN)
        raise NotFound(message, code=code, fields={"BucketName": call.bucket})

    return missing


def _empty(reply: dict[str, Any]) -> Answering:
    async def answer(call: Call) -> Reply:
        await call.services.run(call.permit, Permission.OWN)
        return reply

    return answer


_OWNER = takes("ExpectedBucketOwner")
_CHECKED = ("ContentMD5", "ChecksumAlgorithm", "ExpectedBucketOwner")
_get_block = _get(
    BLOCK_DOCUMENT,
    "PublicAccessBlockConfiguration",
    "NoSuchPublicAccessBlockConfiguration",
    "The public access block configuration was not found",
)
_get_ownership = _get(
    OWNERSHIP_DOCUMENT,
    "OwnershipControls",
    "OwnershipControlsNotFoundError",
    "The bucket ownership controls were not found",
)
OPERATIONS = {
    **{name: Operation(_never_set(*told), _OWNER) for name, told in _NEVER_SET.items()},
    **{
        name: Operation(_empty(reply), takes("ExpectedBucketOwner", "RequestPayer"))
        for name, reply in _EMPTY.items()
    },
    "GetBucketPolicyStatus": Operation(get_bucket_policy_status, _OWNER),
    "PutPublicAccessBlock": Operation(
        put_public_access_block, takes("PublicAccessBlockConfiguration", *_CHECKED)
    ),
    "GetPublicAccessBlock": Operation(_get_block, _OWNER),
    "DeletePublicAccessBlock": Operation(_delete(BLOCK_DOCUMENT), _OWNER),
    "PutBucketOwnershipControls": Operation(
        put_bucket_ownership_controls, takes("OwnershipControls", *_CHECKED)
    ),
    "GetBucketOwnershipControls": Operation(_get_ownership, _OWNER),
    "DeleteBucketOwnershipControls": Operation(_delete(OWNERSHIP_DOCUMENT), _OWNER),
}
