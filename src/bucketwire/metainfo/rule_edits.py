"""What a request makes of the rules in force: functions for `Rules.edit`, and the conditions on them. Pure.

The ETag of a configuration is a hash of its rules, so it is the same on every gateway and every backend. A
condition is looked at with the very rules that are edited: nothing comes between.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import msgspec

from bucketwire.errors import InvalidRequest
from bucketwire.event.dialect import Dialect
from bucketwire.event.rule import Rule
from bucketwire.metainfo.overlaps import check_overlaps
from bucketwire.metainfo.refusals import too_many_rules
from bucketwire.metainfo.regex_cost import check_regexes

Edit = Callable[[list[Rule]], list[Rule]]
_ETAG_BYTES = 16
_ANY = "*"
_encode = msgspec.json.Encoder().encode


def configuration_etag(rules: Sequence[Rule]) -> str:
    """The ETag of a configuration with these rules, in its quotes."""
    return f'"{blake2b(_encode(list(rules)), digest_size=_ETAG_BYTES).hexdigest()}"'


@dataclass(frozen=True, slots=True)
class RuleCondition:
    """What must hold of the rules in force, else `PreconditionFailed`.

    A star asks whether the rule of the request is there, or, for a request about all, whether any is.
    """

    if_match: str | None = None
    if_none_match: str | None = None
    rule_id: str | None = None

    def guarding(self, edit: Edit) -> Edit:
        """The edit, behind the condition."""

        def guarded(current: list[Rule]) -> list[Rule]:
            self._check(current)
            return edit(current)

        return guarded

    def _check(self, current: Sequence[Rule]) -> None:
        if self.if_match is not None and not self._names(self.if_match, current):
            raise _precondition_failed("If-Match")
        if self.if_none_match is not None and self._names(self.if_none_match, current):
            raise _precondition_failed("If-None-Match")

    def _names(self, condition: str, current: Sequence[Rule]) -> bool:
        tags = {tag.strip().removeprefix("W/") for tag in condition.split(",")}
        if _ANY in tags:
            return any(self.rule_id in {None, rule.id} for rule in current)
        quoted = {tag if tag.startswith('"') else f'"{tag}"' for tag in tags}
        return configuration_etag(current) in quoted


def merged_rules(current: Sequence[Rule], wanted: Sequence[Rule], dialect: Dialect) -> list[Rule]:
    """The rules in force once the configuration `wanted` was put over `current`."""
    replaces = not dialect.configuration_merges or not wanted
    rules = list(wanted) if replaces else _with(current, wanted, dialect)
    check_regexes(rules)
    return rules


def with_rule(current: Sequence[Rule], wanted: Rule, dialect: Dialect) -> list[Rule]:
    """The rules with this one added, or in the place of the one of its id."""
    rules = _with(current, [wanted], dialect)
    if dialect.overlaps_refused:
        check_overlaps(rules)
    check_regexes(rules)
    return rules


def without_rule(current: Sequence[Rule], rule_id: str | None) -> list[Rule]:
    """The rules but for the one of that id, if there is one; without an id, none at all."""
    return [rule for rule in current if rule_id not in {None, rule.id}]


def _with(current: Sequence[Rule], wanted: Sequence[Rule], dialect: Dialect) -> list[Rule]:
    merged = {rule.id: rule for rule in (*current, *wanted)}
    if len(merged) > dialect.max_rules:
        raise too_many_rules(dialect.max_rules, len(merged))
    return list(merged.values())


def _precondition_failed(condition: str) -> InvalidRequest:
    return InvalidRequest(
        "At least one of the pre-conditions you specified did not hold",
        code="PreconditionFailed",
        fields={"Condition": condition},
    )
