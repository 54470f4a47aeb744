"""The notification configuration of a bucket."""

import secrets
from base64 import b64encode

from bucketwire.gateway.services import Call, Operation, Reply, takes
from bucketwire.metainfo.notification import (
    check_destinations,
    configuration_from_rules,
    merged_rules,
    rules_from_configuration,
)
from bucketwire.metainfo.permission import Permission

_ID_BYTES = 36


async def put_bucket_notification_configuration(call: Call) -> Reply:
    """Put the configuration in force for the next write."""
    metabase, dialect = call.services.metabase, call.services.dialect
    configuration = call.input["NotificationConfiguration"]

    def job() -> None:
        call.permit(Permission.OWN)
        wanted = rules_from_configuration(configuration, dialect, _new_rule_id)
        if not call.input.get("SkipDestinationValidation"):
            check_destinations(wanted, metabase.topics.get, call.user_id, dialect)
        metabase.rules.edit(call.bucket, lambda current: merged_rules(current, wanted, dialect))

    await call.services.run(job)
    return {}


async def get_bucket_notification_configuration(call: Call) -> Reply:
    """The configuration in force."""

    def job() -> Reply:
        call.permit(Permission.OWN)
        rules = call.services.metabase.rules.current(call.bucket)
        return configuration_from_rules(rules, call.services.dialect)

    return await call.services.run(job)


def _new_rule_id() -> str:
    return b64encode(secrets.token_bytes(_ID_BYTES)).decode()


OPERATIONS = {
    "PutBucketNotificationConfiguration": Operation(
        put_bucket_notification_configuration,
        takes("NotificationConfiguration", "ExpectedBucketOwner", "SkipDestinationValidation"),
    ),
    "GetBucketNotificationConfiguration": Operation(
        get_bucket_notification_configuration, takes("ExpectedBucketOwner")
    ),
}
