"""Notification configurations: from what a client put to rules, and back, in a dialect. Pure.

    configuration (dicts as in the S3 model) -> rules_from_configuration -> rules
    rules -> configuration_from_rules -> configuration

All checks of form are here, and none of them looks at a topic. What becomes of the rules that are in force
already is in `rule_edits`.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from bucketwire.errors import InvalidRequest
from bucketwire.event.arn import PubsubArn, TopicArn, parse_destination_arn
from bucketwire.event.dialect import Dialect
from bucketwire.event.rule import Rule
from bucketwire.metainfo.filters import filters_from_element, filters_to_element
from bucketwire.metainfo.overlaps import check_overlaps
from bucketwire.metainfo.refusals import invalid_argument, malformed, too_many_rules

Configuration = Mapping[str, Any]

_MAX_ID_CHARACTERS = 255
_MAX_ARN_CHARACTERS = 2048
_ILLEGIBLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
"""What XML cannot show, and a query can bring."""
_ALL_EVENTS = ("s3:ObjectCreated:*", "s3:ObjectRemoved:*")
_UNSUPPORTED = {
    "QueueConfigurations": "QueueConfiguration",
    "LambdaFunctionConfigurations": "CloudFunctionConfiguration",
    "EventBridgeConfiguration": "EventBridgeConfiguration",
}
_PUBSUB = "of Google Pub/Sub (arn:gcp:pubsub::PROJECT:TOPIC)"


def rules_from_configuration(
    configuration: Configuration, dialect: Dialect, new_id: Callable[[], str]
) -> list[Rule]:
    """The rules that the configuration asks for; `InvalidRequest` with S3's words for what is wrong."""
    entries = _entries(configuration, dialect)
    if len(entries) > dialect.max_rules:
        raise too_many_rules(dialect.max_rules, len(entries))
    rules = [_rule(entry, dialect, new_id) for entry in entries]
    _check_ids(rules)
    if dialect.overlaps_refused:
        check_overlaps(rules)
    return rules


def rule_from_configuration(configuration: Configuration, dialect: Dialect, rule_id: str) -> Rule:
    """The one rule of a configuration that was put for this id, which it need not repeat."""
    entries = _entries(configuration, dialect)
    if len(entries) != 1:
        raise invalid_argument(
            "Exactly one TopicConfiguration is put by its Id", "TopicConfiguration", str(len(entries))
        )
    if entries[0].get("Id", rule_id) != rule_id:
        raise invalid_argument("Id must be that of the query", "Id", entries[0]["Id"])
    return _rule({**entries[0], "Id": rule_id}, dialect, lambda: rule_id)


def configuration_from_rules(rules: Iterable[Rule], dialect: Dialect) -> dict[str, Any]:
    """The configuration that shows the rules."""
    entries = [_entry(rule, dialect) for rule in rules]
    return {"TopicConfigurations": entries} if entries else {}


def _entries(configuration: Configuration, dialect: Dialect) -> Sequence[Mapping[str, Any]]:
    for member, element in _UNSUPPORTED.items():
        if member in configuration:
            raise invalid_argument(
                f"{element} is not supported: use TopicConfiguration with the ARN of a topic"
                f" {_PUBSUB if not dialect.topics_served else f'made with CreateTopic, or of one {_PUBSUB}'}",
                element,
                "",
            )
    entries: Sequence[Mapping[str, Any]] = configuration.get("TopicConfigurations", ())
    return entries


def _rule(entry: Mapping[str, Any], dialect: Dialect, new_id: Callable[[], str]) -> Rule:
    return Rule(
        id=_rule_id(entry.get("Id"), dialect, new_id),
        topic_arn=_destination(entry["TopicArn"], dialect),
        events=_events(entry.get("Events", []), dialect),
        filters=filters_from_element(entry.get("Filter", {}), dialect),
    )


def _rule_id(given: str | None, dialect: Dialect, new_id: Callable[[], str]) -> str:
    if given is None:
        if dialect.rule_id_required:
            raise malformed()
        return new_id()
    if not given and dialect.rule_id_required:
        raise invalid_argument("Id must not be empty", "Id", given)
    if len(given) > _MAX_ID_CHARACTERS:
        raise invalid_argument(f"Id must not be longer than {_MAX_ID_CHARACTERS} characters", "Id", given)
    if _ILLEGIBLE.search(given):
        raise invalid_argument("Id has characters that XML does not know", "Id", given)
    return given or new_id()


def _destination(arn: str, dialect: Dialect) -> str:
    """The ARN, if the dialect lets a rule name such a destination."""
    if len(arn) > _MAX_ARN_CHARACTERS:
        raise invalid_argument(
            f"Topic must not be longer than {_MAX_ARN_CHARACTERS} characters", "Topic", arn
        )
    parsed = _parsed(arn)
    if not dialect.topics_served and not isinstance(parsed, PubsubArn):
        raise invalid_argument(f"The only destinations are topics {_PUBSUB}", "Topic", arn)
    return arn


def _parsed(arn: str) -> TopicArn | PubsubArn:
    try:
        return parse_destination_arn(arn)
    except InvalidRequest as problem:
        raise invalid_argument(problem.message, "Topic", arn) from problem


def _events(names: Sequence[str], dialect: Dialect) -> tuple[str, ...]:
    if not names:
        if dialect.no_events_means_all:
            return _ALL_EVENTS
        raise malformed()
    for name in names:
        if name not in dialect.event_names:
            raise invalid_argument("A specified event is not supported for notifications.", "Event", name)
    return tuple(dict.fromkeys(names))


def _check_ids(rules: Sequence[Rule]) -> None:
    seen: set[str] = set()
    for rule in rules:
        if rule.id in seen:
            raise invalid_argument(
                "Same ID used for multiple configurations. IDs must be unique", "Id", rule.id
            )
        seen.add(rule.id)


def _entry(rule: Rule, dialect: Dialect) -> dict[str, Any]:
    entry: dict[str, Any] = {"Id": rule.id, "TopicArn": rule.topic_arn, "Events": list(rule.events)}
    shown = filters_to_element(rule.filters, dialect)
    return {**entry, "Filter": shown} if shown else entry
