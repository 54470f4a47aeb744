"""Finding the object that a call may read, and what its answer tells of the version."""

from dataclasses import dataclass

from bucketwire.errors import CallError, InvalidRequest, NotFound
from bucketwire.event.change import Versioning
from bucketwire.gateway.conditions import created_at
from bucketwire.gateway.protocol.values import http_date
from bucketwire.gateway.services import Call
from bucketwire.metabase.values import NULL_VERSION_ID, Bucket, StoredObject
from bucketwire.metainfo.permission import Permission, check_object, permitted_bucket


@dataclass(frozen=True, slots=True)
class Found:
    """An object, in its bucket."""

    bucket: Bucket
    stored: StoredObject

    @property
    def version_id(self) -> str | None:
        """As an answer tells it: nothing where there has never been versioning."""
        if self.bucket.versioning is Versioning.UNVERSIONED:
            return None
        return self.stored.version_id or NULL_VERSION_ID


def readable_object(call: Call) -> Found:
    """The object that the call names, if the caller may read it. Blocks."""
    return readable_version(call, call.permit(Permission.READ), call.key, call.input.get("VersionId"))


def readable_version(call: Call, bucket: Bucket, key: str, version: str | None) -> Found:
    """The object, or its version, if the caller may read it: whether it is missing is for those who may list.

    A delete marker is NoSuchKey, or MethodNotAllowed when it was named. Blocks.
    """
    try:
        found = Found(bucket, call.services.metabase.objects.get(bucket.name, key, version))
    except NotFound:
        permitted_bucket(call.services.metabase.buckets, bucket.name, call.user_id, Permission.LIST)
        raise
    if found.stored.is_marker:
        permitted_bucket(call.services.metabase.buckets, bucket.name, call.user_id, Permission.LIST)
        raise _deleted(found, named=version is not None)
    check_object(bucket, found.stored, call.user_id)
    return found


def _deleted(found: Found, *, named: bool) -> CallError:
    headers = {"x-amz-delete-marker": "true", "x-amz-version-id": found.version_id or NULL_VERSION_ID}
    if named:
        return InvalidRequest(
            "The specified method is not allowed against this resource.",
            code="MethodNotAllowed",
            fields={"Method": "GET", "ResourceType": "DeleteMarker"},
            headers={**headers, "allow": "DELETE", "last-modified": http_date(created_at(found.stored))},
        )
    return NotFound(
        "The specified key does not exist.",
        code="NoSuchKey",
        fields={"Key": found.stored.key},
        headers=headers,
    )
