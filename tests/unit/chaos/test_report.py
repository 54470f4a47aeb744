"""What a chaos run says in the end: any broken promise makes it a failure."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from chaos.check import Verdict
from chaos.history import History, Injury, Outcome, Write
from chaos.machine import Load
from chaos.plan import Action, Kind
from chaos.report import Findings, Run, failures, lines, summary, write_report

WRITE = Write("media", "a.mp4", "ObjectCreated:Put", 10, 11, Outcome.ACKNOWLEDGED, "request-1")
GOOD = Findings(
    history=History(writes=[WRITE]),
    injuries=[Injury(Kind.KILL_JVM, 12.0, 12.0)],
    missed=[],
    actions=[(Action.PUT, Outcome.ACKNOWLEDGED)],
    edits=0,
    began=10.0,
    ends_at=20.0,
    verdict=Verdict(events=200, duplicates=1, required=200),
    dead_letters=0.0,
    still_parked=0.0,
    problems=[],
    cold_starts=[9.5, 12.0, 11.0],
    loads=[],
)
LOST = replace(GOOD, verdict=Verdict(lost=[(WRITE, "films")]))


def test_a_run_without_findings_has_passed() -> None:
    assert failures(GOOD) == []
    told = summary(Run(7, 2.0, "sqlite", ["amqp"], GOOD))
    assert (told["passed"], told["seed"], told["duplicates_percent"]) == (True, 7, 0.5)
    assert lines(told)[-1] == "passed"


@pytest.mark.parametrize(
    ("findings", "failure"),
    [
        (LOST, "lost: 1"),
        (replace(GOOD, verdict=Verdict(different=["id-1"])), "with different bytes: 1"),
        (replace(GOOD, verdict=Verdict(disorder=[(WRITE, WRITE)])), "out of order: 1"),
        (replace(GOOD, history=History(strange=["films: b'?'"])), "no event at all: 1"),
        (replace(GOOD, dead_letters=2.0), "dead letters: 2.0"),
        (replace(GOOD, dead_letters=None), "dead letters: None"),
        (replace(GOOD, still_parked=3.0), "still parked: 3.0"),
        (replace(GOOD, missed=[Kind.KILL_GATEWAY] * 3), "never hit: kill gateway"),
        (replace(GOOD, problems=["OSError: it broke"]), "OSError: it broke"),
    ],
)
def test_every_broken_promise_is_a_failure(findings: Findings, failure: str) -> None:
    assert failures(findings) == [failure]
    assert lines(summary(Run(7, 2.0, "sqlite", [], findings)))[-1] == "FAILED"


def test_cold_starts_are_told_apart_from_recoveries() -> None:
    told = summary(Run(7, 2.0, "sqlite", [], GOOD))
    assert told["cold_starts_seconds"] == {"count": 3, "p50": 11.0, "max": 12.0}
    assert "starts     3 cold: median  11.00 s, longest  12.00 s" in lines(told)
    none = summary(Run(7, 2.0, "sqlite", [], replace(GOOD, cold_starts=[])))
    assert none["cold_starts_seconds"] == {"count": 0, "p50": None, "max": None}


def test_recoveries_that_took_longer_than_wanted_are_counted_also_where_their_end_was_not_seen() -> None:
    injuries = [Injury(Kind.KILL_JVM, 12.0, 12.0), Injury(Kind.KILL_WORKER, 19.0, 19.0)]
    table = summary(Run(7, 2.0, "sqlite", [], replace(GOOD, injuries=injuries)))["recovery"]
    assert (table["kill JVM"]["over_target"], table["kill JVM"]["not_seen"]) == (1, 1)
    assert (table["kill worker"]["over_target"], table["kill worker"]["not_seen"]) == (0, 1)
    assert table["all"]["over_target"] == 1


def test_what_the_host_took_stands_beside_a_recovery_that_took_long() -> None:
    loads = [Load(at, 2 * at, 1.5 * at, 0.25 * at) for at in range(9, 22)]
    told = summary(Run(7, 2.0, "sqlite", [], replace(GOOD, loads=loads)))
    processors = "processors worked 75.0 % of the time, 12.5 % taken by the host"
    assert processors in lines(told)
    assert f"slow       kill JVM at 00:02, at least 7.5 s; {processors}" in lines(told)


def test_where_processors_are_not_watched_that_is_said() -> None:
    assert "processors not watched" in lines(summary(Run(7, 2.0, "sqlite", [], GOOD)))


def test_what_was_lost_is_told_and_kept(tmp_path: Path) -> None:
    told = summary(Run(7, 2.0, "sqlite", [], LOST))
    violation = "lost at films: ObjectCreated:Put media/a.mp4 (request request-1)"
    assert f"violation  {violation}" in lines(told)
    write_report(told, tmp_path / "report.json")
    assert json.loads((tmp_path / "report.json").read_text())["violations"] == [violation]
