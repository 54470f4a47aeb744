"""Operations that read objects: get and head, with ranges and conditions."""

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from bucketwire.blobs import Readable
from bucketwire.errors import InvalidRequest
from bucketwire.gateway.answer import Answer
from bucketwire.gateway.protocol.values import http_date
from bucketwire.gateway.s3_objects import checksum_members
from bucketwire.gateway.services import Call, Operation, Reply, Services, takes
from bucketwire.metabase.values import StoredObject
from bucketwire.metainfo.permission import Permission, check_object

_PIECE_BYTES = 256 * 1024
_DEFAULT_CONTENT_TYPE = "binary/octet-stream"
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})", re.ASCII)
_OVERRIDES = {
    "response-cache-control": "cache-control",
    "response-content-disposition": "content-disposition",
    "response-content-encoding": "content-encoding",
    "response-content-language": "content-language",
    "response-content-type": "content-type",
    "response-expires": "expires",
}


@dataclass(frozen=True, slots=True)
class Part:
    """The part of an object that is asked for."""

    start: int
    length: int
    whole: bool


async def head_object(call: Call) -> Reply:
    """What is known of the object, without its bytes."""
    stored = await call.services.run(_stored, call)
    if _not_modified(call.input, stored):
        return Answer(304, _identity(stored))
    part = _part(call.request.headers.get("range"), stored.size_bytes)
    return Answer(_status(part), _headers(call, stored, part))


async def get_object(call: Call) -> Reply:
    """The object's bytes, or the range that is asked for."""
    stored = await call.services.run(_stored, call)
    if _not_modified(call.input, stored):
        return Answer(304, _identity(stored))
    part = _part(call.request.headers.get("range"), stored.size_bytes)
    if not stored.segments:
        content = (stored.inline or b"")[part.start : part.start + part.length]
        return Answer(_status(part), _headers(call, stored, part), content)
    return await _streamed(call, stored, part)


def _stored(call: Call) -> StoredObject:
    bucket = call.permit(Permission.READ)
    stored = call.services.metabase.objects.get(call.bucket, call.key)
    check_object(bucket, stored, call.user_id)
    return stored


async def _streamed(call: Call, stored: StoredObject, part: Part) -> Reply:
    services = call.services
    try:
        run = [(segment.blob, segment.size_bytes) for segment in stored.segments]
        file = await services.run(services.blobs.open_run, run, part.start)
    except FileNotFoundError:
        if (await services.run(_stored, call)).segments == stored.segments:
            raise
        return await get_object(call)  # it was replaced since it was looked up
    return Answer(_status(part), _headers(call, stored, part), stream=_pieces(services, file, part.length))


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


def _identity(stored: StoredObject) -> list[tuple[str, str]]:
    created = datetime.fromtimestamp(stored.created_at_ns // 1_000_000_000, UTC)
    return [("etag", f'"{stored.etag}"'), ("last-modified", http_date(created))]


def _headers(call: Call, stored: StoredObject, part: Part) -> list[tuple[str, str]]:
    content = {"content-type": stored.content_type or _DEFAULT_CONTENT_TYPE, **stored.headers}
    content.update(_overrides(call))
    headers = [
        *_identity(stored),
        ("accept-ranges", "bytes"),
        ("content-length", str(part.length)),
        *content.items(),
        *((f"x-amz-meta-{name}", text) for name, text in stored.metadata.items()),
    ]
    if not part.whole:
        last = part.start + part.length - 1
        headers.append(("content-range", f"bytes {part.start}-{last}/{stored.size_bytes}"))
    elif call.input.get("ChecksumMode", "").upper() == "ENABLED":
        headers.extend((f"x-amz-checksum-{name}", value) for name, value in stored.checksums.items())
        if stored.checksums:
            headers.append(("x-amz-checksum-type", checksum_members(stored)["ChecksumType"]))
    return headers


def _overrides(call: Call) -> dict[str, str]:
    """Headers that the client wants otherwise, as `response-*` parameters."""
    given = call.request.parameters
    wanted = {header: given[name] for name, header in _OVERRIDES.items() if name in given}
    for name, text in wanted.items():
        if not text.isprintable():
            raise InvalidRequest(
                f"Provided response-{name} is not valid",
                code="InvalidArgument",
                fields={"ArgumentName": f"response-{name}", "ArgumentValue": text},
            )
    return wanted


def _status(part: Part) -> int:
    return 200 if part.whole else 206


def _part(asked: str | None, size_bytes: int) -> Part:
    """The part that a Range header asks for. One that cannot be read, or asks for several, is passed over."""
    found = _RANGE.fullmatch(asked.strip()) if asked else None
    if found is None or found[0] == "bytes=-" or _backwards(found):
        return Part(0, size_bytes, whole=True)
    if not found[1]:
        start, end = max(size_bytes - int(found[2]), 0), size_bytes
    else:
        start, end = int(found[1]), min(int(found[2]) + 1, size_bytes) if found[2] else size_bytes
    if start >= end:
        raise InvalidRequest(
            "The requested range is not satisfiable",
            code="InvalidRange",
            fields={"RangeRequested": found[0], "ActualObjectSize": str(size_bytes)},
        )
    return Part(start, end - start, whole=False)


def _backwards(found: re.Match[str]) -> bool:
    return bool(found[1] and found[2]) and int(found[2]) < int(found[1])


def _not_modified(asked: dict[str, Any], stored: StoredObject) -> bool:
    """Whether the client has it already; raises PreconditionFailed when its conditions do not hold."""
    created = datetime.fromtimestamp(stored.created_at_ns // 1_000_000_000, UTC)
    if "IfMatch" in asked:
        if not _names(asked["IfMatch"], stored.etag):
            raise _precondition_failed("If-Match")
    elif "IfUnmodifiedSince" in asked and created > asked["IfUnmodifiedSince"]:
        raise _precondition_failed("If-Unmodified-Since")
    if "IfNoneMatch" in asked:
        return _names(asked["IfNoneMatch"], stored.etag)
    return "IfModifiedSince" in asked and created <= asked["IfModifiedSince"]


def _names(condition: str, etag: str) -> bool:
    tags = [tag.strip().removeprefix("W/").strip('"') for tag in condition.split(",")]
    return "*" in tags or etag in tags


def _precondition_failed(condition: str) -> InvalidRequest:
    return InvalidRequest(
        "At least one of the pre-conditions you specified did not hold",
        code="PreconditionFailed",
        fields={"Condition": condition},
    )


_TAKES = takes(
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
