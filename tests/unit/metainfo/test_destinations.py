"""The destinations of rules: found, missing, failed."""

import pytest

from bucketwire.errors import CallError, Denied
from bucketwire.event.dialect import AWS, CEPH, STORJ, Dialect
from bucketwire.event.topic import Topic
from bucketwire.metainfo.destinations import destinations_of, failed_destinations
from factories import TOPIC_ARN, rule, topic

PUBSUB = "arn:gcp:pubsub::my-project:my-topic"


def test_each_topic_is_found_once() -> None:
    good = topic()
    found = destinations_of([rule(), rule(id="two")], lambda _: good, lambda _: True, AWS)
    assert found == [good]


def test_a_topic_of_pubsub_needs_no_topic_here() -> None:
    (found,) = destinations_of([rule(topic_arn=PUBSUB)], lambda _: None, lambda _: False, STORJ)
    assert found.endpoint == "pubsub://my-project/my-topic"


@pytest.mark.parametrize(
    ("found", "open_to_caller"),
    [
        (None, True),
        (Topic(TOPIC_ARN, "videos", "owner-1", deleted_at_ns=1), True),
        (Topic(TOPIC_ARN, "videos", "owner-1", deleted_at_ns=1), False),
    ],
)
def test_a_topic_that_is_missing_or_deleted_is_refused(found: Topic | None, open_to_caller: bool) -> None:
    for dialect, code, fields in (
        (
            AWS,
            "InvalidArgument",
            {"ArgumentName1": TOPIC_ARN, "ArgumentValue1": "The destination topic does not exist"},
        ),
        (CEPH, "NoSuchKey", {}),
    ):
        with pytest.raises(CallError) as raised:
            destinations_of([rule(), rule()], lambda _: found, lambda _: open_to_caller, dialect)
        assert (raised.value.code, raised.value.fields) == (code, fields)


def test_a_closed_topic_reads_as_a_missing_one_where_the_dialect_has_one_code_for_both() -> None:
    closed, missing = topic(), "arn:aws:sns:us-east-1:000000000000:none"
    rules = [rule(), rule(topic_arn=missing)]
    with pytest.raises(CallError) as raised:
        destinations_of(rules, {closed.arn: closed}.get, lambda _: False, AWS)
    assert raised.value.fields == {
        "ArgumentName1": closed.arn,
        "ArgumentValue1": "The destination topic does not exist",
        "ArgumentName2": missing,
        "ArgumentValue2": "The destination topic does not exist",
    }
    with pytest.raises(Denied) as denied:
        destinations_of([rule()], lambda _: closed, lambda _: False, CEPH)
    assert denied.value.code == "AccessDenied"


@pytest.mark.parametrize("dialect", [AWS, CEPH])
def test_a_topic_that_need_not_exist_must_not_be_closed_all_the_same(dialect: Dialect) -> None:
    assert destinations_of([rule()], lambda _: None, lambda _: False, dialect, must_exist=False) == []
    deleted = Topic(TOPIC_ARN, "videos", "owner-1", deleted_at_ns=1)
    assert destinations_of([rule()], lambda _: deleted, lambda _: True, dialect, must_exist=False) == []
    for closed in (topic(), deleted):
        with pytest.raises(CallError) as raised:
            destinations_of([rule()], lambda _, it=closed: it, lambda _: False, dialect, must_exist=False)
        assert raised.value.code == dialect.denied_topic_code


def test_the_reason_of_a_failed_test_stands_where_the_dialect_has_it() -> None:
    reasons = {TOPIC_ARN: "connection refused", PUBSUB: "no answer within 10 s"}
    error = failed_destinations(reasons, AWS)
    assert error.message == "Unable to validate the following destination configurations"
    assert error.fields["ArgumentValue1"] == "connection refused"
    assert error.fields["ArgumentName2"] == PUBSUB
    for dialect in (CEPH, STORJ):
        error = failed_destinations(reasons, dialect)
        assert error.code == "InvalidArgument"
        assert "connection refused" in error.message
        assert "no answer within 10 s" in error.message
