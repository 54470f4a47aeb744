"""Judges a history: what was lost, what came without a write, what differs, what is out of order. Pure.

- A write that was acknowledged must arrive at the topic of each rule that accepts it and was in force for the
  whole time of the request. While a set of rules is in flight, the old and the new one are both right.
- A write whose outcome is unknown may have an event, at most one for each topic and rule.
- Nothing else may come: an event of a write that was refused or never made is a phantom, and so is one at a
  topic that no rule named, or a second event of one write.
- Messages with one event id must have the same bytes.
- Of two acknowledged writes of one key, one after the other, the second has the greater sequencer.
"""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from operator import attrgetter

from chaos.history import Edit, Event, History, Outcome, Write
from chaos.plan import Rule

LATE_SECONDS = 60.0
"""A request whose answer was lost may be worked on for so much longer."""

Change = tuple[str, str, str]
"""The request id, the bucket and the key: together they name what was done to one key."""


@dataclass(slots=True)
class Verdict:
    """What was found. Everything but the counts should be empty."""

    events: int = 0
    """Different ones, by topic and event id."""
    duplicates: int = 0
    required: int = 0
    """Events that had to come."""
    lost: list[tuple[Write, str]] = field(default_factory=list)
    """The write, and the topic that did not get it."""
    phantoms: list[tuple[Event, str]] = field(default_factory=list)
    different: list[str] = field(default_factory=list)
    """Event ids that came with different bytes."""
    disorder: list[tuple[Write, Write]] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        """Whether a promise was broken."""
        return bool(self.lost or self.phantoms or self.different or self.disorder)


def check(history: History) -> Verdict:
    """Everything that can be said about the history."""
    firsts = first_receipts(history.events)
    verdict = Verdict(events=len(firsts), duplicates=len(history.events) - len(firsts))
    rules = RulesInForce(history.edits)
    by_change = _by_change(firsts.values())
    for write in history.writes:
        if write.outcome is Outcome.ACKNOWLEDGED:
            _check_arrival(write, rules, by_change, verdict)
    verdict.phantoms = list(_phantoms(history.writes, rules, by_change))
    verdict.different = _different(history.events)
    verdict.disorder = list(_disorder(history.writes, by_change))
    return verdict


def first_receipts(events: Iterable[Event]) -> dict[tuple[str, str], Event]:
    """Each event once, as it came first, by topic and event id."""
    firsts: dict[tuple[str, str], Event] = {}
    for event in sorted(events, key=attrgetter("received_at")):
        firsts.setdefault((event.topic, event.event_id), event)
    return firsts


class RulesInForce:
    """The sets of rules that a bucket may have had at a time."""

    def __init__(self, edits: Iterable[Edit]) -> None:
        self._edits: dict[str, list[Edit]] = defaultdict(list)
        for edit in sorted(edits, key=attrgetter("began")):
            self._edits[edit.bucket].append(edit)
        self._ended = {bucket: [edit.ended for edit in edits] for bucket, edits in self._edits.items()}

    def required(self, write: Write) -> set[str]:
        """Topics that must get the write, whichever set was in force."""
        found = [_topics(rules, write) for rules in self._between(write.bucket, write.began, write.ended)]
        return set.intersection(*found) if found else set()

    def allowed(self, write: Write) -> set[str]:
        """Topics that may get it."""
        late = LATE_SECONDS if write.outcome is Outcome.UNKNOWN else 0.0
        sets = self._between(write.bucket, write.began, write.ended + late)
        return {topic for rules in sets for topic in _topics(rules, write)}

    def _between(self, bucket: str, began: float, ended: float) -> Iterator[tuple[Rule, ...]]:
        """The set that was surely stored before, and those that were in flight at any time since."""
        edits = self._edits.get(bucket, [])
        settled = bisect_right(self._ended.get(bucket, []), began)
        for edit in edits[max(0, settled - 1) :]:
            if edit.began <= ended:
                yield edit.rules


def _topics(rules: Iterable[Rule], write: Write) -> set[str]:
    return {rule.topic for rule in rules if rule.accepts(write.event_name, write.key)}


def _by_change(events: Iterable[Event]) -> dict[Change, list[Event]]:
    found: dict[Change, list[Event]] = defaultdict(list)
    for event in events:
        found[event.request_id, event.bucket, event.key].append(event)
    return found


def _change(write: Write) -> Change:
    return write.request_id or "", write.bucket, write.key


def _check_arrival(
    write: Write, rules: RulesInForce, by_change: dict[Change, list[Event]], verdict: Verdict
) -> None:
    required = rules.required(write)
    arrived = {event.topic for event in by_change.get(_change(write), ())}
    verdict.required += len(required)
    verdict.lost += [(write, topic) for topic in sorted(required - arrived)]


def _phantoms(
    writes: Iterable[Write], rules: RulesInForce, by_change: dict[Change, list[Event]]
) -> Iterator[tuple[Event, str]]:
    known = {_change(write): write for write in writes if write.request_id}
    unanswered = [write for write in writes if write.outcome is Outcome.UNKNOWN and not write.request_id]
    guesses = Counter((write.bucket, write.key, write.event_name) for write in unanswered)
    places = _places(unanswered, rules)
    for change, events in by_change.items():
        write = known.get(change)
        if write is not None:
            yield from _unexpected(write, events, rules.allowed(write))
            continue
        meant = (events[0].bucket, events[0].key, events[0].name)
        if not guesses[meant]:
            yield from ((event, "no write") for event in events)
            continue
        guesses[meant] -= 1
        yield from _doubled(events)
        yield from (
            (event, "at a topic that no rule named") for event in events if event.topic not in places[meant]
        )


def _places(writes: Iterable[Write], rules: RulesInForce) -> dict[Change, set[str]]:
    """Topics that may get a write without an answer, by bucket, key and event name."""
    found: dict[Change, set[str]] = defaultdict(set)
    for write in writes:
        found[write.bucket, write.key, write.event_name] |= rules.allowed(write)
    return found


def _unexpected(write: Write, events: list[Event], allowed: set[str]) -> Iterator[tuple[Event, str]]:
    yield from _doubled(events)
    for event in events:
        if write.outcome is Outcome.REFUSED:
            yield event, "of a write that was refused"
        elif event.name != write.event_name:
            yield event, f"called {event.name} and not {write.event_name}"
        elif event.topic not in allowed:
            yield event, "at a topic that no rule named"


def _doubled(events: list[Event]) -> Iterator[tuple[Event, str]]:
    """One write, one rule, one event: each event id is here once."""
    seen: set[tuple[str, str]] = set()
    for event in events:
        if (event.topic, event.rule) in seen:
            yield event, "a second event of one write"
        seen.add((event.topic, event.rule))


def _different(events: Iterable[Event]) -> list[str]:
    digests: dict[str, bytes] = {}
    return [
        event.event_id for event in events if digests.setdefault(event.event_id, event.digest) != event.digest
    ]


def _disorder(writes: Iterable[Write], by_change: dict[Change, list[Event]]) -> Iterator[tuple[Write, Write]]:
    keys: dict[tuple[str, str], list[tuple[str, Write]]] = defaultdict(list)
    for write in writes:
        sequencers = [event.sequencer for event in by_change.get(_change(write), ()) if event.sequencer]
        if write.outcome is Outcome.ACKNOWLEDGED and sequencers:
            keys[write.bucket, write.key].append((sequencers[0], write))
    for found in keys.values():
        yield from _disorder_of_key(found)


def _disorder_of_key(found: list[tuple[str, Write]]) -> Iterator[tuple[Write, Write]]:
    """Each write against the greatest sequencer of those that ended before it began."""
    ended = sorted(found, key=lambda each: each[1].ended)
    greatest: tuple[str, Write] | None = None
    past = 0
    for sequencer, write in sorted(found, key=lambda each: each[1].began):
        while ended[past][1].ended < write.began:
            greatest = max(greatest or ended[past], ended[past], key=lambda each: each[0])
            past += 1
        if greatest is not None and sequencer <= greatest[0]:
            yield greatest[1], write
