"""The notification configuration of a bucket, as a whole and rule by rule.

    permission -> form -> conditions, overlaps, cost of expressions -> destinations are open to the caller
        -> they exist -> they take the test event -> stored

A request may skip the last two checks, never the one before them. What is refused on the way changes
nothing. The test event holds no transaction, no thread of the gateway and not the event loop; what others put
meanwhile is merged, or meets the conditions, when the rules are stored.
"""

import asyncio
import secrets
import time
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from bucketwire.errors import InvalidRequest, NotFound
from bucketwire.event.formats.test_event import Trial, render_test_event
from bucketwire.event.message import Message
from bucketwire.event.rule import Rule
from bucketwire.event.topic import Topic
from bucketwire.gateway.services import Call, Operation, Reply, takes
from bucketwire.log import get_logger, unforeseen
from bucketwire.metainfo.destinations import destinations_of, failed_destinations
from bucketwire.metainfo.notification import (
    configuration_from_rules,
    rule_from_configuration,
    rules_from_configuration,
)
from bucketwire.metainfo.permission import Permission
from bucketwire.metainfo.refusals import invalid_argument
from bucketwire.metainfo.rule_edits import (
    Edit,
    RuleCondition,
    configuration_etag,
    merged_rules,
    with_rule,
    without_rule,
)
from bucketwire.metainfo.topics import may_publish

_ID_BYTES = 36
_ID_PARAMETERS = frozenset({"notification", "notification-id"})
"""Where a rule's Id stands: as Ceph documents it, and as its additions to boto3 send it."""
_GRACE_SECONDS = 1.0
"""For a publisher that is late to notice that its time is over."""

log = get_logger("gateway")


async def put_bucket_notification_configuration(call: Call) -> Reply:
    """Put the configuration, or one rule of it, in force for the next write."""
    planned = await call.services.run(_plan, call)
    await _try_out(call, planned.untried)
    return {"ETag": await call.services.run(_store, call, planned.edit)}


async def get_bucket_notification_configuration(call: Call) -> Reply:
    """The configuration in force, or one rule of it."""
    rule_id = _rule_id(call)

    def job() -> Reply:
        call.permit(Permission.OWN)
        rules = call.services.metabase.rules.current(call.bucket)
        shown = [rule for rule in rules if rule_id in {None, rule.id}]
        if rule_id is not None and not shown:
            raise NotFound("The specified notification does not exist", fields={"Id": rule_id})
        return {
            **configuration_from_rules(shown, call.services.dialect),
            "ETag": configuration_etag(rules),
        }

    return await call.services.run(job)


async def delete_bucket_notification_configuration(call: Call) -> Reply:
    """Remove one rule, or all. One that is not there is no error."""
    rule_id = _rule_id(call)
    edit = _condition(call, rule_id).guarding(partial(without_rule, rule_id=rule_id))
    return {"ETag": await call.services.run(_store, call, edit)}


@dataclass(frozen=True, slots=True)
class _Planned:
    """What a PUT will do."""

    edit: Edit
    untried: list[Topic]
    """Destinations that must take the test event first."""


def _plan(call: Call) -> _Planned:
    """Everything that can be checked without a word to a destination. Blocks."""
    call.permit(Permission.OWN)
    rule_id = _rule_id(call)
    skips = _skips_validation(call)
    wanted, merge = _wanted(call, rule_id)
    edit = _condition(call, rule_id).guarding(merge)
    current = call.services.metabase.rules.current(call.bucket)
    edit(current)
    topics = _destinations(call, wanted, must_exist=not skips)
    known = {rule.topic_arn for rule in current}
    untried = [topic for topic in topics if topic.arn not in known and topic.endpoint]
    return _Planned(edit, untried if _tries_out(call) and not skips else [])


def _wanted(call: Call, rule_id: str | None) -> tuple[list[Rule], Edit]:
    """The rules that are put, and what they make of those in force."""
    dialect, configuration = call.services.dialect, call.input["NotificationConfiguration"]
    if rule_id is not None:
        rule = rule_from_configuration(configuration, dialect, rule_id)
        return [rule], partial(with_rule, wanted=rule, dialect=dialect)
    rules = rules_from_configuration(configuration, dialect, _new_rule_id)
    return rules, partial(merged_rules, wanted=rules, dialect=dialect)


def _destinations(call: Call, rules: Sequence[Rule], *, must_exist: bool) -> list[Topic]:
    def permitted(topic: Topic) -> bool:
        name = call.caller.credentials.display_name if call.caller.credentials else ""
        return may_publish(topic, call.user_id, call.tenant, name, call.bucket)

    return destinations_of(
        rules, call.services.metabase.topics.get, permitted, call.services.dialect, must_exist=must_exist
    )


def _skips_validation(call: Call) -> bool:
    skips = bool(call.input.get("SkipDestinationValidation"))
    if skips and call.services.dialect.test_event_required:
        raise invalid_argument(
            "Destinations are always tested here: leave x-amz-skip-destination-validation out",
            "x-amz-skip-destination-validation",
            "true",
        )
    return skips


def _tries_out(call: Call) -> bool:
    dialect, setting = call.services.dialect, call.services.settings.test_events
    return dialect.test_event_required or (dialect.test_event if setting is None else setting)


async def _try_out(call: Call, topics: Sequence[Topic]) -> None:
    """Send the test event to all topics at once; raises unless all of them acknowledge it in time."""
    if not topics:
        return
    trials = call.services.trials
    started = {
        topic.arn: asyncio.wrap_future(trials.start(topic, _test_event(call, topic))) for topic in topics
    }
    _, late = await asyncio.wait(started.values(), timeout=trials.limit_seconds + _GRACE_SECONDS)
    for trial in late:
        trial.cancel()
    reasons = {
        arn: trials.unanswered if each in late else _reason(arn, each) for arn, each in started.items()
    }
    if failed := {arn: reason for arn, reason in reasons.items() if reason}:
        raise failed_destinations(failed, call.services.dialect)


def _reason(arn: str, trial: asyncio.Future[str]) -> str:
    """Why the topic has not acknowledged the test event; empty when it has."""
    try:
        return trial.result()
    except Exception as error:  # noqa: BLE001 - logged, without its text
        return _unforeseen_reason(arn, error)


def _unforeseen_reason(arn: str, error: Exception) -> str:
    fields = unforeseen(error)
    log.error("test_event_failed", topic=arn, **fields)
    return fields["reason"]


def _test_event(call: Call, topic: Topic) -> Message:
    services, region = call.services, call.services.settings.region
    trial = Trial(call.bucket, region, time.time_ns(), call.request.id, services.host_id)
    return render_test_event(trial, topic, services.dialect)


def _store(call: Call, edit: Edit) -> str:
    """Make the edited rules a new revision; the ETag of the configuration. Blocks.

    Permission is asked for again: while the test event was under way, the bucket may have become another's.
    """
    call.permit(Permission.OWN)
    stored: list[Rule] = []

    def edit_and_note(current: list[Rule]) -> list[Rule]:
        stored[:] = edit(current)
        return list(stored)

    call.services.metabase.rules.edit(call.bucket, edit_and_note)
    return configuration_etag(stored)


def _rule_id(call: Call) -> str | None:
    """The Id that the query names, if it does."""
    named = {value for name, value in call.request.pairs if name in _ID_PARAMETERS and value}
    if len(named) > 1:
        raise InvalidRequest("The query names more than one notification", code="InvalidArgument")
    return named.pop() if named else None


def _condition(call: Call, rule_id: str | None) -> RuleCondition:
    return RuleCondition(call.input.get("IfMatch"), call.input.get("IfNoneMatch"), rule_id)


def _new_rule_id() -> str:
    return b64encode(secrets.token_bytes(_ID_BYTES)).decode()


_CONDITIONS = ("Notification", "IfMatch", "IfNoneMatch", "ExpectedBucketOwner")
OPERATIONS = {
    "PutBucketNotificationConfiguration": Operation(
        put_bucket_notification_configuration,
        takes("NotificationConfiguration", "SkipDestinationValidation", *_CONDITIONS),
    ),
    "GetBucketNotificationConfiguration": Operation(
        get_bucket_notification_configuration, takes("Notification", "ExpectedBucketOwner")
    ),
    "DeleteBucketNotificationConfiguration": Operation(
        delete_bucket_notification_configuration, takes(*_CONDITIONS)
    ),
}
