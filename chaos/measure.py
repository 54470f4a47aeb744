"""How long events took, when nothing was broken and after each fault. Pure.

The delay of an event is from the acknowledgement of its write to its first receipt at a topic. A fault is
recovered from when writes are acknowledged again and their events are as fast as normal, for as long as no
other fault begins. Where one begins too soon to tell, the recovery counts as not seen.

A few events are late on a good day too. So what is late counts where more than a tenth of all was, in the
five seconds up to it. What one topic waits for may be less than that: so it is measured too when the last
late event came, of those written from shortly before the fault to five seconds after it.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from chaos.check import RulesInForce, first_receipts
from chaos.history import History, Injury, Outcome

NORMAL_SECONDS = 0.5
"""An event that takes longer is not delivered as on a good day, unless those are slow too."""
NORMAL_MEDIANS = 4.0
"""On such a machine, one that takes longer than so many times the median."""
AFTERMATH_SECONDS = 5.0
"""So long after a fault, latency should be normal again."""
PATCH_SECONDS = 5.0
"""The seconds up to a late event in which others must be late too, for it to count,"""
PATCH_PART = 0.1
"""and the part of them."""
LONGEST_SECONDS = 60.0
"""What happens later is not put down to the fault."""

Delay = tuple[float, float]
"""When the write was acknowledged, and for how long its event was on its way."""


@dataclass(frozen=True, slots=True)
class Recovery:
    """After one fault."""

    injury: Injury
    seconds: float | None
    """None when the next one came too soon to tell."""
    at_least_seconds: float = 0.0
    """That much is sure, also where the end was not seen."""
    last_late_seconds: float | None = None
    """Until the last late event had come to its topic, of any; None when another fault overlaps this one."""


def delays(history: History) -> list[Delay]:
    """Of all events that had to come and came, in order of acknowledgement."""
    rules = RulesInForce(history.edits)
    received = {
        (event.request_id, event.bucket, event.key, event.topic): event.received_at
        for event in first_receipts(history.events).values()
    }
    found = [
        (write.ended, received[place] - write.ended)
        for write in history.writes
        if write.outcome is Outcome.ACKNOWLEDGED
        for topic in rules.required(write)
        if (place := (write.request_id, write.bucket, write.key, topic)) in received
    ]
    return sorted(found)


def undisturbed(found: Iterable[Delay], injuries: Iterable[Injury]) -> list[float]:
    """The delays of writes that were acknowledged far from any fault, in order of length."""
    return sorted(seconds for _, seconds in _far_from_faults(found, injuries))


def late_by_chance(found: Iterable[Delay], injuries: Iterable[Injury], normal: float) -> float:
    """Of the seconds far from any fault, the part in which an event was late all the same.

    So many are to be expected after a fault too, once it has been recovered from.
    """
    far = _far_from_faults(found, injuries)
    late = {int(at) for at, seconds in far if seconds > normal}
    return len(late) / max(1, len({int(at) for at, _ in far}))


def _far_from_faults(found: Iterable[Delay], injuries: Iterable[Injury]) -> list[Delay]:
    """However long they were: only a write shortly before a fault may be late because of it."""
    windows = [(injury.began - NORMAL_SECONDS, injury.ended + AFTERMATH_SECONDS) for injury in injuries]
    merged = _merged(sorted(windows))
    begins = [began for began, _ in merged]

    def disturbed(at: float) -> bool:
        later = bisect_left(begins, at)
        return later > 0 and merged[later - 1][1] > at

    return [delay for delay in found if not disturbed(delay[0])]


def normal_seconds(found: Iterable[Delay], injuries: Iterable[Injury]) -> float:
    """Within this time, events come as usual on this machine."""
    return max(NORMAL_SECONDS, NORMAL_MEDIANS * percentile(undisturbed(found, injuries), 50))


def recoveries(found: Sequence[Delay], injuries: Sequence[Injury], ends_at: float) -> list[Recovery]:
    """One for each fault, by their end. `ends_at` is the time of the last write."""
    ordered = sorted(injuries, key=lambda injury: injury.ended)
    normal = normal_seconds(found, injuries)
    return [_recovery(found, injury, ordered, ends_at, normal) for injury in ordered]


def duplicates_by_fault(history: History, injuries: Iterable[Injury]) -> dict[str, int]:
    """Duplicates, by the kind of the last fault that had begun when they came."""
    ordered = sorted(injuries, key=lambda injury: injury.began)
    begins = [injury.began for injury in ordered]
    firsts = first_receipts(history.events)
    found: Counter[str] = Counter()
    for event in history.events:
        if event is not firsts[event.topic, event.event_id]:
            before = bisect_left(begins, event.received_at)
            found[ordered[before - 1].kind if before else "none"] += 1
    return dict(found.most_common())


def percentile(ordered: Sequence[float], percent: float) -> float:
    """Of values in order; 0 when there are none."""
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))] if ordered else 0.0


def _recovery(
    found: Sequence[Delay], injury: Injury, injuries: Sequence[Injury], ends_at: float, normal: float
) -> Recovery:
    others = [other for other in injuries if other is not injury]
    if any(other.began <= injury.ended and other.ended >= injury.began for other in others):
        return Recovery(injury, None)
    next_begin = min((other.began for other in others if other.began > injury.ended), default=ends_at)
    # A write shortly before the next fault may be late because of that one.
    until = min(next_begin, injury.ended + LONGEST_SECONDS, ends_at) - normal
    after = found[bisect_left(found, (injury.ended, -1.0)) : bisect_left(found, (until, -1.0))]
    late = _in_slow_patches(after, normal)
    last_late = _last_late(found, injury, until, normal)
    first_good = late[-1] + 1 if late else 0
    if first_good >= len(after):
        return Recovery(injury, None, max(0.0, until - injury.ended), last_late)
    seconds = after[first_good][0] - injury.ended
    return Recovery(injury, seconds, seconds, last_late)


def _last_late(found: Sequence[Delay], injury: Injury, until: float, normal: float) -> float:
    """Seconds from the end of the fault to the receipt of the last event that was late around it."""
    began, ended = injury.began - normal, min(until, injury.ended + AFTERMATH_SECONDS)
    around = found[bisect_left(found, (began, -1.0)) : bisect_left(found, (ended, -1.0))]
    received = (at + seconds for at, seconds in around if seconds > normal)
    return max(0.0, max(received, default=0.0) - injury.ended)


def _in_slow_patches(found: Sequence[Delay], normal: float) -> list[int]:
    """The places of events that were late, as were more than a tenth of those in the seconds up to each."""
    times = [at for at, _ in found]
    late_before = [0, *accumulate(seconds > normal for _, seconds in found)]

    def is_in_patch(place: int) -> bool:
        first = bisect_left(times, times[place] - PATCH_SECONDS)
        return late_before[place + 1] - late_before[first] > PATCH_PART * (place + 1 - first)

    return [place for place, (_, seconds) in enumerate(found) if seconds > normal and is_in_patch(place)]


def _merged(windows: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Overlapping windows made one."""
    merged = list(windows[:1])
    for (_, _), (began, ended) in pairwise(windows):
        if began <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], ended))
        else:
            merged.append((began, ended))
    return merged
