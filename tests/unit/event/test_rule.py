"""Rules and event names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bucketwire.errors import ConfigError, InvalidRequest
from bucketwire.event.arn import TopicArn, parse_topic_arn, valid_topic_name
from bucketwire.event.dialect import dialect_named
from bucketwire.event.name import EVENT_NAMES, Operation, pattern_accepts
from bucketwire.event.rule import Filter, Part, matching, transmit
from factories import change, rule
from golden.cases import CHANGES, asks_before_image


@pytest.mark.parametrize(
    ("pattern", "operation", "accepted"),
    [
        ("s3:ObjectCreated:*", Operation.PUT, True),
        ("s3:ObjectCreated:*", Operation.COMPLETE_MULTIPART_UPLOAD, True),
        ("s3:ObjectCreated:*", Operation.DELETE, False),
        ("s3:ObjectCreated:Put", Operation.PUT, True),
        ("s3:ObjectCreated:Put", Operation.POST, False),
        ("s3:ObjectRemoved:Delete", Operation.DELETE_MARKER_CREATED, False),
        ("s3:ObjectRemoved:*", Operation.DELETE_MARKER_CREATED, True),
    ],
)
def test_patterns_accept_what_they_name(pattern: str, operation: Operation, accepted: bool) -> None:
    assert pattern_accepts(pattern, operation) is accepted


def test_expiry_is_accepted_by_its_name_and_by_its_kind() -> None:
    expired = {
        case: each for case, each in CHANGES.items() if "expire" in case and not asks_before_image(case)
    }
    by_kind = {
        kind: [
            case
            for case, each in expired.items()
            if rule(f"s3:ObjectLifecycle:Expiration:{kind}").accepts(each)
        ]
        for kind in ("Current", "NonCurrent", "DeleteMarker", "AbortMultipartUpload", "*")
    }
    assert by_kind == {
        "Current": [
            "expire",
            "versioned-expire",
            "versioned-expire-hides-null",
            "suspended-expire",
            "suspended-expire-hides-version",
            "suspended-expire-hides-version-replaces-null",
            "suspended-expire-hides-version-replaces-marker",
        ],
        "NonCurrent": [
            "versioned-expire-noncurrent",
            "versioned-expire-noncurrent-null",
            "suspended-expire-noncurrent",
            "suspended-expire-noncurrent-null",
        ],
        "DeleteMarker": [
            "versioned-expire-marker",
            "versioned-expire-null-marker",
            "suspended-expire-marker",
            "suspended-expire-null-marker",
        ],
        "AbortMultipartUpload": [],
        "*": list(expired),
    }
    assert all(rule("s3:LifecycleExpiration:*").accepts(each) for each in expired.values())
    assert not any(rule("s3:ObjectRemoved:*").accepts(each) for each in expired.values())
    assert not rule("s3:ObjectLifecycle:*").accepts(CHANGES["delete"])


def test_every_operation_can_be_subscribed_to() -> None:
    for operation in Operation:
        assert any(pattern_accepts(pattern, operation) for pattern in EVENT_NAMES)


PARTS = st.text("ab/.", max_size=4)


@given(key=PARTS, prefix=PARTS, suffix=PARTS)
def test_prefix_and_suffix_must_both_match(key: str, prefix: str, suffix: str) -> None:
    expected = key[: len(prefix)] == prefix and (not suffix or key[-len(suffix) :] == suffix)
    assert rule(prefix=prefix, suffix=suffix).accepts(change(key)) is expected


def test_a_change_is_transmitted_when_some_rule_accepts_it() -> None:
    rules = [rule("s3:ObjectRemoved:*", id="a"), rule(id="b", prefix="x"), rule(id="c", prefix="y")]
    assert transmit(change("x1"), rules)
    assert not transmit(change("z"), rules)
    assert [each.id for each in matching(change("x1"), rules)] == ["b"]


def test_an_arn_reads_as_it_was_written() -> None:
    arn = TopicArn("eu-west-1", "tenant", "videos")
    assert parse_topic_arn(str(arn)) == arn
    assert parse_topic_arn("arn:aws:sns:us-east-1::plain") == TopicArn("us-east-1", "", "plain")


@pytest.mark.parametrize(
    "text", ["", "arn:aws:sqs:us-east-1:1:q", "arn:aws:sns:us-east-1:1", "arn:aws:sns:a:b:c d"]
)
def test_what_is_no_topic_arn_is_refused_in_the_words_of_s3(text: str) -> None:
    with pytest.raises(InvalidRequest, match="The ARN could not be parsed") as refused:
        parse_topic_arn(text)
    assert refused.value.code == "InvalidArgument"
    assert refused.value.fields == {"ArgumentName": "Topic", "ArgumentValue": text}


def test_topic_names_are_letters_digits_hyphen_and_underscore() -> None:
    assert valid_topic_name("a-B_9")
    assert not valid_topic_name("")
    assert not valid_topic_name("a" * 257)
    assert not valid_topic_name("a.b")


def test_an_unknown_dialect_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(ConfigError, match="aws, ceph, storj"):
        dialect_named("minio")


def test_a_marker_is_filtered_by_the_object_that_it_hides() -> None:
    """Not by the older null version that it takes the place of."""
    marker = CHANGES["suspended-delete-hides-version-replaces-null"]
    assert Filter("x-amz-meta-color", "red", Part.METADATA).accepts(marker)
    assert not Filter("x-amz-meta-mandm", "green", Part.METADATA).accepts(marker)
