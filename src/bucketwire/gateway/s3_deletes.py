"""Operations that delete objects: one, a version of one, or many in one request.

A version is for the owner of the bucket to delete, even where others may write.
A condition is looked at before, and the delete then goes through only for the version that was looked at.
What is not there needs no deleting, whatever the condition says.
"""

import asyncio
import zlib
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from bucketwire.errors import CallError, Denied, InvalidRequest, NotFound
from bucketwire.gateway.conditions import created_at, names_etag, precondition_failed
from bucketwire.gateway.protocol.address import check_key
from bucketwire.gateway.protocol.xml import malformed_xml
from bucketwire.gateway.services import Call, Operation, Reply, takes
from bucketwire.metabase.values import NULL_VERSION_ID, Bucket, Condition, Deleted, StoredObject
from bucketwire.metainfo.permission import Permission

MAX_KEYS = 1000
_LANES = 16
"""How many deletes of one request are under way at once, so that their commits share the disk's time."""


async def delete_object(call: Call) -> Reply:
    """Delete the object, or a version of it for good. A key that does not exist is no error."""
    asked = {"Key": call.key, **{_MEMBERS[name]: call.input[name] for name in _MEMBERS if name in call.input}}

    def job() -> Deleted:
        _check_version(call, call.permit(Permission.WRITE), asked)
        return _delete(call, asked)

    deleted = await call.services.run(job)
    call.services.sweeper.wake()
    return {"VersionId": deleted.version_id, "DeleteMarker": deleted.is_marker or None}


async def delete_objects(call: Call) -> Reply:
    """Delete many: each has its own outcome, and its own change."""
    asked = call.input["Delete"]
    objects: list[dict[str, Any]] = asked.get("Objects", [])
    if not 0 < len(objects) <= MAX_KEYS:
        raise malformed_xml()
    bucket = await call.services.run(call.permit, Permission.WRITE)
    lanes: list[list[int]] = [[] for _ in range(_LANES)]
    for number, each in enumerate(objects):  # what is asked of one key is done in the order it is asked
        lanes[zlib.crc32(each["Key"].encode()) % _LANES].append(number)
    ended = await asyncio.gather(
        *(_run_lane(call, bucket, objects, lane) for lane in lanes if lane),
        return_exceptions=True,  # so that nothing is committed any more when the call ends
    )
    call.services.sweeper.wake()
    outcomes = _together(ended)
    told = [outcomes[number] for number in range(len(objects))]
    deleted = [] if asked.get("Quiet") else [each for each in told if "Code" not in each]
    return {"Deleted": deleted, "Errors": [each for each in told if "Code" in each]}


async def _run_lane(
    call: Call, bucket: Bucket, objects: list[dict[str, Any]], numbers: Iterable[int]
) -> dict[int, dict[str, Any]]:
    async with call.services.lanes:
        return await call.services.run(_outcomes, call, bucket, objects, numbers)


def _outcomes(
    call: Call, bucket: Bucket, objects: list[dict[str, Any]], numbers: Iterable[int]
) -> dict[int, dict[str, Any]]:
    return {number: _outcome(call, bucket, objects[number]) for number in numbers}


def _together(ended: Iterable[dict[int, dict[str, Any]] | BaseException]) -> dict[int, dict[str, Any]]:
    """The outcomes of all lanes; raises what one of them has failed with."""
    outcomes: dict[int, dict[str, Any]] = {}
    for lane in ended:
        if isinstance(lane, BaseException):
            raise lane
        outcomes.update(lane)
    return outcomes


def _outcome(call: Call, bucket: Bucket, asked: dict[str, Any]) -> dict[str, Any]:
    named = {"Key": asked["Key"], "VersionId": asked.get("VersionId")}
    try:
        _check_name(asked["Key"])
        _check_version(call, bucket, asked)
        deleted = _delete(call, asked)
    except CallError as error:
        return {**named, "Code": error.code, "Message": error.message}
    if not deleted.is_marker:
        return named
    return {**named, "DeleteMarker": True, "DeleteMarkerVersionId": deleted.version_id}


def _check_name(key: str) -> None:
    """No object has such a key, and no delete marker shall."""
    if not key:
        raise InvalidRequest("The specified key must not be empty.", code="UserKeyMustBeSpecified")
    check_key(key)


def _check_version(call: Call, bucket: Bucket, asked: Mapping[str, Any]) -> None:
    """Raises if a version is named and the bucket is another's."""
    if "VersionId" in asked and call.user_id != bucket.owner_id:
        raise Denied("Access Denied")


def _delete(call: Call, asked: Mapping[str, Any]) -> Deleted:
    key, version, condition = asked["Key"], asked.get("VersionId"), Condition()
    if not asked.keys().isdisjoint(_CONDITIONS):
        current = _current(call, key, version)
        if current is None:
            return Deleted(key, version)
        _check(asked, current)
        if current.is_marker and version is None:
            return Deleted(key, current.version_id or NULL_VERSION_ID, is_marker=True)
        condition = Condition(if_version=current.version)
    deleted = call.services.metabase.objects.delete(
        call.bucket,
        key,
        call.origin(key),
        version=version,
        missing_transmits=call.services.dialect.missing_delete_transmits,
        condition=condition,
    )
    return call.committed(deleted)


def _current(call: Call, key: str, version: str | None) -> StoredObject | None:
    try:
        return call.services.metabase.objects.get(call.bucket, key, version)
    except NotFound as missing:
        if missing.code == "NoSuchBucket":
            raise
        return None


def _check(asked: Mapping[str, Any], current: StoredObject) -> None:
    """Raises PreconditionFailed unless it is what the client believes; a delete marker has no ETag."""
    if not names_etag(asked.get("ETag", "*"), "" if current.is_marker else current.etag):
        raise precondition_failed("If-Match")
    if asked.get("Size", current.size_bytes) != current.size_bytes:
        raise precondition_failed("x-amz-if-match-size")
    when: datetime = asked.get("LastModifiedTime", created_at(current))
    if when.replace(microsecond=0) != created_at(current):
        raise precondition_failed("x-amz-if-match-last-modified-time")


_CONDITIONS = frozenset({"ETag", "Size", "LastModifiedTime"})
_MEMBERS = {
    "VersionId": "VersionId",
    "IfMatch": "ETag",
    "IfMatchSize": "Size",
    "IfMatchLastModifiedTime": "LastModifiedTime",
}
"""What DeleteObject calls the members of an object in DeleteObjects."""

OPERATIONS = {
    "DeleteObject": Operation(delete_object, takes(*_MEMBERS, "RequestPayer", "ExpectedBucketOwner")),
    "DeleteObjects": Operation(
        delete_objects, takes("Delete", "ChecksumAlgorithm", "RequestPayer", "ExpectedBucketOwner")
    ),
}
