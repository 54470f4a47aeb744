"""The judge of a chaos run: each kind of violation is found in a history that has it, and nothing else."""

import json
from dataclasses import replace
from math import inf

import pytest
from chaos.check import Verdict, check
from chaos.history import Edit, Event, History, Outcome, Write, event_from_message
from chaos.plan import Rule

CREATED = Rule("made", "films", ("s3:ObjectCreated:*",))
OTHER = Rule("made", "books", ("s3:ObjectCreated:*",))
START = Edit("media", (CREATED,), 0, 0)
PUT = Write("media", "a.mp4", "ObjectCreated:Put", 10, 11, Outcome.ACKNOWLEDGED, "request-1")
CAME = Event(
    "films", "id-1", b"digest", 11.1, "media", "a.mp4", "ObjectCreated:Put", "made", "request-1", "01"
)


def judged(writes: list[Write], events: list[Event], *edits: Edit) -> Verdict:
    return check(History(writes, [START, *edits], events))


def test_a_write_whose_event_came_is_fine() -> None:
    verdict = judged([PUT], [CAME])
    assert not verdict.failed
    assert (verdict.events, verdict.required, verdict.duplicates) == (1, 1, 0)


def test_an_acknowledged_write_without_an_event_is_lost() -> None:
    assert judged([PUT], []).lost == [(PUT, "films")]


def test_an_event_at_another_topic_does_not_help_the_one_that_waits_for_it() -> None:
    verdict = judged([PUT], [replace(CAME, topic="books")])
    assert verdict.lost == [(PUT, "films")]
    assert [why for _, why in verdict.phantoms] == ["at a topic that no rule named"]


def test_of_a_multi_delete_each_key_must_arrive() -> None:
    other = replace(PUT, key="b.mp4")
    assert judged([PUT, other], [CAME]).lost == [(other, "films")]


@pytest.mark.parametrize("outcome", [Outcome.REFUSED, Outcome.UNKNOWN])
def test_a_write_that_was_not_acknowledged_need_not_arrive(outcome: Outcome) -> None:
    assert not judged([replace(PUT, outcome=outcome)], []).failed


def test_a_write_that_no_rule_accepts_need_not_arrive_and_must_not() -> None:
    deleted = replace(PUT, event_name="ObjectRemoved:Delete")
    assert not judged([deleted], []).failed
    assert judged([deleted], [replace(CAME, name="ObjectRemoved:Delete")]).phantoms


def test_an_event_without_a_write_is_a_phantom() -> None:
    assert judged([], [CAME]).phantoms == [(CAME, "no write")]


def test_an_event_of_a_refused_write_is_a_phantom() -> None:
    refused = replace(PUT, outcome=Outcome.REFUSED)
    assert judged([refused], [CAME]).phantoms == [(CAME, "of a write that was refused")]


def test_an_event_with_the_name_of_another_operation_is_a_phantom() -> None:
    wrong = replace(CAME, name="ObjectCreated:Copy")
    assert judged([PUT], [wrong]).phantoms == [(wrong, "called ObjectCreated:Copy and not ObjectCreated:Put")]


def test_a_write_without_an_answer_may_have_one_event_and_no_more() -> None:
    unknown = replace(PUT, outcome=Outcome.UNKNOWN, request_id=None)
    second = replace(CAME, event_id="id-2", request_id="request-2")
    assert not judged([unknown], [CAME]).failed
    assert judged([unknown], [CAME, second]).phantoms == [(second, "no write")]


def test_a_write_without_an_answer_may_not_arrive_at_any_topic() -> None:
    unknown = replace(PUT, outcome=Outcome.UNKNOWN, request_id=None)
    astray = replace(CAME, topic="books")
    assert judged([unknown], [astray]).phantoms == [(astray, "at a topic that no rule named")]


def test_a_second_event_id_for_one_write_is_a_phantom() -> None:
    second = replace(CAME, event_id="id-2")
    assert judged([PUT], [CAME, second]).phantoms == [(second, "a second event of one write")]


def test_the_same_event_again_is_a_duplicate_and_no_failure() -> None:
    verdict = judged([PUT], [CAME, replace(CAME, received_at=12.0)])
    assert (verdict.duplicates, verdict.events, verdict.failed) == (1, 1, False)


def test_a_duplicate_with_other_bytes_is_found() -> None:
    assert judged([PUT], [CAME, replace(CAME, digest=b"other")]).different == ["id-1"]


@pytest.mark.parametrize("topic", ["films", "books"])
def test_while_rules_change_the_old_and_the_new_are_both_right(topic: str) -> None:
    edit = Edit("media", (OTHER,), 9, 10.5)
    assert not judged([PUT], [replace(CAME, topic=topic)], edit).failed
    assert not judged([PUT], [], edit).failed


def test_a_rule_that_stays_while_others_change_is_owed_its_event() -> None:
    edit = Edit("media", (CREATED, Rule("gone", "books", ("s3:ObjectRemoved:*",))), 9, 10.5)
    assert judged([PUT], [], edit).lost == [(PUT, "films")]


def test_rules_hold_for_the_first_write_after_they_were_acknowledged() -> None:
    edit = Edit("media", (OTHER,), 8, 9)
    verdict = judged([PUT], [CAME], edit)
    assert verdict.lost == [(PUT, "books")]
    assert [why for _, why in verdict.phantoms] == ["at a topic that no rule named"]


def test_rules_that_were_sent_after_the_write_do_not_matter_to_it() -> None:
    assert judged([PUT], [], Edit("media", (OTHER,), 12, 13)).lost == [(PUT, "films")]


def test_rules_that_were_never_acknowledged_are_in_flight_for_ever() -> None:
    assert not judged([PUT], [], Edit("media", (), 5, inf)).failed


def test_sequencers_that_do_not_follow_the_order_of_writes_are_found() -> None:
    later = replace(PUT, began=12, ended=13, request_id="request-2")
    smaller = replace(CAME, event_id="id-2", request_id="request-2", sequencer="00")
    assert judged([PUT, later], [CAME, smaller]).disorder == [(PUT, later)]
    greater = replace(smaller, sequencer="02")
    assert not judged([PUT, later], [CAME, greater]).failed


def test_writes_at_the_same_time_have_no_order() -> None:
    meanwhile = replace(PUT, began=10.5, ended=13, request_id="request-2")
    smaller = replace(CAME, event_id="id-2", request_id="request-2", sequencer="00")
    assert not judged([PUT, meanwhile], [CAME, smaller]).failed


def test_disorder_is_found_behind_a_write_that_took_long() -> None:
    """The one that ends last is not the one with the greatest sequencer."""
    long = replace(PUT, began=1, ended=20, request_id="request-0")
    later = replace(PUT, began=30, ended=31, request_id="request-2")
    events = [
        CAME,
        replace(CAME, event_id="id-0", request_id="request-0", sequencer="000"),
        replace(CAME, event_id="id-2", request_id="request-2", sequencer="001"),
    ]
    assert judged([long, PUT, later], events).disorder == [(PUT, later)]


def test_a_message_becomes_an_event() -> None:
    record = {
        "eventName": "ObjectCreated:Put",
        "responseElements": {"x-amz-request-id": "request-1"},
        "s3": {
            "configurationId": "made",
            "bucket": {"name": "media"},
            "object": {"key": "a+b%2Bc.mp4", "sequencer": "01"},
        },
    }
    event = event_from_message("films", "id-1", json.dumps({"Records": [record]}).encode(), 11.1)
    assert (event.key, event.request_id, event.sequencer) == ("a b+c.mp4", "request-1", "01")


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"Records": []}', b'{"Records": [{}]}'])
def test_what_is_no_event_is_told_apart(body: bytes) -> None:
    with pytest.raises(ValueError, match="no event"):
        event_from_message("films", "id-1", body, 11.1)
