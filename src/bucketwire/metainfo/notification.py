"""Notification configurations: from what a client put to rules, and back, in a dialect. Pure.

    configuration (dicts as in the S3 model) -> rules_from_configuration -> check_destinations -> merged_rules

All checks of form come before any look at a topic. Nothing is changed by a configuration that is refused.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

from bucketwire.errors import CallError, InvalidRequest, NotFound
from bucketwire.event.arn import parse_topic_arn
from bucketwire.event.dialect import Dialect
from bucketwire.event.rule import Filter, Rule
from bucketwire.event.topic import Topic

Configuration = Mapping[str, Any]

_MAX_ID_CHARACTERS = 255
_MAX_FILTER_CHARACTERS = 1024
_FILTER_NAMES = ("prefix", "suffix")
_ALL_EVENTS = ("s3:ObjectCreated:*", "s3:ObjectRemoved:*")
_UNSUPPORTED = {
    "QueueConfigurations": "QueueConfiguration",
    "LambdaFunctionConfigurations": "CloudFunctionConfiguration",
    "EventBridgeConfiguration": "EventBridgeConfiguration",
}


def rules_from_configuration(
    configuration: Configuration, dialect: Dialect, new_id: Callable[[], str]
) -> list[Rule]:
    """The rules that the configuration asks for; `InvalidRequest` with S3's words for what is wrong."""
    for member, element in _UNSUPPORTED.items():
        if member in configuration:
            raise _invalid(f"{element} is not supported: use TopicConfiguration", element, "")
    rules = [_rule(entry, dialect, new_id) for entry in configuration.get("TopicConfigurations", ())]
    if len(rules) > dialect.max_rules:
        raise _invalid(
            f"A bucket can have up to {dialect.max_rules} notification configurations",
            "TopicConfiguration",
            str(len(rules)),
        )
    _check_ids(rules)
    if dialect.overlaps_refused:
        _check_overlaps(rules)
    return rules


def merged_rules(current: Sequence[Rule], wanted: Sequence[Rule], dialect: Dialect) -> list[Rule]:
    """The rules in force once `wanted` was put over `current`."""
    if not dialect.configuration_merges or not wanted:
        return list(wanted)
    merged = {rule.id: rule for rule in (*current, *wanted)}
    if len(merged) > dialect.max_rules:
        raise _invalid(
            f"A bucket can have up to {dialect.max_rules} notification configurations",
            "TopicConfiguration",
            str(len(merged)),
        )
    return list(merged.values())


def check_destinations(
    rules: Iterable[Rule], find: Callable[[str], Topic | None], owner_id: str, dialect: Dialect
) -> None:
    """Raises unless each rule's topic exists and is the owner's."""
    missing = [
        arn for arn in dict.fromkeys(rule.topic_arn for rule in rules) if not _usable(find(arn), owner_id)
    ]
    if missing:
        raise _missing_topics(missing, dialect)


def configuration_from_rules(rules: Iterable[Rule], dialect: Dialect) -> dict[str, Any]:
    """The configuration that shows the rules."""
    entries = [_entry(rule, dialect) for rule in rules]
    return {"TopicConfigurations": entries} if entries else {}


def _rule(entry: Mapping[str, Any], dialect: Dialect, new_id: Callable[[], str]) -> Rule:
    arn = entry["TopicArn"]
    parse_topic_arn(arn)
    return Rule(
        id=_rule_id(entry.get("Id"), dialect, new_id),
        topic_arn=arn,
        events=_events(entry.get("Events", []), dialect),
        filters=_filters(entry.get("Filter", {}), dialect),
    )


def _rule_id(given: str | None, dialect: Dialect, new_id: Callable[[], str]) -> str:
    if given is None:
        if dialect.rule_id_required:
            raise _malformed()
        return new_id()
    if not given and dialect.rule_id_required:
        raise _invalid("Id must not be empty", "Id", given)
    if len(given) > _MAX_ID_CHARACTERS:
        raise _invalid(f"Id must not be longer than {_MAX_ID_CHARACTERS} characters", "Id", given)
    return given or new_id()


def _events(names: Sequence[str], dialect: Dialect) -> tuple[str, ...]:
    if not names:
        if dialect.no_events_means_all:
            return _ALL_EVENTS
        raise _malformed()
    for name in names:
        if name not in dialect.event_names:
            raise _invalid("A specified event is not supported for notifications.", "Event", name)
    return tuple(dict.fromkeys(names))


def _filters(described: Mapping[str, Any], dialect: Dialect) -> tuple[Filter, ...]:
    filters: dict[str, Filter] = {}
    for condition in described.get("Key", {}).get("FilterRules", ()):
        found = _filter(condition, dialect)
        if found.name in filters:
            raise _invalid(
                f"Cannot specify more than one {found.name} rule in a filter.", "FilterRule.Name", found.name
            )
        filters[found.name] = found
    return tuple(filters.values())


def _filter(condition: Mapping[str, str], dialect: Dialect) -> Filter:
    name, value = condition.get("Name"), condition.get("Value")
    if name is None or value is None:
        raise _malformed()
    if name.lower() not in _FILTER_NAMES:
        raise InvalidRequest(
            "filter rule name must be either prefix or suffix",
            code=dialect.bad_filter_code,
            fields={"ArgumentName": "FilterRule.Name", "ArgumentValue": name},
        )
    if len(value) > _MAX_FILTER_CHARACTERS:
        raise _invalid(
            f"filter rule value must not be longer than {_MAX_FILTER_CHARACTERS} characters",
            "FilterRule.Value",
            value,
        )
    return Filter(name.lower(), value)


def _check_ids(rules: Sequence[Rule]) -> None:
    seen: set[str] = set()
    for rule in rules:
        if rule.id in seen:
            raise _invalid("Same ID used for multiple configurations. IDs must be unique", "Id", rule.id)
        seen.add(rule.id)


def _check_overlaps(rules: Sequence[Rule]) -> None:
    for first, second in combinations(rules, 2):
        shared = _shared_events(first, second)
        if shared is None:
            continue
        if not first.filters and not second.filters:
            raise _invalid(
                "Configurations overlap. Configurations on the same bucket cannot share a common event type.",
                "Event",
                ", ".join(shared),
            )
        if _prefixes_overlap(first, second) and _suffixes_overlap(first, second):
            raise _invalid(
                "Configuration is ambiguously defined. Cannot have overlapping suffixes in two rules"
                " if the prefixes are overlapping for the same event type.",
                "Event",
                ", ".join(shared),
            )


def _shared_events(first: Rule, second: Rule) -> tuple[str, str] | None:
    """A pair of patterns that some event meets both of."""
    for ours in first.events:
        for theirs in second.events:
            if ours == theirs or _covers(ours, theirs) or _covers(theirs, ours):
                return ours, theirs
    return None


def _covers(pattern: str, name: str) -> bool:
    return pattern.endswith("*") and name.startswith(pattern[:-1])


def _prefixes_overlap(first: Rule, second: Rule) -> bool:
    ours, theirs = _value(first, "prefix"), _value(second, "prefix")
    return ours.startswith(theirs) or theirs.startswith(ours)


def _suffixes_overlap(first: Rule, second: Rule) -> bool:
    ours, theirs = _value(first, "suffix"), _value(second, "suffix")
    return ours.endswith(theirs) or theirs.endswith(ours)


def _value(rule: Rule, name: str) -> str:
    return next((condition.value for condition in rule.filters if condition.name == name), "")


def _entry(rule: Rule, dialect: Dialect) -> dict[str, Any]:
    entry: dict[str, Any] = {"Id": rule.id, "TopicArn": rule.topic_arn, "Events": list(rule.events)}
    if rule.filters:
        entry["Filter"] = {
            "Key": {"FilterRules": [_filter_entry(condition, dialect) for condition in rule.filters]}
        }
    return entry


def _filter_entry(condition: Filter, dialect: Dialect) -> dict[str, str]:
    name = condition.name.capitalize() if dialect.capitalized_filter_names else condition.name
    return {"Name": name, "Value": condition.value}


def _usable(topic: Topic | None, owner_id: str) -> bool:
    return topic is not None and topic.deleted_at_ns is None and topic.owner_id == owner_id


def _missing_topics(arns: Sequence[str], dialect: Dialect) -> CallError:
    if dialect.missing_topic_code != "InvalidArgument":
        return NotFound(f"The topic {arns[0]} does not exist", code=dialect.missing_topic_code)
    fields: dict[str, str] = {}
    for number, arn in enumerate(arns, start=1):
        fields[f"ArgumentName{number}"] = arn
        fields[f"ArgumentValue{number}"] = "The destination topic does not exist"
    return InvalidRequest(
        "Unable to validate the following destination configurations", code="InvalidArgument", fields=fields
    )


def _invalid(message: str, name: str, value: str) -> InvalidRequest:
    return InvalidRequest(
        message, code="InvalidArgument", fields={"ArgumentName": name, "ArgumentValue": value}
    )


def _malformed() -> InvalidRequest:
    return InvalidRequest(
        "The XML you provided was not well-formed or did not validate against our published schema",
        code="MalformedXML",
    )
