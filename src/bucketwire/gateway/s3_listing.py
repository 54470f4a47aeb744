"""The listing of a bucket."""

import binascii
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from bucketwire.errors import InvalidRequest
from bucketwire.gateway.services import Call, Operation, Reply, takes
from bucketwire.metabase.values import ListedObject, Page
from bucketwire.metainfo.permission import Permission

_MAX_KEYS = 1000


async def list_objects_v2(call: Call) -> Reply:
    """A page of the bucket's keys, in the order of their UTF-8 bytes."""
    asked = call.input
    limit = _limit(asked)
    encode = _encoder(asked.get("EncodingType"))
    token = asked.get("ContinuationToken")
    after = _key_from_token(token) if token is not None else asked.get("StartAfter", "")
    prefix, delimiter = asked.get("Prefix", ""), asked.get("Delimiter", "")

    def job() -> Page:
        call.permit(Permission.LIST)
        if limit == 0:
            return Page([], [], None)
        return call.services.metabase.objects.page(
            call.bucket, prefix=prefix, delimiter=delimiter, after=after, limit=limit
        )

    page = await call.services.run(job)
    owner = {"ID": call.user_id, "DisplayName": call.caller.credentials.display_name}
    shown_owner = owner if asked.get("FetchOwner") else None
    return {
        "Name": call.bucket,
        "Prefix": encode(prefix),
        "StartAfter": encode(asked["StartAfter"]) if "StartAfter" in asked else None,
        "Delimiter": encode(delimiter) if delimiter else None,
        "MaxKeys": limit,
        "KeyCount": len(page.objects) + len(page.common_prefixes),
        "IsTruncated": page.next_after is not None,
        "EncodingType": asked.get("EncodingType"),
        "ContinuationToken": token,
        "NextContinuationToken": _token_from_key(page.next_after) if page.next_after is not None else None,
        "Contents": [_listed(each, encode, shown_owner) for each in page.objects],
        "CommonPrefixes": [{"Prefix": encode(common)} for common in page.common_prefixes],
    }


def _limit(asked: dict[str, Any]) -> int:
    limit: int = asked.get("MaxKeys", _MAX_KEYS)
    if limit < 0:
        raise _invalid("Argument maxKeys must be an integer between 0 and 2147483647", "maxKeys", str(limit))
    return min(limit, _MAX_KEYS)


def _encoder(encoding: str | None) -> Callable[[str], str]:
    if encoding is None:
        return str
    if encoding != "url":
        raise _invalid("Invalid Encoding Method specified in Request", "encoding-type", encoding)
    return lambda text: quote(text, safe="/")


def _listed(
    listed: ListedObject, encode: Callable[[str], str], owner: dict[str, str] | None
) -> dict[str, Any]:
    return {
        "Key": encode(listed.key),
        "LastModified": datetime.fromtimestamp(listed.created_at_ns / 1e9, UTC),
        "ETag": f'"{listed.etag}"',
        "Size": listed.size_bytes,
        "Owner": owner,
        "StorageClass": "STANDARD",
    }


def _token_from_key(key: str) -> str:
    return urlsafe_b64encode(key.encode()).decode()


def _key_from_token(token: str) -> str:
    try:
        return b64decode(token, altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError) as problem:
        raise _invalid(
            "The continuation token provided is incorrect", "continuation-token", token
        ) from problem


def _invalid(message: str, name: str, value: str) -> InvalidRequest:
    return InvalidRequest(
        message, code="InvalidArgument", fields={"ArgumentName": name, "ArgumentValue": value}
    )


OPERATIONS = {
    "ListObjectsV2": Operation(
        list_objects_v2,
        takes(
            "Prefix",
            "Delimiter",
            "MaxKeys",
            "ContinuationToken",
            "StartAfter",
            "EncodingType",
            "FetchOwner",
            "RequestPayer",
            "ExpectedBucketOwner",
        ),
    ),
}
