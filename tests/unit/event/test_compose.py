"""compose: golden bytes, one event id a change and rule, nothing private."""

import json
from datetime import UTC, datetime
from urllib.parse import quote_plus, unquote_plus

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bucketwire.event.change import decode_change, encode_change
from bucketwire.event.compose import Subscription, event_id
from bucketwire.event.dialect import AWS, CEPH, DIALECTS
from bucketwire.event.formats.s3 import url_encoded
from bucketwire.event.formats.stamp import event_time, stamp
from bucketwire.event.installation import Installation
from bucketwire.event.name import Operation
from factories import change, rule, state, topic
from golden.cases import CHANGES, FOLDER, FORMATS, FORMS, composed, golden, lines, path

KEYS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)
EVERY_TOPIC = list(FORMS.values())


@pytest.mark.parametrize("case", CHANGES)
@pytest.mark.parametrize("form", FORMATS)
def test_bytes_are_as_in_the_golden_file(case: str, form: str) -> None:
    assert list(lines(case, form)) == golden(case, form)


def test_there_is_no_golden_file_without_a_case() -> None:
    assert set(FOLDER.glob("*.json*")) == {path(case) for case in CHANGES}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("form", EVERY_TOPIC, ids=str)
def test_the_event_id_is_one_for_a_change_and_a_rule_whatever_the_format(
    dialect: str, form: dict[str, str]
) -> None:
    message = composed("put", dialect, **form)
    assert message.event_id == event_id(CHANGES["put"], rule(id="ObjectEvents"))
    assert message.key == CHANGES["put"].key


def test_event_ids_stay_what_they_have_always_been() -> None:
    bucket = msgspec.structs.replace(change().bucket, id="bucket-id")
    about = msgspec.structs.replace(CHANGES["delete-missing"], bucket=bucket)
    assert event_id(about, rule(id="ObjectEvents")) == "187847dfad211d1579bb74c26c450dcd"


def test_event_ids_begin_with_the_sequencer_so_they_sort_by_time() -> None:
    times = [1, 255, 1 << 40, 1_763_238_280_123_456_789]
    ids = [event_id(change(committed_at_ns=time), rule()) for time in times]
    assert ids == sorted(ids)
    assert [each[:16].upper() for each in ids] == [stamp(time, 3, "").sequencer for time in times]


@pytest.mark.parametrize("form", EVERY_TOPIC, ids=str)
def test_an_ordered_topic_places_messages_by_the_raw_key(form: dict[str, str]) -> None:
    message = composed("put-odd-key", "aws", ordering="key", **form)
    assert message.partition_key == CHANGES["put-odd-key"].key.encode()


def test_a_topic_with_a_format_that_is_not_known_gets_the_s3_message() -> None:
    assert composed("put", "aws", format="unheard-of") == composed("put", "aws")


@pytest.mark.parametrize("form", EVERY_TOPIC, ids=str)
def test_sizes_beyond_the_reach_of_floating_point_are_exact(form: dict[str, str]) -> None:
    assert str(2**63 - 1).encode() in composed("put-huge", "aws", **form).body


@pytest.mark.parametrize("case", ["delete-described-before-image", "versioned-delete-before-image"])
def test_a_topic_that_asks_for_it_is_told_what_was_removed(case: str) -> None:
    told = json.loads(composed(case, "aws").body)["Records"][0]["s3"]["object"]
    before = CHANGES[case].old or CHANGES[case].previous
    assert before is not None
    assert (told["size"], told["eTag"]) == (before.size_bytes, before.etag)
    assert {pair["key"]: pair["val"] for pair in told["tags"]} == before.tags
    assert {pair["key"]: pair["val"] for pair in told["metadata"]} == {
        f"x-amz-meta-{name}": value for name, value in before.metadata.items()
    }


def test_the_order_in_which_a_backend_keeps_metadata_and_tags_does_not_show() -> None:
    original = CHANGES["put-described"]
    assert original.new is not None
    turned = msgspec.structs.replace(
        original.new,
        metadata=dict(reversed(original.new.metadata.items())),
        tags=dict(reversed(original.new.tags.items())),
    )
    for form in EVERY_TOPIC:
        subscription = rule(), topic(**form)
        first = Subscription(*subscription, Installation(CEPH)).compose(original)
        second = Subscription(*subscription, Installation(CEPH)).compose(
            msgspec.structs.replace(original, new=turned)
        )
        assert first == second


def test_the_same_change_and_rule_give_the_same_message_after_a_trip_through_the_stream() -> None:
    original = change("a key", old=state(3))
    shipped = decode_change(encode_change(original))
    compose = Subscription(rule(), topic(), Installation(AWS)).compose
    assert compose(shipped) == compose(original)


def test_event_ids_differ_by_change_by_rule_and_by_bucket() -> None:
    changes = [change(committed_at_ns=1), change(committed_at_ns=2)]
    bucket = msgspec.structs.replace(changes[0].bucket, id="another")
    changes += [msgspec.structs.replace(each, bucket=bucket) for each in changes]
    ids = {event_id(each, rule(id=name)) for each in changes for name in ("a", "b")}
    assert len(ids) == 8
    assert {len(each) for each in ids} == {32}


def test_a_message_names_its_topic_and_its_rule() -> None:
    message = Subscription(rule(id="a"), topic(name="one"), Installation(AWS)).compose(change())
    assert message.topic_arn == topic(name="one").arn
    assert json.loads(message.body)["Records"][0]["s3"]["configurationId"] == "a"


@pytest.mark.parametrize("first", range(0, 0x110000, 0x8000))
def test_every_code_point_can_be_read_back(first: int) -> None:
    points = (point for point in range(first, first + 0x8000) if not 0xD800 <= point <= 0xDFFF)
    key = "".join(map(chr, points))
    for dialect, decode in ((AWS, unquote_plus), (CEPH, str)):
        message = Subscription(rule(), topic(), Installation(dialect)).compose(change(key))
        assert decode(json.loads(message.body)["Records"][0]["s3"]["object"]["key"]) == key
    message = Subscription(rule(), topic(format="cos"), Installation(AWS)).compose(change(key))
    assert json.loads(message.body)["object_name"] == key


@given(key=KEYS)
def test_keys_are_encoded_as_the_standard_library_does(key: str) -> None:
    assert url_encoded(key) == quote_plus(key, safe="/")


@given(metadata=st.dictionaries(KEYS, KEYS))
def test_metadata_of_any_kind_can_be_read_back(metadata: dict[str, str]) -> None:
    odd = msgspec.structs.replace(change(), new=msgspec.structs.replace(state(), metadata=metadata))
    message = Subscription(rule(), topic(), Installation(CEPH)).compose(odd)
    told = json.loads(message.body)["Records"][0]["s3"]["object"]["metadata"]
    assert {pair["key"].removeprefix("x-amz-meta-"): pair["val"] for pair in told} == metadata


@given(key=KEYS)
def test_any_key_can_be_read_back_from_the_record(key: str) -> None:
    for dialect, decode in ((AWS, unquote_plus), (CEPH, str)):
        message = Subscription(rule(), topic(), Installation(dialect)).compose(change(key))
        written = json.loads(message.body)["Records"][0]["s3"]["object"]["key"]
        assert decode(written) == key
        assert message.key == key


def test_a_version_id_is_told_when_the_version_is_not_the_null_version() -> None:
    versioned = msgspec.structs.replace(change(), new=state(version_id="v1"))
    message = Subscription(rule(), topic(), Installation(AWS)).compose(versioned)
    assert json.loads(message.body)["Records"][0]["s3"]["object"]["versionId"] == "v1"


def test_times_are_cut_not_rounded() -> None:
    assert event_time(1_763_238_280_999_999_999, 3) == "2025-11-15T20:24:40.999Z"
    assert event_time(1_763_238_280_000_001_000, 6) == "2025-11-15T20:24:40.000001Z"


@given(times=st.lists(st.integers(0, 2**62), min_size=1))
def test_times_are_those_of_the_standard_library_in_whatever_order_they_come(times: list[int]) -> None:
    for nanoseconds in times:
        for digits, unit in ((3, "milliseconds"), (6, "microseconds")):
            whole, rest = divmod(nanoseconds // 1000, 1_000_000)
            moment = datetime.fromtimestamp(whole, UTC).replace(tzinfo=None, microsecond=rest)
            assert event_time(nanoseconds, digits) == moment.isoformat(timespec=unit) + "Z"


def test_sequencers_sort_as_the_times_do() -> None:
    times = [1, 255, 1 << 40, 1_763_238_280_123_456_789]
    written = [stamp(time, 3, "").sequencer for time in times]
    assert written == sorted(written)
    assert {len(sequencer) for sequencer in written} == {16}


def test_size_and_etag_of_a_removed_object_are_told_where_the_dialect_tells_them() -> None:
    removed = change(operation=Operation.DELETE, old=state(7))
    told = {}
    for dialect in (AWS, CEPH):
        message = Subscription(rule(), topic(), Installation(dialect)).compose(removed)
        told[dialect.name] = json.loads(message.body)["Records"][0]["s3"]["object"].get("size")
    assert told == {"aws": None, "ceph": 7}
