"""The destinations that rules name: whether they are there, and the errors for those that are not or fail."""

from collections.abc import Callable, Iterable, Mapping

from bucketwire.errors import CallError, InvalidRequest, NotFound
from bucketwire.event.dialect import Dialect
from bucketwire.event.rule import Rule
from bucketwire.event.topic import Topic, topic_named_by

_MISSING = "The destination topic does not exist"


def destinations_of(
    rules: Iterable[Rule],
    find: Callable[[str], Topic | None],
    may_publish: Callable[[Topic], bool],
    dialect: Dialect,
) -> list[Topic]:
    """The topics of the rules, each once; raises unless each exists and may be published to.

    A topic that may not be published to is as good as none: its name is nobody else's business. One that an
    ARN names directly is judged by its own service.
    """
    arns = dict.fromkeys(rule.topic_arn for rule in rules)
    found = {arn: topic_named_by(arn) or _usable(find(arn), may_publish) for arn in arns}
    missing = [arn for arn, topic in found.items() if topic is None]
    if missing:
        raise _missing_topics(missing, dialect)
    return [topic for topic in found.values() if topic is not None]


def failed_destinations(reasons: Mapping[str, str], dialect: Dialect) -> CallError:
    """The error for destinations, by ARN, that have not acknowledged the test event."""
    if dialect.reason_in_message:
        message = "; ".join(f"The destination {arn} failed: {why}" for arn, why in reasons.items())
        return InvalidRequest(message, code="InvalidArgument")
    return _unable_to_validate(reasons)


def _usable(topic: Topic | None, may_publish: Callable[[Topic], bool]) -> Topic | None:
    if topic is None or topic.deleted_at_ns is not None or not may_publish(topic):
        return None
    return topic


def _missing_topics(arns: list[str], dialect: Dialect) -> CallError:
    if dialect.missing_topic_code != "InvalidArgument":
        return NotFound(f"The topic {arns[0]} does not exist", code=dialect.missing_topic_code)
    return _unable_to_validate(dict.fromkeys(arns, _MISSING))


def _unable_to_validate(reasons: Mapping[str, str]) -> InvalidRequest:
    fields: dict[str, str] = {}
    for number, (arn, reason) in enumerate(reasons.items(), start=1):
        fields[f"ArgumentName{number}"] = arn
        fields[f"ArgumentValue{number}"] = reason
    return InvalidRequest(
        "Unable to validate the following destination configurations", code="InvalidArgument", fields=fields
    )
