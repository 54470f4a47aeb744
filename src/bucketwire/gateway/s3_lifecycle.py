"""The lifecycle configuration of a bucket."""

import secrets

from bucketwire.errors import InvalidRequest, NotFound
from bucketwire.gateway.services import Call, Operation, Reply, takes
from bucketwire.metainfo.lifecycle import (
    LIFECYCLE_DOCUMENT,
    configuration_from_lifecycle,
    lifecycle_document,
    lifecycle_from_document,
)
from bucketwire.metainfo.lifecycle_form import lifecycle_from_configuration
from bucketwire.metainfo.permission import Permission

_ID_BYTES = 36
_MINIMUM_SIZE = "all_storage_classes_128K"
"""What S3 says unless told otherwise; it matters to transitions only, of which there are none here."""


async def put_bucket_lifecycle_configuration(call: Call) -> Reply:
    """Put the rules in force for the next run of the lifecycle."""
    configuration = call.input.get("LifecycleConfiguration")
    if configuration is None:
        raise InvalidRequest("Request Body is empty", code="MissingRequestBodyError")

    def job() -> None:
        call.permit(Permission.OWN)
        rules = lifecycle_from_configuration(configuration.get("Rules", ()), _new_rule_id)
        buckets = call.services.metabase.buckets
        buckets.set_document(call.bucket, LIFECYCLE_DOCUMENT, lifecycle_document(rules))

    await call.services.run(job)
    return {"TransitionDefaultMinimumObjectSize": _MINIMUM_SIZE}


async def get_bucket_lifecycle_configuration(call: Call) -> Reply:
    """The rules in force."""

    def job() -> Reply:
        call.permit(Permission.OWN)
        document = call.services.metabase.buckets.document(call.bucket, LIFECYCLE_DOCUMENT)
        if document is None:
            raise NotFound(
                "The lifecycle configuration does not exist",
                code="NoSuchLifecycleConfiguration",
                fields={"BucketName": call.bucket},
            )
        rules = configuration_from_lifecycle(lifecycle_from_document(document))
        return {"Rules": rules, "TransitionDefaultMinimumObjectSize": _MINIMUM_SIZE}

    return await call.services.run(job)


async def delete_bucket_lifecycle(call: Call) -> Reply:
    """Take the rules away; none is no error."""

    def job() -> None:
        call.permit(Permission.OWN)
        call.services.metabase.buckets.set_document(call.bucket, LIFECYCLE_DOCUMENT, None)

    await call.services.run(job)
    return {}


def _new_rule_id() -> str:
    return secrets.token_urlsafe(_ID_BYTES)


OPERATIONS = {
    "PutBucketLifecycleConfiguration": Operation(
        put_bucket_lifecycle_configuration,
        takes(
            "LifecycleConfiguration",
            "ChecksumAlgorithm",
            "ExpectedBucketOwner",
            TransitionDefaultMinimumObjectSize=_MINIMUM_SIZE,
        ),
    ),
    "GetBucketLifecycleConfiguration": Operation(
        get_bucket_lifecycle_configuration, takes("ExpectedBucketOwner")
    ),
    "DeleteBucketLifecycle": Operation(delete_bucket_lifecycle, takes("ExpectedBucketOwner")),
}
