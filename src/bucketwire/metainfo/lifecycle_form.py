"""Lifecycle configurations: from what a client put to rules, with S3's words for what is wrong. Pure."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from bucketwire.errors import InvalidRequest
from bucketwire.metainfo.lifecycle import Conditions, Expiration, Filter, LifecycleRule

_MAX_RULES = 1_000
_MAX_ID_CHARACTERS = 255
_MAX_NEWER_VERSIONS = 100
_TRANSITIONS = {"Transitions": "Transition", "NoncurrentVersionTransitions": "NoncurrentVersionTransition"}


def lifecycle_from_configuration(
    entries: Sequence[Mapping[str, Any]], new_id: Callable[[], str]
) -> list[LifecycleRule]:
    """The rules that the configuration asks for; `InvalidRequest` says what is wrong with it."""
    if not 0 < len(entries) <= _MAX_RULES:
        raise _malformed()
    rules = [_rule(entry, new_id) for entry in entries]
    if len({rule.id for rule in rules}) < len(rules):
        raise _invalid("Rule ID must be unique. Found same ID for more than one rule.", "ID", _twice(rules))
    return rules


def _rule(entry: Mapping[str, Any], new_id: Callable[[], str]) -> LifecycleRule:
    for member, element in _TRANSITIONS.items():
        if member in entry:
            raise InvalidRequest(f"{element} is not implemented", code="NotImplemented")
    try:
        rule = msgspec.convert(entry, LifecycleRule)
    except msgspec.ValidationError as problem:
        raise _malformed() from problem
    if rule.id is not None and len(rule.id) > _MAX_ID_CHARACTERS:
        raise _invalid(f"ID length should not exceed allowed limit of {_MAX_ID_CHARACTERS}", "ID", rule.id)
    _check_filter(rule)
    _check_actions(rule)
    return rule if rule.id else msgspec.structs.replace(rule, id=new_id())


def _check_filter(rule: LifecycleRule) -> None:
    if (rule.filter is None) == (rule.prefix is None):
        raise _malformed()
    if rule.filter is not None:
        _check_conditions(rule.filter)
    keys = [tag.key for tag in rule.conditions().tags]
    if len(set(keys)) < len(keys):
        raise InvalidRequest("Duplicate Tag Keys are not allowed.")


def _check_conditions(given: Filter) -> None:
    """A filter is one condition; several stand in `And`."""
    alone = (
        given.prefix,
        given.tag,
        given.object_size_greater_than,
        given.object_size_less_than,
        given.and_,
    )
    if sum(each is not None for each in alone) > 1 or given.and_ == Conditions():
        raise _malformed()
    sizes = given.conditions()
    larger, smaller = sizes.object_size_greater_than, sizes.object_size_less_than
    if (larger is not None and larger < 0) or (smaller is not None and smaller < 1):
        raise InvalidRequest("ObjectSizeGreaterThan and ObjectSizeLessThan must be positive.")
    if larger is not None and smaller is not None and larger >= smaller:
        raise InvalidRequest("ObjectSizeLessThan has to be a value greater than ObjectSizeGreaterThan.")


def _check_actions(rule: LifecycleRule) -> None:
    noncurrent, abort = rule.noncurrent_version_expiration, rule.abort_incomplete_multipart_upload
    if rule.expiration is None and noncurrent is None and abort is None:
        raise InvalidRequest("At least one action needs to be specified in a rule.")
    if rule.expiration is not None:
        _check_expiration(rule.expiration, rule.conditions())
    if noncurrent is not None:
        _check_count(noncurrent.noncurrent_days, "NoncurrentDays", "NoncurrentVersionExpiration")
        _check_newer(noncurrent.newer_noncurrent_versions)
    if abort is not None:
        _check_count(abort.days_after_initiation, "DaysAfterInitiation", "AbortIncompleteMultipartUpload")
        if rule.conditions().beyond_prefix:
            raise InvalidRequest("AbortIncompleteMultipartUpload cannot be specified with tags or sizes.")


def _check_expiration(expiration: Expiration, conditions: Conditions) -> None:
    marker = expiration.expired_object_delete_marker
    given = [each for each in (expiration.days, expiration.date, marker or None) if each is not None]
    if len(given) > 1 or (not given and marker is None):
        raise _malformed()
    if expiration.days is not None:
        _check_count(expiration.days, "Days", "Expiration")
    if expiration.date is not None and expiration.date.time().replace(tzinfo=None).isoformat() != "00:00:00":
        raise _invalid("'Date' must be at midnight GMT", "Date", expiration.date.isoformat())
    if marker and conditions.beyond_prefix:
        raise InvalidRequest("ExpiredObjectDeleteMarker cannot be specified with tags or sizes.")


def _check_newer(count: int | None) -> None:
    if count is not None and not 0 < count <= _MAX_NEWER_VERSIONS:
        raise _invalid(
            f"'NewerNoncurrentVersions' must be between 1 and {_MAX_NEWER_VERSIONS}",
            "NewerNoncurrentVersions",
            str(count),
        )


def _check_count(count: int | None, member: str, action: str) -> None:
    if count is None:
        raise _malformed()
    if not 0 < count < 1 << 31:
        raise _invalid(f"'{member}' for {action} action must be a positive integer", member, str(count))


def _twice(rules: Sequence[LifecycleRule]) -> str:
    ids = [rule.id or "" for rule in rules]
    return next(each for each in ids if ids.count(each) > 1)


def _invalid(message: str, name: str, value: str) -> InvalidRequest:
    return InvalidRequest(
        message, code="InvalidArgument", fields={"ArgumentName": name, "ArgumentValue": value}
    )


def _malformed() -> InvalidRequest:
    return InvalidRequest(
        "The XML you provided was not well-formed or did not validate against our published schema",
        code="MalformedXML",
    )
