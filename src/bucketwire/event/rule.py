"""A rule: which changes of a bucket go to which topic.

Rules are kept with their history. A configuration that is put makes a new *revision* of the bucket's
rules, named by its time; a rule is in force from the time it was added up to the time it was retired.
"""

from collections.abc import Iterable, Sequence

import msgspec

from bucketwire.event.change import ObjectChange
from bucketwire.event.expiry import expiry_name
from bucketwire.event.name import pattern_accepts


class Filter(msgspec.Struct, frozen=True, gc=False):
    """One condition on the key: `name` is `prefix` or `suffix`, in lower case."""

    name: str
    value: str

    def accepts(self, key: str) -> bool:
        """Whether the key meets the condition."""
        if self.name == "prefix":
            return key.startswith(self.value)
        return key.endswith(self.value)


class Rule(msgspec.Struct, frozen=True):
    """One TopicConfiguration of a bucket. `events` stay as the customer wrote them."""

    id: str
    topic_arn: str
    events: tuple[str, ...]
    filters: tuple[Filter, ...] = ()

    def accepts(self, change: ObjectChange) -> bool:
        """Whether the change goes to this rule's topic."""
        return self._subscribes(change) and all(condition.accepts(change.key) for condition in self.filters)

    def _subscribes(self, change: ObjectChange) -> bool:
        if any(pattern_accepts(pattern, change.operation) for pattern in self.events):
            return True
        expiry = expiry_name(change)
        return expiry is not None and any(pattern_accepts(pattern, expiry) for pattern in self.events)


def transmit(change: ObjectChange, rules: Iterable[Rule]) -> bool:
    """Whether the change is worth a row in the change stream: some rule in force accepts it."""
    return any(rule.accepts(change) for rule in rules)


def matching(change: ObjectChange, rules: Sequence[Rule]) -> list[Rule]:
    """The rules that accept the change, in the order in which the customer wrote them."""
    return [rule for rule in rules if rule.accepts(change)]
