"""Storing an object that comes in one request."""

from functools import partial

from bucketwire.blobs import BlobWriter
from bucketwire.event.change import Origin
from bucketwire.event.name import Operation as Mutation
from bucketwire.gateway import described
from bucketwire.gateway.blob_writes import removed_if_refused, write_blob
from bucketwire.gateway.body import ObjectBody, Verified
from bucketwire.gateway.conditions import write_condition
from bucketwire.gateway.described import Description, read_description
from bucketwire.gateway.services import Call, Operation, Reply, takes
from bucketwire.metabase.values import NewObject, Segment, StoredObject


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


def new_object(
    call: Call,
    description: Description,
    verified: Verified,
    inline: bytes | None = None,
    blob: str | None = None,
) -> NewObject:
    """The object that came, with its bytes in memory or in a blob."""
    return NewObject(
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


async def _put_inline(call: Call, body: ObjectBody, description: Description) -> StoredObject:
    content = b"".join([piece async for piece in body.pieces()])
    body.digest(content)
    return await call.services.run(_commit_inline, call, description, body.verified(), content)


async def _put_blob(call: Call, body: ObjectBody, description: Description) -> StoredObject:
    await call.services.run(call.admit)  # before any of its bytes are taken
    return await write_blob(call.services, body, partial(_commit_blob, call, description))


def _commit_inline(call: Call, description: Description, verified: Verified, content: bytes) -> StoredObject:
    origin = call.admit()
    return _commit(call, origin, new_object(call, description, verified, inline=content))


def _commit_blob(
    call: Call, description: Description, verified: Verified, writer: BlobWriter
) -> StoredObject:
    origin, blob = call.admit(), writer.commit()
    with removed_if_refused(call.services.blobs, blob):
        return _commit(call, origin, new_object(call, description, verified, blob=blob))


def _commit(call: Call, origin: Origin, new: NewObject) -> StoredObject:
    objects, condition = call.services.metabase.objects, write_condition(call.input)
    return call.committed(objects.put(call.bucket, new, Mutation.PUT, origin, condition))


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
