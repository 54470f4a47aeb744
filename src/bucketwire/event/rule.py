"""A rule: which changes of a bucket go to which topic.

Rules are kept with their history. A configuration that is put makes a new *revision* of the bucket's
rules, named by its time; a rule is in force from the time it was added up to the time it was retired.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import Any

import msgspec
import re2

from bucketwire.errors import InvalidRequest
from bucketwire.event.change import ObjectChange
from bucketwire.event.expiry import expiry_name
from bucketwire.event.name import pattern_accepts

METADATA_PREFIX = "x-amz-meta-"
MAX_REGEX_MEMORY_BYTES = 48 << 10
"""For a program and what RE2 remembers of its runs. With more of it, expressions that make RE2 remember much
are slower: it gives up later. 48 KiB were the fastest in the worst case, and leave everyday ones as fast."""
TOO_COSTLY = "The regular expression is too costly: use fewer repetitions and smaller character classes"
_TOO_LARGE = b"pattern too large"


class Part(StrEnum):
    """What of an object a filter looks at."""

    KEY = "key"
    METADATA = "metadata"
    TAGS = "tags"


class Filter(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One condition on the object.

    On the key, `name` is `prefix`, `suffix` or `regex`, in lower case; a regex must match all of the key. On
    metadata and tags it names the entry, `x-amz-meta-color` or `team`, whose value must be this one.
    """

    name: str
    value: str
    part: Part = Part.KEY

    def accepts(self, change: ObjectChange) -> bool:
        """Whether the object meets the condition."""
        match self.part:
            case Part.KEY:
                return self.accepts_key(change.key)
            case Part.METADATA:
                entries = change.described.metadata if change.described else {}
                return entries.get(self.name.removeprefix(METADATA_PREFIX)) == self.value
            case Part.TAGS:
                return (change.described.tags if change.described else {}).get(self.name) == self.value

    def accepts_key(self, key: str) -> bool:
        """Likewise, for a condition on the key."""
        match self.name:
            case "prefix":
                return key.startswith(self.value)
            case "suffix":
                return key.endswith(self.value)
            case _:
                return compiled(self.value).fullmatch(key) is not None


@lru_cache(maxsize=1024)
def compiled(pattern: str) -> Any:
    """The regular expression, which runs in time linear in the key; `InvalidRequest` if it is none."""
    options = re2.Options()
    options.max_mem = MAX_REGEX_MEMORY_BYTES
    options.log_errors = False
    options.never_capture = True  # what the groups match is not asked for, and would keep RE2 from its DFA
    try:
        return re2.compile(pattern, options=options)
    except re2.error as problem:
        raise InvalidRequest(
            _refusal(problem.args[0] if problem.args else b"it cannot be compiled"),
            code="InvalidArgument",
            fields={"ArgumentName": "FilterRule.Value", "ArgumentValue": pattern},
        ) from problem


def _refusal(why: bytes) -> str:
    if why.startswith(_TOO_LARGE):
        return TOO_COSTLY
    return f"The regular expression is not valid: {why.decode(errors='replace')}"


class Rule(msgspec.Struct, frozen=True):
    """One TopicConfiguration of a bucket. `events` stay as the customer wrote them."""

    id: str
    topic_arn: str
    events: tuple[str, ...]
    filters: tuple[Filter, ...] = ()

    def accepts(self, change: ObjectChange) -> bool:
        """Whether the change goes to this rule's topic."""
        return self.subscribes(change) and all(condition.accepts(change) for condition in self.filters)

    def subscribes(self, change: ObjectChange) -> bool:
        """Whether the change is one of the rule's events, whatever the object."""
        if _covers(self.events, change.operation):
            return True
        expiry = expiry_name(change)
        return expiry is not None and _covers(self.events, expiry)


@lru_cache(maxsize=4096)
def _covers(patterns: tuple[str, ...], event_name: str) -> bool:
    return any(pattern_accepts(pattern, event_name) for pattern in patterns)


def transmit(change: ObjectChange, rules: Iterable[Rule]) -> bool:
    """Whether the change is worth a row in the change stream: some rule in force accepts it."""
    return any(rule.accepts(change) for rule in rules)


def matching(change: ObjectChange, rules: Sequence[Rule]) -> list[Rule]:
    """The rules that accept the change, in the order in which the customer wrote them."""
    return [rule for rule in rules if rule.accepts(change)]
