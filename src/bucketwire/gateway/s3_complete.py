"""The end of a multipart upload: one object, made of the parts that the client names. One change."""

import hashlib
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from bucketwire.errors import InvalidRequest, NotFound
from bucketwire.event.change import Versioning
from bucketwire.event.name import Operation as Mutation
from bucketwire.gateway.checksums import ALGORITHMS, check_checksum
from bucketwire.gateway.conditions import write_condition
from bucketwire.gateway.multipart_checksums import COMPOSITE, object_checksum
from bucketwire.gateway.protocol.xml import malformed_xml
from bucketwire.gateway.s3_multipart import started_upload
from bucketwire.gateway.s3_objects import checksum_members
from bucketwire.gateway.services import Call, Operation, Reply, takes
from bucketwire.gateway.transport import url_of
from bucketwire.metabase.values import NewObject, Part, Segment, StoredObject, Upload
from bucketwire.metainfo.permission import Permission

MIN_PART_BYTES = 5 * 1024**2
"""Of every part but the last."""
_MAX_PARTS = 10_000


async def complete_multipart_upload(call: Call) -> Reply:
    """Make the object of the parts that are named."""
    asked = _asked_parts(call.input)
    stored, version_id = await call.services.run(_complete, call, asked)
    call.services.sweeper.wake()
    return {
        "Location": url_of(call.request, call.services.settings.trusted_proxies),
        "Bucket": call.bucket,
        "Key": call.key,
        "ETag": f'"{stored.etag}"',
        "VersionId": version_id,
        **checksum_members(stored),
    }


def _asked_parts(given: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The parts that the document names, which must be in order."""
    asked: list[dict[str, Any]] = given.get("MultipartUpload", {}).get("Parts", [])
    whole = all("PartNumber" in each and "ETag" in each for each in asked)
    if not whole or not 0 < len(asked) <= _MAX_PARTS:
        raise malformed_xml()
    numbers = [each["PartNumber"] for each in asked]
    if any(later <= earlier for earlier, later in pairwise(numbers)):
        raise InvalidRequest(
            "The list of parts was not in ascending order. The parts list must be specified in order by"
            " part number.",
            code="InvalidPartOrder",
        )
    return asked


def _complete(call: Call, asked: list[dict[str, Any]]) -> tuple[StoredObject, str | None]:
    """The object, and the version that the answer tells."""
    bucket, uploads = call.permit(Permission.WRITE), call.services.metabase.uploads
    upload_id: str = call.input["UploadId"]
    try:
        upload = started_upload(call, bucket)
    except NotFound as missing:
        stored = _completed_before(call, asked, upload_id, missing)
    else:
        present = uploads.parts(call.bucket, call.key, upload_id, after=0, limit=_MAX_PARTS)
        parts = _chosen_parts(asked, present)
        new = _new_object(upload, parts)
        _check_promises(call.input, new, upload)
        condition = write_condition(call.input)
        operation = call.created(Mutation.COMPLETE_MULTIPART_UPLOAD)
        done = uploads.complete(call.bucket, upload_id, new, parts, operation, call.origin(), condition)
        stored = call.committed(done)
    return stored, stored.version_id if bucket.versioning is Versioning.ENABLED else None


def _completed_before(
    call: Call, asked: list[dict[str, Any]], upload_id: str, missing: NotFound
) -> StoredObject:
    """A client that did not hear the answer asks again, and gets it again."""
    try:
        stored = call.services.metabase.objects.get(call.bucket, call.key)
        etag = _etag([each["ETag"].strip('"') for each in asked])
    except (NotFound, ValueError):
        raise missing from None
    if stored.etag != etag or not upload_id < f"{stored.created_at_ns:016x}":
        raise missing
    return stored


def _chosen_parts(asked: list[dict[str, Any]], present: list[Part]) -> list[Part]:
    by_number = {part.number: part for part in present}
    parts = [_chosen_part(each, by_number.get(each["PartNumber"])) for each in asked]
    for part in parts[:-1]:
        if part.size_bytes < MIN_PART_BYTES:
            raise InvalidRequest(
                "Your proposed upload is smaller than the minimum allowed size",
                code="EntityTooSmall",
                fields={
                    "ProposedSize": str(part.size_bytes),
                    "MinSizeAllowed": str(MIN_PART_BYTES),
                    "PartNumber": str(part.number),
                    "ETag": part.etag,
                },
            )
    return parts


def _chosen_part(asked: dict[str, Any], part: Part | None) -> Part:
    """The part, if it is as the client knows it."""
    given = {name: asked.get(f"Checksum{name.upper()}") for name in ALGORITHMS}
    if (
        part is None
        or part.etag != asked["ETag"].strip().strip('"')
        or any(text is not None and part.checksums.get(name) != text for name, text in given.items())
    ):
        raise InvalidRequest(
            "One or more of the specified parts could not be found. The part may not have been uploaded, or"
            " the specified entity tag may not match the part's entity tag.",
            code="InvalidPart",
            fields={"PartNumber": str(asked["PartNumber"]), "ETag": asked["ETag"]},
        )
    return part


def _new_object(upload: Upload, parts: Sequence[Part]) -> NewObject:
    algorithm = upload.checksum_algorithm
    checksum = object_checksum(parts, algorithm, upload.checksum_type or COMPOSITE) if algorithm else None
    return NewObject(
        key=upload.key,
        size_bytes=sum(part.size_bytes for part in parts),
        etag=_etag([part.etag for part in parts]),
        owner_id=upload.owner_id,
        acl=upload.acl,
        content_type=upload.content_type,
        headers=upload.headers,
        metadata=upload.metadata,
        tags=upload.tags,
        checksums={algorithm: checksum} if algorithm and checksum else {},
        segments=tuple(Segment(part.blob, part.size_bytes, part.checksums) for part in parts),
    )


def _etag(etags: Sequence[str]) -> str:
    """The digest of the parts' digests, and how many they are."""
    digests = b"".join(bytes.fromhex(etag) for etag in etags)
    return f"{hashlib.md5(digests, usedforsecurity=False).hexdigest()}-{len(etags)}"


def _check_promises(given: Mapping[str, Any], new: NewObject, upload: Upload) -> None:
    """The object is of the size, and has the checksum, that the client says."""
    if given.get("MpuObjectSize", new.size_bytes) != new.size_bytes:
        raise InvalidRequest(
            "The provided 'x-amz-mp-object-size' header value does not match what was computed."
        )
    if given.get("ChecksumType", upload.checksum_type) != upload.checksum_type:
        raise InvalidRequest(
            "The checksum type is not the one that the upload was started with.", code="BadDigest"
        )
    for name in ALGORITHMS:
        text = given.get(f"Checksum{name.upper()}")
        if text is not None:
            _check_checksum(name, text.partition("-")[0], new.checksums.get(name))


def _check_checksum(name: str, theirs: str, ours: str | None) -> None:
    check_checksum(name, theirs)
    if ours is None:
        raise InvalidRequest(f"Checksum Type mismatch occurred: the upload was not started with {name}.")
    if theirs != ours.partition("-")[0]:
        raise InvalidRequest(
            f"The {name} you specified did not match the calculated checksum.", code="BadDigest"
        )


OPERATIONS = {
    "CompleteMultipartUpload": Operation(
        complete_multipart_upload,
        takes(
            "MultipartUpload",
            "UploadId",
            "IfMatch",
            "IfNoneMatch",
            "MpuObjectSize",
            "ChecksumType",
            *(f"Checksum{name.upper()}" for name in ALGORITHMS),
            "RequestPayer",
            "ExpectedBucketOwner",
        ),
    ),
}
