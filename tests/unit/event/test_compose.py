"""compose: golden bytes, one event id a change and rule, nothing private."""

import json
from urllib.parse import unquote_plus

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bucketwire.event.change import decode_change, encode_change
from bucketwire.event.compose import compose, event_id
from bucketwire.event.dialect import AWS, CEPH, DIALECTS
from bucketwire.event.formats.s3 import event_time
from bucketwire.event.installation import Installation
from bucketwire.event.name import Operation
from factories import change, rule, state, topic
from golden.cases import CHANGES, path, rendered

KEYS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)


@pytest.mark.parametrize("case", CHANGES)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_bytes_are_as_in_the_golden_file(case: str, dialect: str) -> None:
    assert rendered(case, dialect) + b"\n" == path(case, dialect).read_bytes()


def test_the_same_change_and_rule_give_the_same_message_after_a_trip_through_the_stream() -> None:
    original = change("a key", old=state(3))
    subscriptions = [(rule(), topic())]
    assert compose(decode_change(encode_change(original)), subscriptions, Installation(AWS)) == compose(
        original, subscriptions, Installation(AWS)
    )


def test_event_ids_differ_by_change_and_by_rule() -> None:
    first, later = change(committed_at_ns=1), change(committed_at_ns=2)
    ids = {event_id(each, rule(id=name)) for each in (first, later, change("other")) for name in ("a", "b")}
    assert len(ids) == 6


def test_each_subscription_gets_its_message_in_order() -> None:
    subscriptions = [(rule(id="a"), topic(name="one")), (rule(id="b"), topic(name="two"))]
    messages = compose(change(), subscriptions, Installation(AWS))
    assert [message.topic_arn for message in messages] == [topic(name="one").arn, topic(name="two").arn]
    ids = [json.loads(message.body)["Records"][0]["s3"]["configurationId"] for message in messages]
    assert ids == ["a", "b"]


@given(key=KEYS)
def test_any_key_can_be_read_back_from_the_record(key: str) -> None:
    for dialect, decode in ((AWS, unquote_plus), (CEPH, str)):
        (message,) = compose(change(key), [(rule(), topic())], Installation(dialect))
        written = json.loads(message.body)["Records"][0]["s3"]["object"]["key"]
        assert decode(written) == key
        assert message.key == key


def test_a_version_id_is_told_when_the_version_is_not_the_null_version() -> None:
    versioned = msgspec.structs.replace(change(), new=state(version_id="v1"))
    (message,) = compose(versioned, [(rule(), topic())], Installation(AWS))
    assert json.loads(message.body)["Records"][0]["s3"]["object"]["versionId"] == "v1"


def test_times_are_cut_not_rounded() -> None:
    assert event_time(1_763_238_280_999_999_999, 3) == "2025-11-15T20:24:40.999Z"
    assert event_time(1_763_238_280_000_001_000, 6) == "2025-11-15T20:24:40.000001Z"


def test_sequencers_sort_as_the_times_do() -> None:
    times = [1, 255, 1 << 40, 1_763_238_280_123_456_789]
    written = [change(committed_at_ns=time).sequencer for time in times]
    assert written == sorted(written)
    assert {len(sequencer) for sequencer in written} == {16}


def test_size_and_etag_of_a_removed_object_are_told_where_the_dialect_tells_them() -> None:
    removed = change(operation=Operation.DELETE, old=state(7))
    told = {}
    for dialect in (AWS, CEPH):
        (message,) = compose(removed, [(rule(), topic())], Installation(dialect))
        told[dialect.name] = json.loads(message.body)["Records"][0]["s3"]["object"].get("size")
    assert told == {"aws": None, "ceph": 7}
