"""Operations that change objects: put and delete."""

import asyncio

from bucketwire.blobs import BlobWriter
from bucketwire.errors import CallError, InvalidRequest, Unavailable
from bucketwire.event.name import Operation as Mutation
from bucketwire.gateway.body import ObjectBody, Verified
from bucketwire.gateway.services import Call, Operation, Reply, takes
from bucketwire.metabase.values import NewObject, Segment, StoredObject
from bucketwire.metainfo.permission import Permission

MAX_METADATA_BYTES = 2048
_CONTENT_HEADERS = (
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-language",
    "expires",
    "x-amz-website-redirect-location",
)
"""Headers that are kept as they are and given back by GET."""


async def put_object(call: Call) -> Reply:
    """Store the object in place of what had its key."""
    _check_metadata(call.input["Metadata"])
    body = ObjectBody(call.request, call.caller)
    if body.size_bytes <= call.services.settings.inline_limit_bytes:
        stored = await _put_inline(call, body)
    else:
        stored = await _put_blob(call, body)
    call.services.sweeper.wake()
    return {"ETag": f'"{stored.etag}"', **checksum_members(stored)}


async def delete_object(call: Call) -> Reply:
    """Remove the object. A key that does not exist is no error."""
    transmits = call.services.dialect.missing_delete_transmits

    def job() -> None:
        call.permit(Permission.WRITE)
        call.services.metabase.objects.delete(
            call.bucket, call.key, call.origin(), missing_transmits=transmits
        )

    await call.services.run(job)
    call.services.sweeper.wake()
    return {}


def checksum_members(stored: StoredObject) -> dict[str, str]:
    """The object's checksums, as members of an output."""
    if not stored.checksums:
        return {}
    members = {f"Checksum{name.upper()}": value for name, value in stored.checksums.items()}
    return {**members, "ChecksumType": "FULL_OBJECT"}


async def _put_inline(call: Call, body: ObjectBody) -> StoredObject:
    content = b"".join([piece async for piece in body.pieces()])
    body.digest(content)
    return await call.services.run(_commit, call, body.verified(), content, None)


async def _put_blob(call: Call, body: ObjectBody) -> StoredObject:
    """Write the bytes as they come; the object is committed once all of them are on the disk."""
    services = call.services
    await services.run(call.permit, Permission.WRITE)
    writer = await services.run(services.blobs.writer)
    try:
        async for piece in body.pieces():
            await services.run(_write, body, writer, piece)
        return await services.run(_commit_blob, call, body.verified(), writer)
    except BaseException:
        await asyncio.shield(services.run(writer.abort))
        raise


def _write(body: ObjectBody, writer: BlobWriter, piece: bytes) -> None:
    body.digest(piece)
    writer.write(piece)


def _commit_blob(call: Call, verified: Verified, writer: BlobWriter) -> StoredObject:
    name = writer.commit()
    try:
        return _commit(call, verified, None, name)
    except Unavailable:
        raise  # whether the metabase has it is not certain, so the bytes stay
    except CallError:
        call.services.blobs.remove(name)
        raise


def _commit(call: Call, verified: Verified, inline: bytes | None, blob: str | None) -> StoredObject:
    metabase, headers = call.services.metabase, call.request.headers
    call.permit(Permission.WRITE)
    new = NewObject(
        key=call.key,
        size_bytes=verified.size_bytes,
        etag=verified.etag,
        owner_id=call.user_id,
        content_type=headers.get("content-type"),
        headers=_content_headers(headers),
        metadata=call.input["Metadata"],
        checksums=verified.checksums,
        inline=inline,
        segments=(Segment(blob, verified.size_bytes),) if blob else (),
    )
    return metabase.objects.put(call.bucket, new, Mutation.PUT, call.origin())


def _content_headers(headers: dict[str, str]) -> dict[str, str]:
    kept = {name: headers[name] for name in _CONTENT_HEADERS if name in headers}
    if "content-encoding" in kept:
        codings = [coding.strip() for coding in kept.pop("content-encoding").split(",")]
        stored = [coding for coding in codings if coding and coding.lower() != "aws-chunked"]
        if stored:
            kept["content-encoding"] = ",".join(stored)
    return kept


def _check_metadata(metadata: dict[str, str]) -> None:
    size_bytes = sum(len(name) + len(text.encode()) for name, text in metadata.items())
    if size_bytes > MAX_METADATA_BYTES:
        raise InvalidRequest(
            "Your metadata headers exceed the maximum allowed metadata size",
            code="MetadataTooLarge",
            fields={"Size": str(size_bytes), "MaxSizeAllowed": str(MAX_METADATA_BYTES)},
        )


_CHECKSUMS = (
    "CRC32",
    "CRC32C",
    "CRC64NVME",
    "SHA1",
    "SHA256",
    "SHA512",
    "MD5",
    "XXHASH64",
    "XXHASH3",
    "XXHASH128",
)

OPERATIONS: dict[str, Operation] = {
    "PutObject": Operation(
        put_object,
        takes(
            "Metadata",
            "CacheControl",
            "ContentDisposition",
            "ContentEncoding",
            "ContentLanguage",
            "ContentLength",
            "ContentMD5",
            "ContentType",
            "Expires",
            "WebsiteRedirectLocation",
            "ChecksumAlgorithm",
            *(f"Checksum{name}" for name in _CHECKSUMS),
            "RequestPayer",
            "ExpectedBucketOwner",
            ACL="private",
            StorageClass="STANDARD",
        ),
    ),
    "DeleteObject": Operation(delete_object, takes("RequestPayer", "ExpectedBucketOwner")),
}
