"""Operations that read objects: get and head, with ranges, parts and conditions."""

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass

from bucketwire.blobs import Readable
from bucketwire.errors import InvalidRequest
from bucketwire.gateway.answer import Answer
from bucketwire.gateway.conditions import created_at, not_modified
from bucketwire.gateway.protocol.values import byte_offset, http_date
from bucketwire.gateway.s3_lookup import Found, readable_object
from bucketwire.gateway.s3_objects import checksum_type
from bucketwire.gateway.services import Call, Operation, Reply, Services, takes
from bucketwire.metabase.values import StoredObject
from bucketwire.metainfo.permission import ANONYMOUS

_PIECE_BYTES = 256 * 1024
_DEFAULT_CONTENT_TYPE = "binary/octet-stream"
_RANGE = re.compile(r"bytes=(\d*)-(\d*)", re.ASCII)
_OVERRIDES = {
    "response-cache-control": "cache-control",
    "response-content-disposition": "content-disposition",
    "response-content-encoding": "content-encoding",
    "response-content-language": "content-language",
    "response-content-type": "content-type",
    "response-expires": "expires",
}


@dataclass(frozen=True, slots=True)
class Stretch:
    """The bytes of an object that are asked for."""

    start: int
    length: int
    whole: bool
    part: int | None = None
    """The part of a multipart upload that they are, counted from 0."""


async def head_object(call: Call) -> Reply:
    """What is known of the object, without its bytes."""
    found = await call.services.run(readable_object, call)
    if not_modified(call.input, found.stored):
        return Answer(304, _identity(found))
    stretch = _stretch(call, found.stored)
    return Answer(_status(stretch), _headers(call, found, stretch))


async def get_object(call: Call) -> Reply:
    """The object's bytes, or the stretch of them that is asked for."""
    found = await call.services.run(readable_object, call)
    if not_modified(call.input, found.stored):
        return Answer(304, _identity(found))
    stretch = _stretch(call, found.stored)
    if not found.stored.segments:
        content = (found.stored.inline or b"")[stretch.start : stretch.start + stretch.length]
        return Answer(_status(stretch), _headers(call, found, stretch), content)
    return await _streamed(call, found, stretch)


def is_multipart(stored: StoredObject) -> bool:
    """Whether the object came in parts, as its ETag tells; its segments are the parts then."""
    return "-" in stored.etag


async def _streamed(call: Call, found: Found, stretch: Stretch) -> Reply:
    services = call.services
    headers = _headers(call, found, stretch)
    try:
        run = [(segment.blob, segment.size_bytes) for segment in found.stored.segments]
        file = await services.run(services.blobs.open_run, run, stretch.start)
    except FileNotFoundError:
        if (await services.run(readable_object, call)).stored.segments == found.stored.segments:
            raise
        return await get_object(call)  # it was replaced since it was looked up
    return Answer(_status(stretch), headers, stream=_pieces(services, file, stretch.length))


async def _pieces(services: Services, file: Readable, length: int) -> AsyncIterator[bytes]:
    try:
        while length > 0:
            piece = await services.run(file.read, min(length, _PIECE_BYTES))
            if not piece:
                raise EOFError("a blob is shorter than its object")
            length -= len(piece)
            yield piece
    finally:
        services.threads.submit(file.close)


def _identity(found: Found) -> list[tuple[str, str]]:
    stored = found.stored
    headers = [("etag", f'"{stored.etag}"'), ("last-modified", http_date(created_at(stored)))]
    if found.version_id is not None:
        headers.append(("x-amz-version-id", found.version_id))
    return headers


def _headers(call: Call, found: Found, stretch: Stretch) -> list[tuple[str, str]]:
    stored = found.stored
    content = {"content-type": stored.content_type or _DEFAULT_CONTENT_TYPE, **stored.headers}
    content.update(_overrides(call))
    headers = [
        *_identity(found),
        ("accept-ranges", "bytes"),
        ("content-length", str(stretch.length)),
        *content.items(),
        *((f"x-amz-meta-{name}", text) for name, text in stored.metadata.items()),
    ]
    if stored.tags:
        headers.append(("x-amz-tagging-count", str(len(stored.tags))))
    if stretch.part is not None and is_multipart(stored):
        headers.append(("x-amz-mp-parts-count", str(len(stored.segments))))
    if not stretch.whole and stretch.length:
        last = stretch.start + stretch.length - 1
        headers.append(("content-range", f"bytes {stretch.start}-{last}/{stored.size_bytes}"))
    return headers + _checksums(call, stored, stretch)


def _checksums(call: Call, stored: StoredObject, stretch: Stretch) -> list[tuple[str, str]]:
    """Those of the object, or of the part that is asked for; a range of bytes has none."""
    if call.input.get("ChecksumMode", "").upper() != "ENABLED":
        return []
    if stretch.part is not None and is_multipart(stored):
        checksums = stored.segments[stretch.part].checksums
    elif stretch.whole or stretch.part is not None:
        checksums = stored.checksums
    else:
        return []
    headers = [(f"x-amz-checksum-{name}", value) for name, value in checksums.items()]
    return [*headers, ("x-amz-checksum-type", checksum_type(stored))] if headers else []


def _overrides(call: Call) -> dict[str, str]:
    """Headers that the client wants otherwise, as `response-*` parameters."""
    given = call.request.parameters
    wanted = {header: given[name] for name, header in _OVERRIDES.items() if name in given}
    if wanted and call.user_id == ANONYMOUS:
        raise InvalidRequest("Request specific response headers cannot be used for anonymous GET requests.")
    for name, text in wanted.items():
        if not text.isprintable():
            raise InvalidRequest(
                f"Provided response-{name} is not valid",
                code="InvalidArgument",
                fields={"ArgumentName": f"response-{name}", "ArgumentValue": text},
            )
    return wanted


def _status(stretch: Stretch) -> int:
    return 200 if stretch.whole else 206


def _stretch(call: Call, stored: StoredObject) -> Stretch:
    number = call.input.get("PartNumber")
    asked = call.request.headers.get("range")
    if number is None:
        return _range(asked if _range_holds(call, stored) else None, stored.size_bytes)
    if asked is not None:
        raise InvalidRequest("Cannot specify both Range header and partNumber query parameter")
    return _part(number, stored)


def _range_holds(call: Call, stored: StoredObject) -> bool:
    """Whether If-Range, if it is sent, names this very object: RFC 9110, section 13.1.5."""
    validator = call.request.headers.get("if-range")
    return validator in {None, f'"{stored.etag}"', http_date(created_at(stored))}


def _part(number: int, stored: StoredObject) -> Stretch:
    """A part of a multipart upload; what came as a whole has one part."""
    sizes = (
        [segment.size_bytes for segment in stored.segments] if is_multipart(stored) else [stored.size_bytes]
    )
    if not 1 <= number <= len(sizes):
        raise InvalidRequest(
            "The requested part number is not that of a part of the object.",
            code="InvalidPart",
            fields={"PartNumberRequested": str(number), "ActualPartCount": str(len(sizes))},
        )
    start, length = sum(sizes[: number - 1]), sizes[number - 1]
    return Stretch(start, length, whole=not is_multipart(stored), part=number - 1)


def _range(asked: str | None, size_bytes: int) -> Stretch:
    """What a Range header asks for. One that cannot be read, or asks for several, is passed over."""
    found = _RANGE.fullmatch(asked.strip()) if asked else None
    if found is None or found[0] == "bytes=-" or _backwards(found):
        return Stretch(0, size_bytes, whole=True)
    if not found[1]:
        start, end = max(size_bytes - byte_offset(found[2]), 0), size_bytes
    else:
        start = byte_offset(found[1])
        end = min(byte_offset(found[2]) + 1, size_bytes) if found[2] else size_bytes
    if start >= end:
        raise InvalidRequest(
            "The requested range is not satisfiable",
            code="InvalidRange",
            fields={"RangeRequested": found[0], "ActualObjectSize": str(size_bytes)},
            headers={"content-range": f"bytes */{size_bytes}"},
        )
    return Stretch(start, end - start, whole=False)


def _backwards(found: re.Match[str]) -> bool:
    return bool(found[1] and found[2]) and byte_offset(found[2]) < byte_offset(found[1])


_TAKES = takes(
    "VersionId",
    "PartNumber",
    "IfMatch",
    "IfNoneMatch",
    "IfModifiedSince",
    "IfUnmodifiedSince",
    "Range",
    "ResponseCacheControl",
    "ResponseContentDisposition",
    "ResponseContentEncoding",
    "ResponseContentLanguage",
    "ResponseContentType",
    "ResponseExpires",
    "RequestPayer",
    "ExpectedBucketOwner",
    "ChecksumMode",
)

OPERATIONS = {"GetObject": Operation(get_object, _TAKES), "HeadObject": Operation(head_object, _TAKES)}
