"""CopyObject, and its extension that moves.

A copy has bytes of its own: on local disks they are links, elsewhere they are written again. With
`x-bucketwire-move: true` the object itself goes to the new key, in one transaction.
"""

from base64 import b64encode
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from functools import partial
from typing import Any

import msgspec

from bucketwire.blobs import Blobs
from bucketwire.errors import Denied, InvalidRequest, Unavailable
from bucketwire.event.change import Versioning
from bucketwire.event.name import Operation as Mutation
from bucketwire.gateway import described
from bucketwire.gateway.blob_writes import removed_if_refused
from bucketwire.gateway.body import PIECE_BYTES
from bucketwire.gateway.checksums import ALGORITHMS, new_digest
from bucketwire.gateway.conditions import write_condition
from bucketwire.gateway.copy_source import CopySource, found_source, parse_copy_source
from bucketwire.gateway.described import Description, read_description
from bucketwire.gateway.protocol.faults import not_implemented
from bucketwire.gateway.s3_lookup import Found
from bucketwire.gateway.s3_objects import checksum_members
from bucketwire.gateway.services import Call, Operation, Reply, takes
from bucketwire.gateway.unchanged import on_what_was_checked
from bucketwire.metabase.values import Condition, NewObject, Segment, StoredObject
from bucketwire.metainfo.permission import ANONYMOUS, Permission, check_new_acl

MOVE_HEADER = "x-bucketwire-move"
_COPY, _REPLACE = "COPY", "REPLACE"
_REDIRECT = "x-amz-website-redirect-location"
_ATTEMPTS = 3
"""How often a source is looked up that is replaced while it is being copied."""


async def copy_object(call: Call) -> Reply:
    """Make an object of another one, or move it."""
    source = parse_copy_source(call.input["CopySource"])
    if _is_move(call.request.headers):
        reply = await call.services.run(on_what_was_checked, partial(_move, call, source))
    else:
        reply = await call.services.run_copy(partial(_copy, call, source))
    call.services.sweeper.wake()
    return reply


def _copy(call: Call, source: CopySource) -> dict[str, Any]:
    asked = read_description(call.request.headers, call.input)
    replaces = _replaces(call.input, "MetadataDirective", "x-amz-metadata-directive")
    _check_change(call, source, replaces=replaces)
    call.permit(Permission.WRITE)
    for _ in range(_ATTEMPTS):
        found = found_source(call)
        description = _description(call.input, asked, found.stored, replaces=replaces)
        try:
            stored = _committed(call, found.stored, description)
        except FileNotFoundError:
            continue
        return _reply(stored, found)
    raise Unavailable("The source is being replaced too often. Please try again.")


def _move(call: Call, source: CopySource) -> dict[str, Any]:
    if call.user_id == ANONYMOUS:
        raise Denied("Access Denied")
    for member in call.input.keys() - _MOVE_TAKES:
        raise not_implemented(f"{MOVE_HEADER} with {member}")
    if source.version is not None or call.input.get("Metadata"):
        raise not_implemented(f"{MOVE_HEADER} with a version or with metadata")
    for name in ("MetadataDirective", "TaggingDirective"):
        if call.input.get(name, _COPY) != _COPY:
            raise not_implemented(f"{MOVE_HEADER} with {name} {call.input[name]}")
    call.permit(Permission.WRITE)
    found = found_source(call, Permission.WRITE)
    _check_move(call, found)
    objects, checked = call.services.metabase.objects, Condition(if_version=found.stored.version)
    moved = objects.move(source.bucket, source.key, call.bucket, call.key, call.origin(), checked)
    stored = call.committed(moved)
    return _reply(stored, found)


def _check_move(call: Call, found: Found) -> None:
    """Raises unless the caller may take a version away for good, and the destination bears the ACL."""
    versioned = found.bucket.versioning is not Versioning.UNVERSIONED
    if versioned and call.user_id != found.bucket.owner_id:
        raise Denied("Access Denied")
    check_new_acl(call.services.metabase.buckets, call.bucket, found.stored.acl)


def _is_move(headers: Mapping[str, str]) -> bool:
    text = headers.get(MOVE_HEADER, "false")
    if text not in {"true", "false"}:
        raise _invalid(MOVE_HEADER, text)
    return text == "true"


def _replaces(asked: Mapping[str, Any], member: str, header: str) -> bool:
    directive: str = asked.get(member, _COPY)
    if directive not in {_COPY, _REPLACE}:
        raise _invalid(header, directive)
    return directive == _REPLACE


def _check_change(call: Call, source: CopySource, *, replaces: bool) -> None:
    """A copy onto itself must change something."""
    onto_itself = source == CopySource(call.bucket, call.key)
    changes = replaces or "StorageClass" in call.input or "WebsiteRedirectLocation" in call.input
    if onto_itself and not changes:
        raise InvalidRequest(
            "This copy request is illegal because it is trying to copy an object to itself without changing "
            "the object's metadata, storage class, website redirect location or encryption attributes."
        )


def _description(
    given: Mapping[str, Any], asked: Description, stored: StoredObject, *, replaces: bool
) -> Description:
    """What the copy is described by. The ACL and the redirection are never those of the source."""
    retags = _replaces(given, "TaggingDirective", "x-amz-tagging-directive")
    tags = asked.tags if retags else stored.tags
    if replaces:
        return Description(asked.content_type, asked.headers, asked.metadata, tags, asked.acl)
    headers = {name: text for name, text in stored.headers.items() if name != _REDIRECT}
    if _REDIRECT in asked.headers:
        headers[_REDIRECT] = asked.headers[_REDIRECT]
    return Description(stored.content_type, headers, stored.metadata, tags, asked.acl)


def _committed(call: Call, stored: StoredObject, description: Description) -> StoredObject:
    """Commit the copy; FileNotFoundError when the bytes of the source have gone."""
    origin, new = call.origin(), _new_object(call, stored, description)
    objects, condition = call.services.metabase.objects, write_condition(call.input)
    segments = _copied(call.services.blobs, stored.segments)
    new = msgspec.structs.replace(new, segments=segments)
    with removed_if_refused(call.services.blobs, *(segment.blob for segment in segments)):
        return call.committed(objects.put(call.bucket, new, Mutation.COPY, origin, condition))


def _copied(blobs: Blobs, segments: Iterable[Segment]) -> tuple[Segment, ...]:
    """Segments of the same bytes, in blobs of their own: all of them, or none."""
    copies: list[Segment] = []
    with ExitStack() as undone:
        for segment in segments:
            copies.append(msgspec.structs.replace(segment, blob=blobs.copy(segment.blob)))
            undone.callback(blobs.remove, copies[-1].blob)
        undone.pop_all()
    return tuple(copies)


def _new_object(call: Call, stored: StoredObject, description: Description) -> NewObject:
    """The copy, still without segments."""
    return NewObject(
        key=call.key,
        size_bytes=stored.size_bytes,
        etag=stored.etag,
        owner_id=call.user_id,
        acl=description.acl,
        content_type=description.content_type,
        headers=description.headers,
        metadata=description.metadata,
        tags=description.tags,
        checksums=_checksums(call, stored),
        inline=stored.inline,
    )


def _checksums(call: Call, stored: StoredObject) -> dict[str, str]:
    """Those of the source, or the one that is asked for instead."""
    algorithm = call.input.get("ChecksumAlgorithm", "").lower()
    if not algorithm or algorithm in stored.checksums:
        return stored.checksums
    if algorithm not in ALGORITHMS:
        raise _invalid("x-amz-checksum-algorithm", algorithm.upper())
    digest = new_digest(algorithm)
    digest.update(stored.inline or b"")
    if stored.segments:
        run = [(segment.blob, segment.size_bytes) for segment in stored.segments]
        with closing(call.services.blobs.open_run(run)) as stream:
            while piece := stream.read(PIECE_BYTES):
                digest.update(piece)
    return {algorithm: b64encode(digest.digest()).decode()}


def _reply(stored: StoredObject, source: Found) -> dict[str, Any]:
    result = {
        "ETag": f'"{stored.etag}"',
        "LastModified": datetime.fromtimestamp(stored.created_at_ns / 1e9, UTC),
        **checksum_members(stored),
    }
    return {
        "CopyObjectResult": result,
        "CopySourceVersionId": source.version_id,
        "VersionId": stored.version_id,
    }


def _invalid(header: str, text: str) -> InvalidRequest:
    return InvalidRequest(
        f"Unknown value of {header}.",
        code="InvalidArgument",
        fields={"ArgumentName": header, "ArgumentValue": text},
    )


_SOURCE = ("CopySource", "ExpectedSourceBucketOwner", "ExpectedBucketOwner", "RequestPayer")
_DIRECTIVES = ("MetadataDirective", "TaggingDirective")
_MOVE_TAKES = frozenset({*_SOURCE, *_DIRECTIVES, "Metadata", "ContentType"})

OPERATIONS = {
    "CopyObject": Operation(
        copy_object,
        takes(
            *described.TAKEN,
            *_SOURCE,
            *_DIRECTIVES,
            "CopySourceIfMatch",
            "CopySourceIfNoneMatch",
            "CopySourceIfModifiedSince",
            "CopySourceIfUnmodifiedSince",
            "ChecksumAlgorithm",
            "IfMatch",
            "IfNoneMatch",
        ),
    ),
}
