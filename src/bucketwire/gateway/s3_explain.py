"""What an event would do in a bucket: GET /bucket?explain, an operation of Bucketwire's own, in JSON.

For those who may read the notification configuration. It sends nothing and writes nothing.
"""

import time

import msgspec

from bucketwire.event.installation import Installation
from bucketwire.gateway.answer import Answer
from bucketwire.gateway.services import Call, Operation, Reply, Services, takes
from bucketwire.metainfo.explain import Explanation, explain_in
from bucketwire.metainfo.permission import Permission
from bucketwire.metainfo.refusals import invalid_argument
from bucketwire.metainfo.supposed import Supposition, entries, metadata_entries, supposition

_PARAMETERS = frozenset(
    {"explain", "key", "event", "size", "etag", "content-type", "metadata", "tag", "version"}
)
_SIGNING = frozenset({"awsaccesskeyid", "signature", "expires", "x-id"})
"""Beside X-Amz-*, what a URL that is signed in advance has."""


async def explain_bucket_notification(call: Call) -> Reply:
    """Which rules the event would match, why others do not, and the messages."""

    def job() -> Explanation:
        bucket = call.permit(Permission.OWN)
        asked = _asked(call)
        installation = _installation(call.services)
        return explain_in(
            call.services.metabase, bucket, asked, call.supposed_origin(), installation, time.time_ns()
        )

    explanation = await call.services.run(job)
    return Answer(200, [("content-type", "application/json")], msgspec.json.encode(explanation))


def _asked(call: Call) -> Supposition:
    for name in filter(_unknown, call.request.parameters):
        known = ", ".join(sorted(_PARAMETERS))
        raise invalid_argument(f"explain takes {known}, and not {name}", "parameter", name)
    for member, name in (("ExplainedKey", "key"), ("Event", "event")):
        if member not in call.input:
            raise invalid_argument(f"explain needs the parameter {name}", name, "")
    return supposition(
        call.input["ExplainedKey"],
        call.input["Event"],
        size_bytes=call.input.get("Size"),
        etag=call.input.get("ETag"),
        content_type=call.input.get("ContentType"),
        metadata=metadata_entries(_repeated(call, "metadata")),
        tags=entries(_repeated(call, "tag"), "tag"),
        version=call.input.get("Version"),
    )


def _unknown(name: str) -> bool:
    """Whether a parameter is neither explain's own nor part of a signature: perhaps one that is misspelt."""
    lower = name.lower()
    return name not in _PARAMETERS and lower not in _SIGNING and not lower.startswith("x-amz-")


def _repeated(call: Call, wanted: str) -> list[str]:
    return [value for name, value in call.request.pairs if name == wanted]


def _installation(services: Services) -> Installation:
    settings = services.settings
    uuid = settings.system_uuid or services.metabase.identity()
    return Installation(services.dialect, uuid, settings.system_name)


OPERATIONS = {
    "ExplainBucketNotification": Operation(
        explain_bucket_notification,
        takes(
            "ExplainedKey",
            "Event",
            "Size",
            "ETag",
            "ContentType",
            "Metadata",
            "Tag",
            "Version",
            "ExpectedBucketOwner",
        ),
    ),
}
