"""What a run has shown, for people and as JSON; and whether it is a failure."""

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chaos.check import Verdict, first_receipts
from chaos.history import History, Injury, Outcome, Write
from chaos.machine import Load, shares
from chaos.measure import (
    Delay,
    Recovery,
    delays,
    duplicates_by_fault,
    late_by_chance,
    normal_seconds,
    percentile,
    recoveries,
    undisturbed,
)
from chaos.plan import Action, Kind

SHOWN = 20
"""Of a long list of violations, so many are told."""
RECOVERY_TARGET_SECONDS = 5.0
OFTEN = 3
"""A kind of fault that was tried so often, and never hit anything, was not tested."""


@dataclass(slots=True)
class Findings:
    """What was done, and what came of it."""

    history: History
    injuries: list[Injury]
    missed: list[Kind]
    """Faults that hit nothing."""
    actions: list[tuple[Action, Outcome]]
    edits: int
    began: float
    ends_at: float
    """When the last write was done."""
    verdict: Verdict
    dead_letters: float | None
    """None when the gateway could not say."""
    still_parked: float | None
    problems: list[str]
    """What went wrong in the run itself."""
    cold_starts: list[float]
    """How many seconds the system needed to be ready, each time that everything had been killed."""
    loads: list[Load]


@dataclass(frozen=True, slots=True)
class Run:
    """What was asked for, and what was found."""

    seed: int
    minutes: float
    metabase: str
    brokers: Sequence[str]
    findings: Findings
    standby: bool = True


def failures(run: Findings) -> list[str]:
    """What makes this run a failure, in one line each; empty when every promise was kept."""
    verdict = run.verdict
    found = {
        "lost": len(verdict.lost),
        "phantom": len(verdict.phantoms),
        "with different bytes": len(verdict.different),
        "out of order": len(verdict.disorder),
        "no event at all": len(run.history.strange),
        "dead letters": run.dead_letters,
        "still parked": run.still_parked,
    }
    counted = [f"{name}: {count}" for name, count in found.items() if count != 0]
    vain = set(run.missed) - {injury.kind for injury in run.injuries}
    never = [f"never hit: {kind}" for kind in sorted(vain) if run.missed.count(kind) >= OFTEN]
    return [*counted, *never, *run.problems]


def summary(run: Run) -> dict[str, Any]:
    """Everything worth keeping."""
    found = run.findings
    verdict = found.verdict
    late = delays(found.history)
    recovered = recoveries(late, found.injuries, found.ends_at)
    normal = normal_seconds(late, found.injuries)
    return {
        "seed": run.seed,
        "minutes": run.minutes,
        "metabase": run.metabase,
        "destinations": ["http", *run.brokers],
        "standby": run.standby,
        "passed": not failures(found),
        "writes": dict(Counter(write.outcome for write in found.history.writes)),
        "requests": _counted(found.actions),
        "edits": found.edits,
        "events": verdict.events,
        "required": verdict.required,
        "duplicates": verdict.duplicates,
        "duplicates_percent": round(100 * verdict.duplicates / max(1, verdict.events), 2),
        "duplicates_by_fault": duplicates_by_fault(found.history, found.injuries),
        "duplicates_by_topic": _duplicates_by_topic(found.history),
        "lost": len(verdict.lost),
        "phantoms": len(verdict.phantoms),
        "different_bytes": len(verdict.different),
        "out_of_order": len(verdict.disorder),
        "strange": found.history.strange[:SHOWN],
        "dead_letters": found.dead_letters,
        "still_parked": found.still_parked,
        "faults": len(found.injuries),
        "faults_that_hit_nothing": len(found.missed),
        "latency_undisturbed_seconds": _percentiles(undisturbed(late, found.injuries)),
        "latency_normal_seconds": round(normal, 3),
        "late_by_chance_percent": round(100 * late_by_chance(late, found.injuries, normal), 1),
        "latency_of_all_seconds": _percentiles(sorted(seconds for _, seconds in late)),
        "cold_starts_seconds": _cold_starts(found.cold_starts),
        "recovery": _recovery_table(recovered),
        "recoveries_over_target": [_slow(found, late, normal, each) for each in recovered if _is_slow(each)],
        "processors": _processors(found, found.began, found.ends_at),
        "violations": _violations(verdict),
        "problems": found.problems,
    }


def write_report(told: Mapping[str, Any], path: Path) -> None:
    """Keep the summary."""
    path.write_text(json.dumps(told, indent=2, ensure_ascii=False) + "\n")


def lines(told: Mapping[str, Any]) -> list[str]:
    """The summary as a person reads it."""
    quiet, cold = told["latency_undisturbed_seconds"], told["cold_starts_seconds"]
    over = f"over {RECOVERY_TARGET_SECONDS:g} s"
    return [
        f"seed       {told['seed']}",
        f"writes     {_words(told['writes'])}; {told['edits']} changes of rules and endpoints",
        f"events     {told['events']} ({told['required']} had to come)",
        f"duplicates {told['duplicates']} ({told['duplicates_percent']} %)",
        *(f"           {count} after: {kind}" for kind, count in told["duplicates_by_fault"].items()),
        f"lost       {told['lost']}",
        f"phantoms   {told['phantoms']}",
        f"disorder   {told['out_of_order']} out of order, {told['different_bytes']} with different bytes",
        f"queue      {told['dead_letters']} dead letters, {told['still_parked']} still parked",
        f"latency    p50 {quiet['p50']} s, p99 {quiet['p99']} s, far from faults ({quiet['count']} events)",
        f"normal     within {told['latency_normal_seconds']} s",
        f"by chance  later events in {told['late_by_chance_percent']} % of the seconds far from faults",
        f"faults     {told['faults']}, {told['faults_that_hit_nothing']} more hit nothing",
        f"starts     {cold['count']} cold: median {_seconds(cold['p50'])}, longest {_seconds(cold['max'])}",
        f"processors {_processors_line(told['processors'])}",
        f"  {'kind':34} count   recovery p50, max   {over}  not seen   last late   {over}",
        *(_recovery_line(kind, row) for kind, row in told["recovery"].items()),
        *(f"slow       {_slow_line(each)}" for each in told["recoveries_over_target"]),
        *(f"violation  {each}" for each in told["violations"]),
        *(f"problem    {each}" for each in told["problems"]),
        "passed" if told["passed"] else "FAILED",
    ]


def _recovery_line(kind: str, row: Mapping[str, Any]) -> str:
    return (
        f"  {kind:34} {row['count']:5}   {_seconds(row['p50'])}  {_seconds(row['max'])}"
        f"  {row['over_target']:8}  {row['not_seen']:8}"
        f"    {_seconds(row['last_late_max'])}  {row['last_late_over_target']:8}"
    )


def _cold_starts(seconds: Sequence[float]) -> dict[str, float | None]:
    ordered = sorted(seconds)
    return {"count": len(ordered), **_middle_and_end(ordered)}


def _middle_and_end(ordered: Sequence[float]) -> dict[str, float | None]:
    return {
        "p50": round(percentile(ordered, 50), 2) if ordered else None,
        "max": round(ordered[-1], 2) if ordered else None,
    }


def _recovery_table(recovered: Sequence[Recovery]) -> dict[str, dict[str, Any]]:
    kinds: dict[str, list[Recovery]] = defaultdict(list)
    for recovery in recovered:
        kinds[recovery.injury.kind].append(recovery)
    kinds["all"] = list(recovered)
    return {kind: _recovery_row(some) for kind, some in kinds.items()}


def _recovery_row(found: Sequence[Recovery]) -> dict[str, Any]:
    seen = sorted(recovery.seconds for recovery in found if recovery.seconds is not None)
    last_late = [each.last_late_seconds for each in found if each.last_late_seconds is not None]
    return {
        "count": len(found),
        **_middle_and_end(seen),
        "over_target": sum(map(_is_slow, found)),
        "not_seen": len(found) - len(seen),
        "last_late_max": round(max(last_late), 2) if last_late else None,
        "last_late_over_target": sum(seconds > RECOVERY_TARGET_SECONDS for seconds in last_late),
    }


def _is_slow(recovery: Recovery) -> bool:
    return recovery.at_least_seconds > RECOVERY_TARGET_SECONDS


def _slow(found: Findings, late: Sequence[Delay], normal: float, recovery: Recovery) -> dict[str, Any]:
    """One that took longer than wanted: what came late after that time, and how busy the machine was."""
    ended = recovery.injury.ended
    recovered_at = ended + recovery.at_least_seconds
    since = [seconds for at, seconds in late if ended + RECOVERY_TARGET_SECONDS <= at <= recovered_at]
    return {
        "kind": recovery.injury.kind,
        "at_seconds": round(ended - found.began, 1),
        "seconds": round(recovery.at_least_seconds, 2),
        "seen": recovery.seconds is not None,
        "events_after_target": len(since),
        "late_after_target": sum(seconds > normal for seconds in since),
        "longest_seconds": round(max(since, default=0.0), 2),
        "processors": _processors(found, ended, recovered_at),
    }


def _slow_line(slow: Mapping[str, Any]) -> str:
    minutes, seconds = divmod(int(slow["at_seconds"]), 60)
    took = f"{'' if slow['seen'] else 'at least '}{slow['seconds']} s"
    return (
        f"{slow['kind']} at {minutes:02}:{seconds:02}, {took}: after {RECOVERY_TARGET_SECONDS:g} s"
        f" {slow['late_after_target']} of {slow['events_after_target']} events late,"
        f" at most {slow['longest_seconds']} s; processors {_processors_line(slow['processors'])}"
    )


def _processors(found: Findings, began: float, ended: float) -> dict[str, float | None]:
    share = shares(found.loads, began, ended)
    return {
        "worked_percent": share and round(100 * share.worked, 1),
        "stolen_percent": share and round(100 * share.stolen, 1),
    }


def _processors_line(told: Mapping[str, float | None]) -> str:
    if told["worked_percent"] is None:
        return "not watched"
    return f"worked {told['worked_percent']} % of the time, {told['stolen_percent']} % taken by the host"


def _duplicates_by_topic(history: History) -> dict[str, int]:
    received = Counter(event.topic for event in history.events)
    received.subtract(topic for topic, _ in first_receipts(history.events))
    return {topic: count for topic, count in sorted(received.items()) if count}


def _percentiles(ordered: Sequence[float]) -> dict[str, float]:
    values = {f"p{percent}": round(percentile(ordered, percent), 3) for percent in (50, 95, 99)}
    return {"count": len(ordered), **values}


def _counted(actions: Sequence[tuple[Action, Outcome]]) -> dict[str, dict[str, int]]:
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for action, outcome in actions:
        found[action][outcome] += 1
    return {action: dict(counts) for action, counts in sorted(found.items())}


def _violations(verdict: Verdict) -> list[str]:
    return [
        *(f"lost at {topic}: {_write(write)}" for write, topic in verdict.lost[:SHOWN]),
        *(
            f"phantom, {why}: {event.event_id} {event.name} {event.bucket}/{event.key} at {event.topic}"
            for event, why in verdict.phantoms[:SHOWN]
        ),
        *(f"different bytes: {event_id}" for event_id in verdict.different[:SHOWN]),
        *(
            f"out of order: {_write(first)} then {_write(second)}"
            for first, second in verdict.disorder[:SHOWN]
        ),
    ]


def _write(write: Write) -> str:
    return f"{write.event_name} {write.bucket}/{write.key} (request {write.request_id})"


def _words(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))


def _seconds(value: float | None) -> str:
    return f"{value:6.2f} s" if value is not None else "       -"
