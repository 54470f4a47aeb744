"""The destinations that rules name: whether they are there and open to the caller, and the errors if not."""

from collections.abc import Callable, Iterable, Mapping

from bucketwire.errors import CallError, Denied, InvalidRequest, NotFound
from bucketwire.event.dialect import Dialect
from bucketwire.event.rule import Rule
from bucketwire.event.topic import Topic, topic_named_by
from bucketwire.metainfo.refusals import shortened

_INVALID = "InvalidArgument"
_MISSING = "The destination topic does not exist"
_CLOSED = "The destination topic is not open to this user"


def destinations_of(
    rules: Iterable[Rule],
    find: Callable[[str], Topic | None],
    may_publish: Callable[[Topic], bool],
    dialect: Dialect,
    *,
    must_exist: bool = True,
) -> list[Topic]:
    """The topics of the rules that are there, each once; raises when one may not be published to.

    With `must_exist`, also when one is not there. A deleted topic is not there, and its name stays its
    owner's. A topic that an ARN names directly is judged by its own service.
    """
    arns = list(dict.fromkeys(rule.topic_arn for rule in rules))
    named = {arn: topic for arn in arns if (topic := topic_named_by(arn))}
    stored = {arn: topic for arn in arns if arn not in named and (topic := find(arn))}
    there = named | {arn: topic for arn, topic in stored.items() if topic.deleted_at_ns is None}
    missing = [arn for arn in arns if must_exist and arn not in there]
    denied = [arn for arn, topic in stored.items() if not may_publish(topic)]
    _check_codes_apart(missing, denied, dialect)
    if refused := [arn for arn in arns if arn in {*missing, *denied}]:
        # Where a topic must exist, a closed one reads as a missing one: its name is nobody else's business.
        raise _unable_to_validate(dict.fromkeys(refused, _MISSING if must_exist else _CLOSED))
    return [there[arn] for arn in arns if arn in there]


def failed_destinations(reasons: Mapping[str, str], dialect: Dialect) -> CallError:
    """The error for destinations, by ARN, that have not acknowledged the test event."""
    if dialect.reason_in_message:
        message = "; ".join(f"The destination {arn} failed: {shortened(why)}" for arn, why in reasons.items())
        return InvalidRequest(message, code=_INVALID)
    return _unable_to_validate(reasons)


def _check_codes_apart(missing: list[str], denied: list[str], dialect: Dialect) -> None:
    """Raises where the dialect has an error of its own for such topics."""
    if missing and dialect.missing_topic_code != _INVALID:
        raise NotFound(f"The topic {shortened(missing[0])} does not exist", code=dialect.missing_topic_code)
    if denied and dialect.denied_topic_code != _INVALID:
        raise Denied(f"{_CLOSED}: {shortened(denied[0])}", code=dialect.denied_topic_code)


def _unable_to_validate(reasons: Mapping[str, str]) -> InvalidRequest:
    fields: dict[str, str] = {}
    for number, (arn, reason) in enumerate(reasons.items(), start=1):
        fields[f"ArgumentName{number}"] = shortened(arn)
        fields[f"ArgumentValue{number}"] = shortened(reason)
    return InvalidRequest(
        "Unable to validate the following destination configurations", code=_INVALID, fields=fields
    )
