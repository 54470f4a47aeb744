"""Rules of one bucket that would take the same event of the same key, which S3 refuses. Pure.

Two rules overlap when some event meets both, some key has both prefixes, and some key has both suffixes.
S3 knows no regex, metadata and tags: what rules with such filters take cannot be told from the
configuration, so they overlap with nothing.
"""

from collections.abc import Sequence
from itertools import combinations

from bucketwire.event.rule import Part, Rule
from bucketwire.metainfo.refusals import invalid_argument

_COMPARABLE = ("prefix", "suffix")


def check_overlaps(rules: Sequence[Rule]) -> None:
    """Raises `InvalidRequest` for the first two rules that overlap."""
    for first, second in combinations(filter(_is_comparable, rules), 2):
        shared = _shared_events(first, second)
        if shared is not None:
            _check_keys(first, second, ", ".join(shared))


def _is_comparable(rule: Rule) -> bool:
    return all(each.part is Part.KEY and each.name in _COMPARABLE for each in rule.filters)


def _check_keys(first: Rule, second: Rule, events: str) -> None:
    if not first.filters and not second.filters:
        raise invalid_argument(
            "Configurations overlap. Configurations on the same bucket cannot share a common event type.",
            "Event",
            events,
        )
    if _prefixes_overlap(first, second) and _suffixes_overlap(first, second):
        raise invalid_argument(
            "Configuration is ambiguously defined. Cannot have overlapping suffixes in two rules"
            " if the prefixes are overlapping for the same event type.",
            "Event",
            events,
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
