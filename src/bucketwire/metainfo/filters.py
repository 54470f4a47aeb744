"""The filters of a rule: from the elements S3Key, S3Metadata and S3Tags, and back. Pure.

    S3Key        prefix, suffix, regex     what the key must start with, end with, match as a whole
    S3Metadata   x-amz-meta-<name>         the value that the entry must have
    S3Tags       <name>                    likewise

Names are read in any case where S3 does so, and kept in lower case; those of tags stay as they are.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from bucketwire.errors import InvalidRequest
from bucketwire.event.dialect import Dialect
from bucketwire.event.rule import METADATA_PREFIX, Filter, Part
from bucketwire.metainfo.refusals import invalid_argument, malformed, shortened
from bucketwire.metainfo.regex_cost import REGEX, check_regex

_MAX_CHARACTERS = 1024
_KEY_NAMES = ("prefix", "suffix", REGEX)
_MEMBERS = {Part.KEY: "Key", Part.METADATA: "Metadata", Part.TAGS: "Tags"}
"""What the S3 model calls the element of each part, in the order in which they are shown."""

Described = Mapping[str, Any]
"""The Filter element as a dict, as in the S3 model."""


def filters_from_element(described: Described, dialect: Dialect) -> tuple[Filter, ...]:
    """The filters; `InvalidRequest` in S3's words for what is wrong."""
    filters: dict[tuple[Part, str], Filter] = {}
    for part, member in _MEMBERS.items():
        for condition in described.get(member, {}).get("FilterRules", ()):
            found = _filter(part, condition, dialect)
            if (part, found.name) in filters:
                raise invalid_argument(
                    f"Cannot specify more than one {found.name} rule in a filter.",
                    "FilterRule.Name",
                    found.name,
                )
            filters[part, found.name] = found
    return tuple(filters.values())


def filters_to_element(filters: Iterable[Filter], dialect: Dialect) -> dict[str, Any]:
    """The element that shows the filters; empty when there are none."""
    shown: dict[str, Any] = {}
    for part, member in _MEMBERS.items():
        conditions = [
            {"Name": shown_name(each, dialect), "Value": each.value} for each in filters if each.part is part
        ]
        if conditions:
            shown[member] = {"FilterRules": conditions}
    return shown


def shown_name(condition: Filter, dialect: Dialect) -> str:
    """The name of a filter, as the dialect writes it."""
    capitalized = condition.part is Part.KEY and dialect.capitalized_filter_names
    return condition.name.capitalize() if capitalized else condition.name


def _filter(part: Part, condition: Mapping[str, str], dialect: Dialect) -> Filter:
    name, value = condition.get("Name"), condition.get("Value")
    if name is None or value is None:
        raise malformed()
    for element, text in (("FilterRule.Name", name), ("FilterRule.Value", value)):
        if len(text) > _MAX_CHARACTERS:
            raise invalid_argument(
                f"a filter rule must not be longer than {_MAX_CHARACTERS} characters", element, text
            )
    found = Filter(_checked_name(part, name, dialect), value, part)
    if part is Part.KEY and found.name == REGEX:
        check_regex(value)
    return found


def _checked_name(part: Part, name: str, dialect: Dialect) -> str:
    """The name as it is kept; raises when the part has no such name."""
    lower = name.lower()
    if part is not Part.KEY and dialect.key_filters_only:
        raise _bad_name("filter rules must be on the key, by prefix or suffix", name, dialect)
    match part:
        case Part.KEY if lower not in _KEY_NAMES or (lower == REGEX and dialect.key_filters_only):
            raise _bad_name("filter rule name must be either prefix or suffix", name, dialect)
        case Part.METADATA if not lower.startswith(METADATA_PREFIX) or lower == METADATA_PREFIX:
            raise _bad_name(
                f"filter rule name in S3Metadata must start with {METADATA_PREFIX}", name, dialect
            )
        case Part.TAGS if not name:
            raise _bad_name("filter rule name in S3Tags must not be empty", name, dialect)
        case Part.TAGS:
            return name
    return lower


def _bad_name(message: str, name: str, dialect: Dialect) -> InvalidRequest:
    return InvalidRequest(
        message,
        code=dialect.bad_filter_code,
        fields={"ArgumentName": "FilterRule.Name", "ArgumentValue": shortened(name)},
    )
