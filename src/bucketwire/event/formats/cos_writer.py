"""Writes the usual message in IBM's format, about a new object, from the same structs as all others.

What is the same in all messages of a bucket is worked out once, and a payload is made by position: its
keywords would take half a microsecond.
"""

from typing import Any

import msgspec
from msgspec import UNSET

from bucketwire.event.change import ObjectChange, Versioning
from bucketwire.event.formats.cos import CosKey, CosMessage, encode, headers, hyphenated, with_hyphens
from bucketwire.event.formats.layout import CREATED, Rendering, Writer, marked_change
from bucketwire.event.formats.stamp import time_in_milliseconds
from bucketwire.event.installation import Installation
from bucketwire.event.message import Message

_Payload: Any = msgspec.defstruct("_Payload", CosMessage.__struct_fields__, frozen=True, gc=False)
"""A `CosMessage`, made by position."""


def cos_writer(rendering: Rendering, installation: Installation) -> Writer:
    """For new objects in the bucket; others are rendered."""
    bucket, render, compose_other = rendering.bucket, rendering.render, rendering.compose_other
    rule_half, ordered = rendering.rule_half, rendering.ordered
    sample = rendering.sample(marked_change(bucket))
    topic_arn, content_type, beside = sample.topic_arn, sample.content_type, sample.cloudevent
    end_of_id = with_hyphens(16 * "0" + rule_half)[18:]
    bucket_name, bucket_uuid = bucket.name, hyphenated(bucket.id)
    system_uuid, system_name = hyphenated(installation.uuid), installation.name or UNSET
    null_version = UNSET if bucket.versioning is Versioning.UNVERSIONED else "null"

    def write(change: ObjectChange) -> Message:
        if change.bucket != bucket:
            return compose_other(change)
        state, request, key, at_ns = change.new, change.origin.request_id, change.key, change.committed_at_ns
        if state is None or change.operation not in CREATED:
            return render(change)
        version = state.version_id
        payload = _Payload(
            "2.0",
            request,
            time_in_milliseconds(at_ns),
            "Object:Write",
            bucket_name,
            bucket_uuid,
            system_uuid,
            system_name,
            null_version if version is None else version,
            key,
            state.size_bytes,
            state.etag,
            state.content_type or UNSET,
            headers(state.metadata),
        )
        at = at_ns.to_bytes(8, "big").hex()
        if ordered:
            place = key.encode()
        else:
            place = encode(CosKey("2.0", request, f"{at[:8]}-{at[8:12]}-{at[12:]}{end_of_id}"))
        return Message(topic_arn, at + rule_half, key, encode(payload), content_type, at_ns, place, beside)

    return write
