"""Storing an object that comes in one request."""

import asyncio

from bucketwire.blobs import BlobWriter
from bucketwire.errors import CallError, Unavailable
from bucketwire.event.name import Operation as Mutation
from bucketwire.gateway import described
from bucketwire.gateway.body import ObjectBody, Verified
from bucketwire.gateway.conditions import write_condition
from bucketwire.gateway.described import Description, read_description
from bucketwire.gateway.services import Call, Operation, Reply, takes
from bucketwire.metabase.values import NewObject, Segment, StoredObject
from bucketwire.metainfo.permission import Permission


async def put_object(call: Call) -> Reply:
    """Store the object in place of what had its key, or as a new version."""
    description = read_description(call.request.headers, call.input)
    body = ObjectBody(call.request, call.caller)
    if body.size_bytes <= call.services.settings.inline_limit_bytes:
        stored = await _put_inline(call, body, description)
    else:
        stored = await _put_blob(call, body, description)
    call.services.sweeper.wake()
    return {"ETag": f'"{stored.etag}"', "VersionId": stored.version_id, **checksum_members(stored)}


def checksum_members(stored: StoredObject) -> dict[str, str]:
    """The object's checksums, as members of an output."""
    if not stored.checksums:
        return {}
    members = {f"Checksum{name.upper()}": value for name, value in stored.checksums.items()}
    return {**members, "ChecksumType": checksum_type(stored)}


def checksum_type(stored: StoredObject) -> str:
    """Whether the checksums are of the bytes, or of the checksums of the parts."""
    return "COMPOSITE" if any("-" in value for value in stored.checksums.values()) else "FULL_OBJECT"


async def _put_inline(call: Call, body: ObjectBody, description: Description) -> StoredObject:
    content = b"".join([piece async for piece in body.pieces()])
    body.digest(content)
    return await call.services.run(_commit, call, body.verified(), description, content, None)


async def _put_blob(call: Call, body: ObjectBody, description: Description) -> StoredObject:
    """Write the bytes as they come; the object is committed once all of them are on the disk."""
    services = call.services
    await services.run(call.permit, Permission.WRITE)
    writer = await services.run(services.blobs.writer)
    try:
        async for piece in body.pieces():
            await services.run(_write, body, writer, piece)
        return await services.run(_commit_blob, call, body.verified(), description, writer)
    except BaseException:
        await asyncio.shield(services.run(writer.abort))
        raise


def _write(body: ObjectBody, writer: BlobWriter, piece: bytes) -> None:
    body.digest(piece)
    writer.write(piece)


def _commit_blob(
    call: Call, verified: Verified, description: Description, writer: BlobWriter
) -> StoredObject:
    name = writer.commit()
    try:
        return _commit(call, verified, description, None, name)
    except Unavailable:
        raise  # whether the metabase has it is not certain, so the bytes stay
    except CallError:
        call.services.blobs.remove(name)
        raise


def _commit(
    call: Call, verified: Verified, description: Description, inline: bytes | None, blob: str | None
) -> StoredObject:
    call.permit(Permission.WRITE)
    new = NewObject(
        key=call.key,
        size_bytes=verified.size_bytes,
        etag=verified.etag,
        owner_id=call.user_id,
        acl=description.acl,
        content_type=description.content_type,
        headers=description.headers,
        metadata=description.metadata,
        tags=description.tags,
        checksums=verified.checksums,
        inline=inline,
        segments=(Segment(blob, verified.size_bytes),) if blob else (),
    )
    objects = call.services.metabase.objects
    put = objects.put(call.bucket, new, Mutation.PUT, call.origin(), write_condition(call.input))
    return call.committed(put)


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

OPERATIONS = {
    "PutObject": Operation(
        put_object,
        takes(
            *described.TAKEN,
            "ContentLength",
            "ContentMD5",
            "ChecksumAlgorithm",
            *(f"Checksum{name}" for name in _CHECKSUMS),
            "IfMatch",
            "IfNoneMatch",
            "RequestPayer",
            "ExpectedBucketOwner",
        ),
    ),
}
