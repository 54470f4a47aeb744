"""The schedule of a chaos run: it follows from the seed alone."""

from itertools import combinations

import pytest
from chaos.plan import Action, Kind, RulesStep, Schedule, Versioning
from chaos.schedule import SHAPES, make_schedule

TOPICS = ["http-0", "http-1", "amqp-0"]


@pytest.fixture(scope="module")
def hour() -> Schedule:
    return make_schedule(7, 3600, TOPICS)


def test_the_same_seed_gives_the_same_schedule() -> None:
    assert make_schedule(7, 120, TOPICS) == make_schedule(7, 120, TOPICS)


def test_another_seed_gives_another_schedule() -> None:
    assert make_schedule(7, 120, TOPICS) != make_schedule(8, 120, TOPICS)


def test_a_longer_run_begins_as_the_shorter_one(hour: Schedule) -> None:
    short = make_schedule(7, 120, TOPICS)
    assert hour.buckets == short.buckets
    assert hour.faults[: len(short.faults)] == short.faults
    assert hour.edits[: len(short.edits)] == short.edits
    assert all(
        longer[: len(shorter)] == shorter for longer, shorter in zip(hour.lanes, short.lanes, strict=True)
    )


def test_an_hour_has_more_than_five_hundred_faults_of_every_kind(hour: Schedule) -> None:
    assert len(hour.faults) > 500
    assert {fault.kind for fault in hour.faults} == set(Kind) == set(SHAPES)


def test_without_brokers_and_database_there_are_as_many() -> None:
    fewer = [kind for kind in Kind if not kind.startswith(("broker", "database"))]
    assert len(make_schedule(7, 1200, TOPICS[:2], fewer).faults) > 500 / 3


def test_every_action_is_done_in_buckets_of_every_versioning(hour: Schedule) -> None:
    done = {(step.action, step.bucket.versioning) for lane in hour.lanes for step in lane}
    assert done == {(action, versioning) for action in Action for versioning in Versioning}


def test_kinds_that_are_not_asked_for_do_not_come() -> None:
    faults = make_schedule(7, 600, TOPICS, [Kind.KILL_WORKER, Kind.WAY_CUT]).faults
    assert {fault.kind for fault in faults} == {Kind.KILL_WORKER, Kind.WAY_CUT}
    assert make_schedule(7, 60, TOPICS, []).faults == ()


def test_all_is_over_when_the_run_ends(hour: Schedule) -> None:
    assert max(fault.ends_at_seconds for fault in hour.faults) <= hour.seconds
    assert max(step.at_seconds for lane in hour.lanes for step in lane) < hour.seconds


def test_no_event_is_taken_by_two_rules_of_a_set(hour: Schedule) -> None:
    """S3 refuses rules that overlap."""
    keys = {step.key for lane in hour.lanes for step in lane}
    names = ["ObjectCreated:Put", "ObjectCreated:Copy", "ObjectRemoved:Delete", "ObjectTagging:Put"]
    sets = {edit.rules for edit in hour.edits if isinstance(edit, RulesStep)}
    assert len(sets) > 5
    for rules in sets:
        for first, second in combinations(rules, 2):
            assert not [
                key
                for key in keys
                for name in names
                if first.accepts(name, key) and second.accepts(name, key)
            ]
