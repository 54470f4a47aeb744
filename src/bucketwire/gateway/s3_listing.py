"""The listing of a bucket: ListObjects in both versions, and what they share with other listings."""

import binascii
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from bucketwire.errors import InvalidRequest
from bucketwire.gateway.services import Call, Operation, Reply, takes
from bucketwire.metabase.listing import LAST
from bucketwire.metabase.values import ListedObject, Page
from bucketwire.metainfo.permission import Permission

MAX_KEYS = 1000
Encode = Callable[[str], str]


async def list_objects(call: Call) -> Reply:
    """A page of the bucket's keys, as asked for by the first version of the operation."""
    return await call.services.run(_objects, call)


async def list_objects_v2(call: Call) -> Reply:
    """A page of the bucket's keys, in the order of their UTF-8 bytes."""
    return await call.services.run(_objects_v2, call)


def listing_head(call: Call, encode: Encode) -> dict[str, Any]:
    """What a listing repeats of the request."""
    asked = call.input
    return {
        "Name": call.bucket,
        "Prefix": encode(asked.get("Prefix", "")),
        "Delimiter": encode(asked["Delimiter"]) if asked.get("Delimiter") else None,
        "MaxKeys": page_limit(asked),
        "EncodingType": asked.get("EncodingType"),
    }


def page_limit(asked: dict[str, Any]) -> int:
    """How many keys a page may have."""
    limit: int = asked.get("MaxKeys", MAX_KEYS)
    if limit < 0:
        raise invalid_argument(
            "Argument maxKeys must be an integer between 0 and 2147483647", "maxKeys", str(limit)
        )
    return min(limit, MAX_KEYS)


def encoder(encoding: str | None) -> Encode:
    """How keys are written in the listing."""
    if encoding is None:
        return str
    if encoding != "url":
        raise invalid_argument("Invalid Encoding Method specified in Request", "encoding-type", encoding)
    return lambda text: quote(text, safe="/")


def behind(asked: dict[str, Any], marker: str) -> str:
    """The place behind a marker: behind all of a common prefix, if it is one."""
    prefix, delimiter = asked.get("Prefix", ""), asked.get("Delimiter", "")
    if not delimiter or not marker.startswith(prefix):
        return marker
    at = marker.find(delimiter, len(prefix))
    return marker + LAST if at >= 0 and at + len(delimiter) == len(marker) else marker


def marker_of(place: str) -> str:
    """The marker that a page ended with: a key, or a common prefix."""
    return place.removesuffix(LAST)


def listed_at(listed: ListedObject) -> datetime:
    """When it was made."""
    return datetime.fromtimestamp(listed.created_at_ns / 1e9, UTC)


def invalid_argument(message: str, name: str, value: str) -> InvalidRequest:
    """The error for a parameter that cannot be meant."""
    return InvalidRequest(
        message, code="InvalidArgument", fields={"ArgumentName": name, "ArgumentValue": value}
    )


def _objects(call: Call) -> Reply:
    asked = call.input
    encode = encoder(asked.get("EncodingType"))
    marker = asked.get("Marker", "")
    page = _page(call, behind(asked, marker))
    ended_at = page.next_after if asked.get("Delimiter") else None
    return {
        **listing_head(call, encode),
        "Prefix": asked.get("Prefix", ""),  # plain, as clients of this version take it
        "Marker": encode(marker),
        "NextMarker": encode(marker_of(ended_at)) if ended_at is not None else None,
        "IsTruncated": page.next_after is not None,
        "Contents": [_listed(call, each, encode, owner=True) for each in page.objects],
        "CommonPrefixes": [{"Prefix": encode(common)} for common in page.common_prefixes],
    }


def _objects_v2(call: Call) -> Reply:
    asked = call.input
    encode = encoder(asked.get("EncodingType"))
    token, start = asked.get("ContinuationToken"), asked.get("StartAfter")
    after = _key_from_token(token) if token else behind(asked, start or "")
    page = _page(call, after)
    owner = asked.get("FetchOwner", False)
    return {
        **listing_head(call, encode),
        "StartAfter": encode(start) if start is not None else None,
        "KeyCount": len(page.objects) + len(page.common_prefixes),
        "IsTruncated": page.next_after is not None,
        "ContinuationToken": token,
        "NextContinuationToken": _token_from_key(page.next_after) if page.next_after is not None else None,
        "Contents": [_listed(call, each, encode, owner=owner) for each in page.objects],
        "CommonPrefixes": [{"Prefix": encode(common)} for common in page.common_prefixes],
    }


def _page(call: Call, after: str) -> Page:
    limit = page_limit(call.input)
    _check_order(call)
    call.permit(Permission.LIST)
    if limit == 0:
        return Page([], [], None)
    return call.services.metabase.objects.page(
        call.bucket,
        prefix=call.input.get("Prefix", ""),
        delimiter=call.input.get("Delimiter", ""),
        after=after,
        limit=limit,
    )


def _check_order(call: Call) -> None:
    """Ceph's `allow-unordered` lets a listing be in any order, so in ours; but it goes with no delimiter."""
    if call.input.get("Delimiter") and call.request.parameters.get("allow-unordered", "").lower() == "true":
        raise invalid_argument("allow-unordered cannot be used with a delimiter", "allow-unordered", "true")


def _listed(call: Call, listed: ListedObject, encode: Encode, *, owner: bool) -> dict[str, Any]:
    return {
        "Key": encode(listed.key),
        "LastModified": listed_at(listed),
        "ETag": f'"{listed.etag}"',
        "ChecksumAlgorithm": [name.upper() for name in listed.checksum_algorithms],
        "Size": listed.size_bytes,
        "StorageClass": "STANDARD",
        "Owner": call.services.owner(listed.owner_id) if owner else None,
    }


def _token_from_key(key: str) -> str:
    return urlsafe_b64encode(key.encode()).decode()


def _key_from_token(token: str) -> str:
    try:
        return b64decode(token, altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError) as problem:
        raise invalid_argument(
            "The continuation token provided is incorrect", "continuation-token", token
        ) from problem


_TAKES = ("Prefix", "Delimiter", "MaxKeys", "EncodingType", "RequestPayer", "ExpectedBucketOwner")

OPERATIONS = {
    "ListObjects": Operation(list_objects, takes(*_TAKES, "Marker")),
    "ListObjectsV2": Operation(
        list_objects_v2, takes(*_TAKES, "ContinuationToken", "StartAfter", "FetchOwner")
    ),
}
