"""GetObjectAttributes: what is known of an object and of its parts, as a document."""

from typing import Any

from bucketwire.errors import InvalidRequest
from bucketwire.gateway.conditions import created_at
from bucketwire.gateway.s3_lookup import readable_object
from bucketwire.gateway.s3_objects import checksum_members
from bucketwire.gateway.s3_reads import is_multipart
from bucketwire.gateway.services import Call, Operation, Reply, takes
from bucketwire.metabase.values import StoredObject

_MAX_PARTS = 1000
_ATTRIBUTES = frozenset({"ETag", "Checksum", "ObjectParts", "StorageClass", "ObjectSize"})


async def get_object_attributes(call: Call) -> Reply:
    """Those of the attributes that are asked for."""
    wanted = _wanted(call.input.get("ObjectAttributes", ""))
    found = await call.services.run(readable_object, call)
    stored = found.stored
    told = {
        "ETag": stored.etag,
        "Checksum": checksum_members(stored) or None,
        "ObjectParts": _parts(call.input, stored) if is_multipart(stored) else None,
        "StorageClass": "STANDARD",
        "ObjectSize": stored.size_bytes,
    }
    shown = {name: value for name, value in told.items() if name in wanted}
    return {"LastModified": created_at(stored), "VersionId": found.version_id, **shown}


def _wanted(text: str) -> set[str]:
    names = {name for part in text.split(",") if (name := part.strip())}
    if not names or not names <= _ATTRIBUTES:
        raise InvalidRequest(
            "Invalid attribute name specified.",
            code="InvalidArgument",
            fields={"ArgumentName": "x-amz-object-attributes", "ArgumentValue": text},
        )
    return names


def _parts(asked: dict[str, Any], stored: StoredObject) -> dict[str, Any]:
    limit, after = min(asked.get("MaxParts", _MAX_PARTS), _MAX_PARTS), asked.get("PartNumberMarker", 0)
    if limit < 0 or after < 0:
        raise InvalidRequest(
            "x-amz-max-parts and x-amz-part-number-marker must not be negative", code="InvalidArgument"
        )
    page = stored.segments[after : after + limit]
    return {
        "TotalPartsCount": len(stored.segments),
        "PartNumberMarker": after,
        "NextPartNumberMarker": after + len(page),
        "MaxParts": limit,
        "IsTruncated": after + len(page) < len(stored.segments),
        "Parts": [
            {
                "PartNumber": number,
                "Size": segment.size_bytes,
                **{f"Checksum{name.upper()}": value for name, value in segment.checksums.items()},
            }
            for number, segment in enumerate(page, after + 1)
        ],
    }


OPERATIONS = {
    "GetObjectAttributes": Operation(
        get_object_attributes,
        takes(
            "ObjectAttributes",
            "VersionId",
            "MaxParts",
            "PartNumberMarker",
            "RequestPayer",
            "ExpectedBucketOwner",
        ),
    ),
}
