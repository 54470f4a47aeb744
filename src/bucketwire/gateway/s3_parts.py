"""The parts of a multipart upload: sent, copied from another object, listed. Each is one blob."""

import re
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from io import BytesIO
from typing import Any

from bucketwire.blobs import BlobWriter, Readable
from bucketwire.errors import InvalidRequest, Unavailable
from bucketwire.gateway.blob_writes import removed_if_refused, write_blob
from bucketwire.gateway.body import PIECE_BYTES, ObjectBody, Verified
from bucketwire.gateway.checksums import ALGORITHMS, BodyDigests, Expected
from bucketwire.gateway.copy_source import found_source
from bucketwire.gateway.protocol.values import byte_offset
from bucketwire.gateway.s3_lookup import Found
from bucketwire.gateway.s3_multipart import checksum_kind, invalid_argument, page_limit, started_upload
from bucketwire.gateway.services import Call, Operation, Reply, Services, takes
from bucketwire.metabase.values import Part, StoredObject, Upload
from bucketwire.metainfo.permission import Permission

_LAST_NUMBER = 10_000
_MAX_PARTS = 1000
_RANGE = re.compile(r"bytes=(\d+)-(\d+)", re.ASCII)


async def upload_part(call: Call) -> Reply:
    """Keep a part, in place of one of its number."""
    number = _part_number(call)
    upload = await call.services.run(_upload, call)
    body = ObjectBody(call.request, call.caller, upload.checksum_algorithm)
    part = await write_blob(call.services, body, partial(_keep, call, number))
    call.services.sweeper.wake()
    return {"ETag": f'"{part.etag}"', **_checksum_members(part)}


async def upload_part_copy(call: Call) -> Reply:
    """Keep a range of another object's bytes as a part."""
    number = _part_number(call)
    found, part = await call.services.run_copy(partial(_copy, call, number))
    call.services.sweeper.wake()
    result = {"ETag": f'"{part.etag}"', "LastModified": _created(part), **_checksum_members(part)}
    return {"CopySourceVersionId": found.version_id, "CopyPartResult": result}


async def list_parts(call: Call) -> Reply:
    """A page of the parts, by number."""
    limit = page_limit(call.input.get("MaxParts", _MAX_PARTS), "max-parts", _MAX_PARTS)
    after = page_limit(call.input.get("PartNumberMarker", 0), "part-number-marker", _LAST_NUMBER)

    def job() -> Reply:
        upload = _upload(call)
        parts = call.services.metabase.uploads.parts(
            call.bucket, call.key, upload.id, after=after, limit=limit + 1
        )
        return _listing(call, upload, parts, after, limit)

    return await call.services.run(job)


def _keep(call: Call, number: int, verified: Verified, writer: BlobWriter) -> Part:
    blob = writer.commit()
    part = Part(number, verified.size_bytes, verified.etag, blob, checksums=verified.checksums)
    with removed_if_refused(call.services.blobs, blob):
        return call.services.metabase.uploads.put_part(call.bucket, call.key, call.input["UploadId"], part)


def _copy(call: Call, number: int) -> tuple[Found, Part]:
    services, upload = call.services, _upload(call)
    found = found_source(call)
    start, length = _range(call.input.get("CopySourceRange"), found.stored.size_bytes)
    expected = Expected(algorithm=upload.checksum_algorithm, promised=False)
    writer = services.blobs.writer()
    try:
        with closing(_opened(services, found.stored, start)) as source:
            verified = _copy_bytes(source, writer, length, expected)
        return found, _keep(call, number, verified, writer)
    except BaseException:
        writer.abort()
        raise


def _opened(services: Services, stored: StoredObject, start: int) -> Readable:
    if not stored.segments:
        return BytesIO((stored.inline or b"")[start:])
    try:
        return services.blobs.open_run([(each.blob, each.size_bytes) for each in stored.segments], start)
    except FileNotFoundError as problem:
        raise Unavailable("The source was replaced while it was copied. Please try again.") from problem


def _copy_bytes(source: Readable, writer: BlobWriter, length: int, expected: Expected) -> Verified:
    digests, left = BodyDigests(expected), length
    while left > 0:
        piece = source.read(min(left, PIECE_BYTES))
        if not piece:
            raise EOFError("a blob is shorter than its object")
        digests.update(piece)
        writer.write(piece)
        left -= len(piece)
    etag, checksums = digests.verified(expected)
    return Verified(length, etag, checksums)


def _range(text: str | None, size_bytes: int) -> tuple[int, int]:
    """Where the range starts and how long it is; without one, it is the whole object."""
    if text is None:
        return 0, size_bytes
    found = _RANGE.fullmatch(text)
    if found is None or byte_offset(found[1]) > byte_offset(found[2]):
        raise invalid_argument(
            "The x-amz-copy-source-range value must be of the form bytes=first-last where first and last are"
            " the zero-based offsets of the first and last bytes to copy",
            "x-amz-copy-source-range",
            text,
        )
    start, end = byte_offset(found[1]), byte_offset(found[2]) + 1
    if end > size_bytes:
        raise InvalidRequest(
            f"Range specified is not valid for source object of size: {size_bytes}",
            code="InvalidRange",
            fields={"RangeRequested": text, "ActualObjectSize": str(size_bytes)},
        )
    return start, end - start


def _part_number(call: Call) -> int:
    number: int = call.input["PartNumber"]
    if not 0 < number <= _LAST_NUMBER:
        raise invalid_argument(
            f"Part number must be an integer between 1 and {_LAST_NUMBER}, inclusive", "partNumber", number
        )
    return number


def _upload(call: Call) -> Upload:
    return started_upload(call, call.permit(Permission.WRITE))


def _listing(call: Call, upload: Upload, parts: list[Part], after: int, limit: int) -> Reply:
    shown = parts[:limit]
    owner = call.services.owner(upload.owner_id)
    return {
        "Bucket": call.bucket,
        "Key": call.key,
        "UploadId": upload.id,
        "PartNumberMarker": after,
        "NextPartNumberMarker": shown[-1].number if shown else after,
        "MaxParts": limit,
        "IsTruncated": bool(shown) and len(parts) > limit,
        "Parts": [_listed(part) for part in shown],
        "Initiator": owner,
        "Owner": owner,
        "StorageClass": "STANDARD",
        **checksum_kind(upload),
    }


def _listed(part: Part) -> dict[str, Any]:
    return {
        "PartNumber": part.number,
        "LastModified": _created(part),
        "ETag": f'"{part.etag}"',
        "Size": part.size_bytes,
        **_checksum_members(part),
    }


def _created(part: Part) -> datetime:
    return datetime.fromtimestamp(part.created_at_ns / 1e9, UTC)


def _checksum_members(part: Part) -> dict[str, str]:
    return {f"Checksum{name.upper()}": text for name, text in part.checksums.items()}


_PLAIN = ("UploadId", "RequestPayer", "ExpectedBucketOwner")

OPERATIONS = {
    "UploadPart": Operation(
        upload_part,
        takes(
            "PartNumber",
            "ContentLength",
            "ContentMD5",
            "ChecksumAlgorithm",
            *(f"Checksum{name.upper()}" for name in ALGORITHMS),
            *_PLAIN,
        ),
    ),
    "UploadPartCopy": Operation(
        upload_part_copy,
        takes(
            "PartNumber",
            "CopySource",
            "CopySourceRange",
            "CopySourceIfMatch",
            "CopySourceIfNoneMatch",
            "CopySourceIfModifiedSince",
            "CopySourceIfUnmodifiedSince",
            "ExpectedSourceBucketOwner",
            *_PLAIN,
        ),
    ),
    "ListParts": Operation(list_parts, takes("PartNumberMarker", "MaxParts", *_PLAIN)),
}
