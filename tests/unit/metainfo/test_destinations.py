"""The destinations of rules: found, missing, failed."""

import pytest

from bucketwire.errors import CallError
from bucketwire.event.dialect import AWS, CEPH, STORJ
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
        (topic(), False),
    ],
)
def test_a_topic_that_is_missing_deleted_or_closed_is_refused_alike(
    found: Topic | None, open_to_caller: bool
) -> None:
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
