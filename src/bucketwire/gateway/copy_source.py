"""The object that a copy is made of: `x-amz-copy-source`, who may read it, and its conditions."""

from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

from bucketwire.errors import InvalidRequest
from bucketwire.gateway.conditions import check_copy_source
from bucketwire.gateway.s3_lookup import Found, readable_version
from bucketwire.gateway.services import Call
from bucketwire.metainfo.permission import Permission, permitted_bucket

_VERSION = "?versionId="


@dataclass(frozen=True, slots=True)
class CopySource:
    """What `x-amz-copy-source` names."""

    bucket: str
    key: str
    version: str | None = None


def parse_copy_source(text: str) -> CopySource:
    """`bucket/key` or `/bucket/key`, URL-encoded, with `?versionId=` or without."""
    path, _, version = text.partition(_VERSION)
    try:
        decoded = unquote_to_bytes(path).decode()
    except UnicodeDecodeError as problem:
        raise _invalid("x-amz-copy-source is not URL-encoded UTF-8", text) from problem
    bucket, _, key = decoded.removeprefix("/").partition("/")
    if not bucket or not key or "\0" in decoded:
        raise _invalid("Copy Source must mention the source bucket and key: sourcebucket/sourcekey", text)
    return CopySource(bucket, key, version if _VERSION in text else None)


def found_source(call: Call, permission: Permission = Permission.READ) -> Found:
    """The source of the call, if the caller may read it and its conditions hold. Blocks."""
    source = parse_copy_source(call.input["CopySource"])
    bucket = permitted_bucket(
        call.services.metabase.buckets,
        source.bucket,
        call.user_id,
        permission,
        call.input.get("ExpectedSourceBucketOwner"),
    )
    try:
        found = readable_version(call, bucket, source.key, source.version)
    except InvalidRequest as problem:
        if problem.code != "MethodNotAllowed":
            raise
        raise InvalidRequest("The version that is to be copied is a delete marker.") from problem
    check_copy_source(call.input, found.stored)
    return found


def _invalid(message: str, text: str) -> InvalidRequest:
    return InvalidRequest(
        message,
        code="InvalidArgument",
        fields={"ArgumentName": "x-amz-copy-source", "ArgumentValue": text},
    )
