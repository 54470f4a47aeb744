"""Versions: whether a bucket keeps them, and the listing of them."""

from typing import Any

from bucketwire.errors import InvalidRequest, NotFound
from bucketwire.event.change import Versioning
from bucketwire.gateway.protocol.faults import not_implemented
from bucketwire.gateway.protocol.serialize import Members
from bucketwire.gateway.protocol.xml import malformed_xml
from bucketwire.gateway.s3_listing import (
    Encode,
    behind,
    encoder,
    invalid_argument,
    listed_at,
    listing_head,
    marker_of,
    page_limit,
)
from bucketwire.gateway.services import Call, Operation, Reply, takes
from bucketwire.metabase.values import NULL_VERSION_ID, ListedObject, Page, parse_version_id
from bucketwire.metainfo.permission import Permission

_STATUSES = {"Enabled": Versioning.ENABLED, "Suspended": Versioning.SUSPENDED}
_SHOWN = {versioning: status for status, versioning in _STATUSES.items()}


async def put_bucket_versioning(call: Call) -> Reply:
    """Have the bucket keep versions, or keep no new ones."""
    asked = call.input["VersioningConfiguration"]
    if asked.get("MFADelete", "Disabled") != "Disabled":
        raise not_implemented("MfaDelete")
    if "Status" not in asked:
        raise InvalidRequest(
            "The Versioning element must be specified", code="IllegalVersioningConfigurationException"
        )
    if asked["Status"] not in _STATUSES:
        raise malformed_xml()

    def job() -> None:
        call.permit(Permission.OWN)
        call.services.metabase.buckets.set_versioning(call.bucket, _STATUSES[asked["Status"]])

    await call.services.run(job)
    return {}


async def get_bucket_versioning(call: Call) -> Reply:
    """Whether the bucket keeps versions; nothing, if it never has."""
    bucket = await call.services.run(call.permit, Permission.OWN)
    return {"Status": _SHOWN.get(bucket.versioning)}


async def list_object_versions(call: Call) -> Reply:
    """A page of versions and delete markers, by key and from the newest to the oldest."""
    return await call.services.run(_versions, call)


def _versions(call: Call) -> Reply:
    asked = call.input
    encode = encoder(asked.get("EncodingType"))
    page = _page(call)
    head = {
        **listing_head(call, encode),
        "KeyMarker": encode(asked.get("KeyMarker", "")),
        "VersionIdMarker": asked.get("VersionIdMarker", ""),
        "IsTruncated": page.next_after is not None,
        "NextKeyMarker": encode(marker_of(page.next_after)) if page.next_after is not None else None,
        "NextVersionIdMarker": _next_version_id(page),
    }
    prefixes = [{"Prefix": encode(common)} for common in page.common_prefixes]
    listed = [_listed(call, each, encode) for each in page.objects]
    return Members([*head.items(), *listed, ("CommonPrefixes", prefixes)])


def _page(call: Call) -> Page:
    asked, limit = call.input, page_limit(call.input)
    bucket = call.permit(Permission.LIST)
    after, after_version = asked.get("KeyMarker", ""), None
    if asked.get("VersionIdMarker"):
        after_version = _version(call, after, asked["VersionIdMarker"])
    if limit == 0:
        return Page([], [], None)
    return call.services.metabase.objects.versions_page(
        bucket.name,
        prefix=asked.get("Prefix", ""),
        delimiter=asked.get("Delimiter", ""),
        after=behind(asked, after) if after_version is None else after,
        after_version=after_version,
        limit=limit,
    )


def _version(call: Call, key: str, marker: str) -> int | None:
    """The version that a version id marker names; None, which is behind all of the key, if it is gone."""
    if not key:
        raise invalid_argument(
            "A version-id marker cannot be specified without a key marker.", "version-id-marker", marker
        )
    number = parse_version_id(marker)
    if number is not None:
        return number
    try:
        return call.services.metabase.objects.get(call.bucket, key, NULL_VERSION_ID).version
    except NotFound:
        return None


def _next_version_id(page: Page) -> str | None:
    if page.next_after is None or not page.objects or page.objects[-1].key != page.next_after:
        return None
    return page.objects[-1].version_id or NULL_VERSION_ID


def _listed(call: Call, listed: ListedObject, encode: Encode) -> tuple[str, list[dict[str, Any]]]:
    """The member of the output, with the one element to add to it."""
    version: dict[str, Any] = {
        "Key": encode(listed.key),
        "VersionId": listed.version_id or NULL_VERSION_ID,
        "IsLatest": listed.is_latest,
        "LastModified": listed_at(listed),
        "Owner": call.services.owner(listed.owner_id),
    }
    if listed.is_marker:
        return "DeleteMarkers", [version]
    content = {
        "ETag": f'"{listed.etag}"',
        "ChecksumAlgorithm": [name.upper() for name in listed.checksum_algorithms],
        "Size": listed.size_bytes,
        "StorageClass": "STANDARD",
    }
    return "Versions", [{**version, **content}]


OPERATIONS = {
    "PutBucketVersioning": Operation(
        put_bucket_versioning,
        takes("VersioningConfiguration", "ContentMD5", "ChecksumAlgorithm", "ExpectedBucketOwner"),
    ),
    "GetBucketVersioning": Operation(get_bucket_versioning, takes("ExpectedBucketOwner")),
    "ListObjectVersions": Operation(
        list_object_versions,
        takes(
            "Prefix",
            "Delimiter",
            "MaxKeys",
            "EncodingType",
            "KeyMarker",
            "VersionIdMarker",
            "RequestPayer",
            "ExpectedBucketOwner",
        ),
    ),
}
