"""What a chaos run says in the end: any broken promise makes it a failure."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from chaos.check import Verdict
from chaos.history import Edit, Event, History, Injury, Outcome, Write
from chaos.machine import Load
from chaos.plan import Action, Kind, Rule
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
PLACE = ("media", "a.mp4", "ObjectCreated:Put", "all")
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
    assert (
        "slow       kill JVM at 00:02, at least 7.5 s: after 5 s 0 of 0 events late, at most 0.0 s; "
        + processors
    ) in lines(told)


def test_of_a_recovery_that_took_long_it_is_told_how_much_came_late_after_the_time_it_should_have_taken() -> (
    None
):
    slow = {14.0: 3.0, 18.5: 0.7}
    writes = [replace(WRITE, ended=at, request_id=str(at)) for at in (13.0, 14.0, 17.5, 18.0, 18.5, 19.0)]
    events = [
        Event(
            "films",
            each.request_id or "",
            b"",
            each.ended + slow.get(each.ended, 0.1),
            *PLACE,
            each.request_id or "",
            None,
        )
        for each in writes
    ]
    edits = [Edit("media", (Rule("all", "films", ("s3:ObjectCreated:*",)),), 0.0, 1.0)]
    history = History(writes=writes, edits=edits, events=events)
    told = summary(Run(7, 2.0, "sqlite", [], replace(GOOD, history=history, ends_at=30.0)))
    (found,) = told["recoveries_over_target"]
    assert (found["seconds"], found["seen"]) == (7.0, True)
    assert (found["events_after_target"], found["late_after_target"], found["longest_seconds"]) == (4, 1, 0.7)


def test_where_processors_are_not_watched_that_is_said() -> None:
    assert "processors not watched" in lines(summary(Run(7, 2.0, "sqlite", [], GOOD)))


def test_what_was_lost_is_told_and_kept(tmp_path: Path) -> None:
    told = summary(Run(7, 2.0, "sqlite", [], LOST))
    violation = "lost at films: ObjectCreated:Put media/a.mp4 (request request-1)"
    assert f"violation  {violation}" in lines(told)
    write_report(told, tmp_path / "report.json")
    assert json.loads((tmp_path / "report.json").read_text())["violations"] == [violation]
