"""Multipart uploads under way: start, abort, list. None of this is a change."""

import secrets
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from bucketwire.errors import Denied, InvalidRequest
from bucketwire.gateway.described import TAKEN, read_description
from bucketwire.gateway.multipart_checksums import checksum_choice
from bucketwire.gateway.s3_listing import behind, marker_of
from bucketwire.gateway.services import Call, Operation, Reply, takes
from bucketwire.metabase.values import Bucket, Upload, UploadPage
from bucketwire.metainfo.permission import Permission

_MAX_UPLOADS = 1000
_ID_BYTES = 16


async def create_multipart_upload(call: Call) -> Reply:
    """Start an upload: what the object will be, but for its bytes."""
    described = read_description(call.request.headers, call.input)
    algorithm, kind = checksum_choice(call.input.get("ChecksumAlgorithm"), call.input.get("ChecksumType"))
    wanted = Upload(
        id=secrets.token_hex(_ID_BYTES),
        key=call.key,
        owner_id=call.user_id,
        created_at_ns=0,
        acl=described.acl,
        content_type=described.content_type,
        headers=described.headers,
        metadata=described.metadata,
        tags=described.tags,
        checksum_algorithm=algorithm,
        checksum_type=kind,
    )

    def job() -> Upload:
        call.permit(Permission.WRITE)
        return call.services.metabase.uploads.create(call.bucket, wanted)

    upload = await call.services.run(job)
    return {"Bucket": call.bucket, "Key": call.key, "UploadId": upload.id, **checksum_kind(upload)}


async def abort_multipart_upload(call: Call) -> Reply:
    """End the upload and drop its parts."""

    def job() -> None:
        upload = started_upload(call, call.permit(Permission.WRITE))
        call.services.metabase.uploads.abort(call.bucket, call.key, upload.id)

    await call.services.run(job)
    call.services.sweeper.wake()
    return {}


async def list_multipart_uploads(call: Call) -> Reply:
    """A page of the uploads under way, by key and then by the time of their start."""
    asked = call.input
    limit = page_limit(asked.get("MaxUploads", _MAX_UPLOADS), "max-uploads", _MAX_UPLOADS)
    encoding = asked.get("EncodingType")
    if encoding not in {None, "url"}:
        raise invalid_argument("Invalid Encoding Method specified in Request", "encoding-type", encoding)

    def job() -> Reply:
        call.permit(Permission.LIST)
        return _listing(call, _page(call, limit), limit, encoded=encoding is not None)

    return await call.services.run(job)


def started_upload(call: Call, bucket: Bucket) -> Upload:
    """The upload that the call names, if the caller started it or owns the bucket. Blocks."""
    upload = call.services.metabase.uploads.get(call.bucket, call.key, call.input["UploadId"])
    if call.user_id not in {upload.owner_id, bucket.owner_id}:
        raise Denied("Access Denied")
    return upload


def checksum_kind(upload: Upload) -> dict[str, str | None]:
    """The checksum that an upload was started with, as members of an output."""
    algorithm = upload.checksum_algorithm
    return {
        "ChecksumAlgorithm": algorithm.upper() if algorithm else None,
        "ChecksumType": upload.checksum_type,
    }


def page_limit(asked: int, name: str, most: int) -> int:
    """How many entries a page may have."""
    if asked < 0:
        raise invalid_argument(f"Argument {name} must be an integer between 0 and 2147483647", name, asked)
    return min(asked, most)


def invalid_argument(message: str, name: str, value: object) -> InvalidRequest:
    """The error for a parameter that cannot be meant."""
    return InvalidRequest(
        message, code="InvalidArgument", fields={"ArgumentName": name, "ArgumentValue": str(value)}
    )


def _page(call: Call, limit: int) -> UploadPage:
    if limit == 0:
        return UploadPage([], [])
    asked = call.input
    after = asked.get("KeyMarker", "")
    after_upload_id = asked.get("UploadIdMarker", "") if after else ""
    return call.services.metabase.uploads.page(
        call.bucket,
        prefix=asked.get("Prefix", ""),
        delimiter=asked.get("Delimiter", ""),
        after_key=after if after_upload_id else behind(asked, after),
        after_upload_id=after_upload_id,
        limit=limit,
    )


def _listing(call: Call, page: UploadPage, limit: int, *, encoded: bool) -> Reply:
    asked = call.input

    def encode(text: str | None) -> str | None:
        return quote(text, safe="/") if encoded and text else text

    return {
        "Bucket": call.bucket,
        "KeyMarker": encode(asked.get("KeyMarker", "")),
        "UploadIdMarker": asked.get("UploadIdMarker", ""),
        "NextKeyMarker": encode(marker_of(page.next_key)) if page.next_key is not None else None,
        "NextUploadIdMarker": _next_upload_id(page),
        "Prefix": encode(asked.get("Prefix", "")),
        "Delimiter": encode(asked.get("Delimiter")),
        "EncodingType": asked.get("EncodingType"),
        "MaxUploads": limit,
        "IsTruncated": page.next_key is not None,
        "Uploads": [{**_listed(call, upload), "Key": encode(upload.key)} for upload in page.uploads],
        "CommonPrefixes": [{"Prefix": encode(common)} for common in page.common_prefixes],
    }


def _next_upload_id(page: UploadPage) -> str | None:
    ends_with_upload = bool(page.uploads) and page.uploads[-1].key == page.next_key
    return page.next_upload_id if ends_with_upload else None


def _listed(call: Call, upload: Upload) -> dict[str, Any]:
    owner = call.services.owner(upload.owner_id)
    return {
        "UploadId": upload.id,
        "Initiator": owner,
        "Owner": owner,
        "StorageClass": "STANDARD",
        "Initiated": datetime.fromtimestamp(upload.created_at_ns / 1e9, UTC),
        **checksum_kind(upload),
    }


_PLAIN = ("RequestPayer", "ExpectedBucketOwner")

OPERATIONS = {
    "CreateMultipartUpload": Operation(
        create_multipart_upload, takes(*TAKEN, "ChecksumAlgorithm", "ChecksumType", *_PLAIN)
    ),
    "AbortMultipartUpload": Operation(abort_multipart_upload, takes("UploadId", *_PLAIN)),
    "ListMultipartUploads": Operation(
        list_multipart_uploads,
        takes("Prefix", "Delimiter", "KeyMarker", "UploadIdMarker", "MaxUploads", "EncodingType", *_PLAIN),
    ),
}
