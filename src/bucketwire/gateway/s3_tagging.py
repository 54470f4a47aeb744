"""Tags of objects and of buckets: what a set of them may hold, and the operations on it.

Setting the tags of an object is a change, as the metabase writes it; those of a bucket are configuration.
"""

import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from bucketwire.errors import InvalidRequest, NotFound
from bucketwire.gateway.answer import Answer
from bucketwire.gateway.s3_acl import owned_object
from bucketwire.gateway.services import Call, Operation, Reply, takes
from bucketwire.gateway.unchanged import on_what_was_checked
from bucketwire.metabase.values import Condition
from bucketwire.metainfo.permission import Permission

_OBJECT_TAGS = 10
_BUCKET_TAGS = 50
_MAX_KEY = 128
_MAX_VALUE = 256
_SIGNS = frozenset("_.:/=+-@")
_RESERVED = "aws:"
TAGS_DOCUMENT = "tagging"
"""The kind under which a bucket's tags are kept."""


def parse_tagging_header(text: str) -> dict[str, str]:
    """The tags in `x-amz-tagging`: `key=value&key`, URL-encoded."""
    try:
        pairs = parse_qsl(text, keep_blank_values=True, errors="strict")
    except ValueError as problem:
        raise _bad_header(text) from problem
    if len(dict(pairs)) != len(pairs):
        raise _bad_header(text)
    return _checked(pairs, _OBJECT_TAGS)


def object_tags(tagging: Mapping[str, Any]) -> dict[str, str]:
    """The tags of a Tagging document, checked as those of an object."""
    return _checked(_pairs(tagging["TagSet"]), _OBJECT_TAGS)


def bucket_tags_document(listed: Iterable[Mapping[str, str]]) -> str:
    """The tags, checked as those of a bucket, as they are kept."""
    return msgspec.json.encode(_checked(_pairs(listed), _BUCKET_TAGS)).decode()


def tag_set(tags: Mapping[str, str]) -> list[dict[str, str]]:
    """The tags as a document lists them."""
    return [{"Key": key, "Value": value} for key, value in tags.items()]


async def put_object_tagging(call: Call) -> Reply:
    """Set the tags of an object."""
    return await _set_tags(call, object_tags(call.input["Tagging"]))


async def delete_object_tagging(call: Call) -> Reply:
    """Take all tags off an object."""
    return await _set_tags(call, {})


async def get_object_tagging(call: Call) -> Reply:
    """The tags of an object."""

    def job() -> Reply:
        stored = owned_object(call)
        return {"VersionId": stored.version_id, "TagSet": tag_set(stored.tags)}

    return await call.services.run(job)


async def put_bucket_tagging(call: Call) -> Reply:
    """Set the tags of a bucket."""
    document = bucket_tags_document(call.input["Tagging"]["TagSet"])

    def job() -> None:
        call.permit(Permission.OWN)
        call.services.metabase.buckets.set_document(call.bucket, TAGS_DOCUMENT, document)

    await call.services.run(job)
    return Answer(204, [])


async def get_bucket_tagging(call: Call) -> Reply:
    """The tags of a bucket; an empty set counts as none."""

    def job() -> Reply:
        call.permit(Permission.OWN)
        document = call.services.metabase.buckets.document(call.bucket, TAGS_DOCUMENT)
        tags = msgspec.json.decode(document or "{}", type=dict[str, str])
        if not tags:
            raise NotFound(
                "The TagSet does not exist", code="NoSuchTagSet", fields={"BucketName": call.bucket}
            )
        return {"TagSet": tag_set(tags)}

    return await call.services.run(job)


async def delete_bucket_tagging(call: Call) -> Reply:
    """Take all tags off a bucket."""

    def job() -> None:
        call.permit(Permission.OWN)
        call.services.metabase.buckets.set_document(call.bucket, TAGS_DOCUMENT, None)

    await call.services.run(job)
    return {}


async def _set_tags(call: Call, tags: dict[str, str]) -> Reply:
    version = call.input.get("VersionId")

    def job() -> Reply:
        checked = Condition(if_version=owned_object(call).version)
        objects = call.services.metabase.objects
        tagged = objects.set_tags(call.bucket, call.key, version, tags, call.origin(), checked)
        return {"VersionId": call.committed(tagged).version_id}

    return await call.services.run(on_what_was_checked, job)


def _pairs(listed: Iterable[Mapping[str, str]]) -> list[tuple[str, str]]:
    pairs = [(tag["Key"], tag["Value"]) for tag in listed]
    if len(dict(pairs)) != len(pairs):
        raise _invalid_tag("Cannot provide multiple Tags with the same key")
    return pairs


def _checked(pairs: Iterable[tuple[str, str]], limit: int) -> dict[str, str]:
    tags = dict(pairs)
    if len(tags) > limit:
        raise _invalid_tag(f"Tags cannot be greater than {limit}")
    for key, value in tags.items():
        if not 0 < len(key) <= _MAX_KEY or not _legible(key):
            raise _invalid_tag("The TagKey you have provided is invalid", TagKey=key)
        if len(value) > _MAX_VALUE or not _legible(value):
            raise _invalid_tag("The TagValue you have provided is invalid", TagKey=key, TagValue=value)
        if key.lower().startswith(_RESERVED):
            raise _invalid_tag("System tags cannot be added/updated by requester", TagKey=key)
    return tags


def _legible(text: str) -> bool:
    return all(
        sign.isalnum() or sign in _SIGNS or unicodedata.category(sign).startswith("Z") for sign in text
    )


def _invalid_tag(message: str, **fields: str) -> InvalidRequest:
    return InvalidRequest(message, code="InvalidTag", fields=fields)


def _bad_header(text: str) -> InvalidRequest:
    return InvalidRequest(
        "The header 'x-amz-tagging' shall be encoded as UTF-8 then URLEncoded URL query parameters"
        " without tag name duplicates.",
        code="InvalidArgument",
        fields={"ArgumentName": "x-amz-tagging", "ArgumentValue": text},
    )


_OF_AN_OBJECT = ("VersionId", "ExpectedBucketOwner")
OPERATIONS = {
    "PutObjectTagging": Operation(
        put_object_tagging, takes("Tagging", "ContentMD5", "ChecksumAlgorithm", *_OF_AN_OBJECT)
    ),
    "GetObjectTagging": Operation(get_object_tagging, takes(*_OF_AN_OBJECT)),
    "DeleteObjectTagging": Operation(delete_object_tagging, takes(*_OF_AN_OBJECT)),
    "PutBucketTagging": Operation(
        put_bucket_tagging, takes("Tagging", "ContentMD5", "ChecksumAlgorithm", "ExpectedBucketOwner")
    ),
    "GetBucketTagging": Operation(get_bucket_tagging, takes("ExpectedBucketOwner")),
    "DeleteBucketTagging": Operation(delete_bucket_tagging, takes("ExpectedBucketOwner")),
}
