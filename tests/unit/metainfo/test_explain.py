"""Why a rule takes a change, or does not."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bucketwire.access.policy import Who
from bucketwire.errors import InvalidRequest
from bucketwire.event.change import ObjectChange, Versioning
from bucketwire.event.compose import Subscription
from bucketwire.event.dialect import AWS, CEPH, STORJ, Dialect
from bucketwire.event.installation import Installation
from bucketwire.event.name import Operation
from bucketwire.event.rule import Filter, Part, Rule
from bucketwire.event.topic import Topic
from bucketwire.metabase import open_metabase
from bucketwire.metabase.base import Metabase
from bucketwire.metabase.values import Bucket
from bucketwire.metainfo.explain import Explanation, Verdict, explain, explain_in
from bucketwire.metainfo.supposed import (
    entries,
    metadata_entries,
    operation_named,
    supposed_change,
    supposition,
)
from factories import TOPIC_ARN, change, new_object, origin, policy_for, rule, state, topic

NOW_NS = 1_763_238_280_123_456_789
BUCKET = Bucket("bucket-id", "media", "owner-1", "us-east-1", 1)


def judged(one: Rule, found: Topic | None, about: ObjectChange, dialect: Dialect = AWS) -> Verdict:
    (verdict,) = explain([one], lambda _arn: found, named_anne, about, Installation(dialect, "uuid"))
    return verdict


def named_anne(user_id: str) -> Who:
    return Who("acme", "anne", user_id)


def described(**fields: Any) -> ObjectChange:
    """A change of an object with these metadata and tags."""
    return msgspec.structs.replace(change(), new=msgspec.structs.replace(state(), **fields))


def test_a_rule_that_matches_shows_the_very_message_that_compose_gives() -> None:
    verdict = judged(rule(), topic(), change())
    sent = Subscription(rule(), topic(), Installation(AWS, "uuid")).compose(change())
    assert (verdict.matches, verdict.delivers, verdict.reasons) == (True, True, [])
    assert verdict.message is not None
    assert bytes(verdict.message.body) == sent.body
    assert (verdict.message.event_id, verdict.message.key) == (sent.event_id, sent.key)
    assert verdict.message.content_type == sent.content_type


def test_what_travels_beside_the_body_is_shown_too() -> None:
    ordered = topic(cloudevents="true", ordering="key")
    verdict = judged(rule(), ordered, change())
    sent = Subscription(rule(), ordered, Installation(AWS, "uuid")).compose(change())
    assert verdict.message is not None
    assert sent.cloudevent
    assert verdict.message.cloudevent == sent.cloudevent
    assert verdict.message.partition_key == "video.mp4"


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        (Filter("prefix", "logs/"), "the key does not start with 'logs/'"),
        (Filter("suffix", ".jpg"), "the key does not end with '.jpg'"),
        (Filter("regex", "[0-9]+"), "the regular expression '[0-9]+' does not match all of the key"),
        (Filter("team", "blue", Part.TAGS), "tag team is 'red', not 'blue'"),
        (Filter("size", "big", Part.TAGS), "tag size is not set, and must be 'big'"),
        (
            Filter("x-amz-meta-color", "blue", Part.METADATA),
            "metadata x-amz-meta-color is 'green', not 'blue'",
        ),
        (
            Filter("x-amz-meta-shape", "round", Part.METADATA),
            "metadata x-amz-meta-shape is not set, and must be 'round'",
        ),
    ],
)
def test_a_filter_that_fails_says_what_it_wants_and_what_there_is(condition: Filter, reason: str) -> None:
    about = described(metadata={"color": "green"}, tags={"team": "red"})
    verdict = judged(Rule("r", TOPIC_ARN, ("s3:ObjectCreated:*",), (condition,)), topic(), about)
    assert (verdict.matches, verdict.delivers, verdict.reasons) == (False, False, [reason])
    assert verdict.message is None


def test_events_that_do_not_cover_the_change_are_named_and_every_reason_is_given() -> None:
    one = judged(rule("s3:ObjectRemoved:*", prefix="logs/"), topic(), change())
    assert one.reasons == [
        "the event s3:ObjectRemoved:* does not cover s3:ObjectCreated:Put",
        "the key does not start with 'logs/'",
    ]
    two = judged(rule("s3:ObjectCreated:Copy", "s3:ObjectRemoved:*"), topic(), change())
    assert two.reasons == [
        "the events s3:ObjectCreated:Copy, s3:ObjectRemoved:* do not cover s3:ObjectCreated:Put"
    ]


def test_an_expiry_is_named_both_ways_for_a_rule_may_use_either() -> None:
    expiry = change(operation=Operation.EXPIRATION_DELETE, old=state())
    reason = judged(rule("s3:ObjectCreated:*"), topic(), expiry).reasons[0]
    assert "s3:LifecycleExpiration:Delete or s3:ObjectLifecycle:Expiration:Current" in reason
    assert judged(rule("s3:ObjectLifecycle:Expiration:*"), topic(), expiry, CEPH).matches


@pytest.mark.parametrize(
    ("found", "reason", "shown"),
    [
        (None, "the topic does not exist", False),
        (
            msgspec.structs.replace(topic(), deleted_at_ns=1),
            "the topic was deleted before the change",
            False,
        ),
        (topic(""), "the topic has no push-endpoint: messages wait until it has one", True),
    ],
)
def test_a_rule_can_match_and_still_deliver_nothing(found: Topic | None, reason: str, shown: bool) -> None:
    verdict = judged(rule(), found, change())
    assert (verdict.matches, verdict.delivers, verdict.reasons) == (True, False, [reason])
    assert (verdict.message is not None) is shown


@pytest.mark.parametrize(
    ("attributes", "open_to_anne"),
    [
        ({}, False),
        ({"Policy": policy_for("arn:aws:iam::acme:user/fred")}, False),
        ({"Policy": policy_for("arn:aws:iam::acme:user/anne")}, True),
    ],
)
def test_of_anothers_topic_nothing_is_shown_unless_its_policy_opens_it(
    attributes: dict[str, str], open_to_anne: bool
) -> None:
    theirs = topic(OpaqueData="a secret word", **attributes)
    verdict = judged(rule(), msgspec.structs.replace(theirs, owner_id="owner-2"), change(), CEPH)
    assert (verdict.matches, verdict.delivers) == (True, open_to_anne)
    assert (b"a secret word" in msgspec.json.encode(verdict)) is open_to_anne
    assert (verdict.message is not None) is open_to_anne
    closed = "the topic is another user's, and no policy opens it to the owner of the bucket"
    assert verdict.reasons == ([] if open_to_anne else [closed])


@pytest.mark.parametrize("operation", Operation)
@pytest.mark.parametrize("prefix", ["", "s3:"])
def test_every_event_that_a_change_can_have_is_taken_with_and_without_its_prefix(
    operation: Operation, prefix: str
) -> None:
    assert operation_named(prefix + operation) is operation


@pytest.mark.parametrize("event", ["s3:ObjectCreated:*", "s3:ObjectCreated", "", "Nothing:Such", "s3:s3:"])
def test_any_other_event_is_an_error_that_lists_them(event: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        operation_named(event)
    assert raised.value.code == "InvalidArgument"
    assert all(f"s3:{each}" in raised.value.message for each in Operation)


@pytest.mark.parametrize(
    ("key", "size_bytes"), [("", None), ("k" * 1025, None), ("a\0b", None), ("\udcff", None), ("k", -1)]
)
def test_a_key_or_a_size_that_cannot_be_is_refused(key: str, size_bytes: int | None) -> None:
    with pytest.raises(InvalidRequest):
        supposition(key, "ObjectCreated:Put", size_bytes=size_bytes)


def test_metadata_and_tags_are_given_as_name_and_value() -> None:
    assert entries(["team=blue=green", "empty="], "tag") == {"team": "blue=green", "empty": ""}
    assert metadata_entries(["X-Amz-Meta-Color=red", "shape=round"]) == {"color": "red", "shape": "round"}
    assert entries([], "tag") is None
    assert metadata_entries([]) is None
    for bad in ("team", "=blue", ""):
        with pytest.raises(InvalidRequest):
            entries([bad], "tag")


@pytest.mark.parametrize("versioning", Versioning)
@pytest.mark.parametrize("operation", Operation)
@pytest.mark.parametrize("dialect", [AWS, CEPH, STORJ])
@pytest.mark.parametrize("format_name", ["s3", "cos", "cloudevents"])
def test_every_event_in_every_kind_of_bucket_has_a_message_in_every_format(
    versioning: Versioning, operation: Operation, dialect: Dialect, format_name: str
) -> None:
    bucket = msgspec.structs.replace(BUCKET, versioning=versioning)
    about = supposed_change(supposition("k", operation), bucket, None, origin(), NOW_NS)
    verdict = judged(rule("s3:*"), topic(format=format_name), about, dialect)
    assert verdict.message is not None
    json.loads(bytes(verdict.message.body))


@pytest.fixture
def metabase(tmp_path: Path) -> Any:
    opened = open_metabase(f"sqlite:///{tmp_path}/metabase.db")
    opened.buckets.create("media", "owner-1", "us-east-1")
    yield opened
    opened.close()


def asked(metabase: Metabase, key: str, event: str, dialect: Dialect = AWS, **known: Any) -> Explanation:
    bucket = metabase.buckets.get("media")
    supposed = supposition(key, event, **known)
    return explain_in(metabase, bucket, supposed, origin(), Installation(dialect, "uuid"), NOW_NS)


def told(explanation: Explanation) -> dict[str, Any]:
    """The record in the message of the first rule."""
    message = explanation.rules[0].message
    assert message is not None
    return dict(json.loads(bytes(message.body))["Records"][0])


@pytest.fixture
def ruled(metabase: Metabase) -> Metabase:
    """Rules that take everything and only what is of project blue; and the topic."""
    metabase.topics.put(topic())
    blue = Filter("x-amz-meta-project", "blue", Part.METADATA)
    every = Rule("every", TOPIC_ARN, ("s3:*",))
    metabase.rules.edit("media", lambda _: [every, Rule("blue", TOPIC_ARN, ("s3:*",), (blue,))])
    return metabase


def test_an_object_that_exists_is_judged_as_it_is_unless_told_otherwise(ruled: Metabase) -> None:
    ruled.objects.put("media", new_object(), Operation.PUT, origin())
    as_it_is = asked(ruled, "video.mp4", "ObjectCreated:Put")
    assert as_it_is.object_exists
    assert as_it_is.notes == []
    assert [each.matches for each in as_it_is.rules] == [True, True]
    assert told(as_it_is)["s3"]["object"]["size"] == 5
    other = asked(ruled, "video.mp4", "ObjectCreated:Put", size_bytes=7, metadata={"project": "red"})
    assert other.rules[1].reasons == ["metadata x-amz-meta-project is 'red', not 'blue'"]
    assert told(other)["s3"]["object"]["size"] == 7


def test_the_supposed_event_is_the_one_that_then_happens(ruled: Metabase) -> None:
    """But for the time and what the time makes: sequencer and ids."""
    ruled.buckets.set_versioning("media", Versioning.ENABLED)
    stream = ruled.changes
    start = stream.head(stream.start(), 1)
    ruled.objects.put("media", new_object(), Operation.PUT, origin())
    foretold = asked(ruled, "video.mp4", "ObjectRemoved:DeleteMarkerCreated", CEPH)
    before = stream.head(start, 10)
    ruled.objects.delete("media", "video.mp4", origin(), missing_transmits=True)
    (part,) = stream.split(before, stream.head(before, 10), 1)
    (encoded,) = stream.read(part)
    happened = msgspec.json.decode(encoded, type=ObjectChange)
    verdict = judged(Rule("every", TOPIC_ARN, ("s3:*",)), topic(), happened, CEPH)
    assert verdict.message is not None
    (record,) = json.loads(bytes(verdict.message.body))["Records"]
    expected = told(foretold)
    for each in (record, expected):
        del each["eventTime"], each["eventId"], each["s3"]["object"]["sequencer"]
        del each["s3"]["object"]["versionId"]
    assert record == expected


def test_an_object_that_does_not_exist_is_supposed_and_that_is_said(ruled: Metabase) -> None:
    missing = asked(ruled, "none.mp4", "ObjectRemoved:Delete", STORJ)
    assert not missing.object_exists
    assert any("does not exist" in note for note in missing.notes)
    assert any("no event in the dialect storj" in note for note in missing.notes)
    assert missing.rules[1].reasons == ["metadata x-amz-meta-project is not set, and must be 'blue'"]


def test_a_delete_marker_is_no_object_unless_it_is_named(ruled: Metabase) -> None:
    ruled.buckets.set_versioning("media", Versioning.ENABLED)
    first = ruled.objects.put("media", new_object(), Operation.PUT, origin())
    marker = ruled.objects.delete("media", "video.mp4", origin(), missing_transmits=True)
    assert not asked(ruled, "video.mp4", "ObjectRemoved:Delete").object_exists
    for version in (first.version_id, marker.version_id):
        found = asked(ruled, "video.mp4", "ObjectRemoved:Delete", version=version)
        assert found.object_exists
        assert told(found)["s3"]["object"]["versionId"] == version


def test_delete_markers_need_versioning_and_expiry_is_nobodys_request(ruled: Metabase) -> None:
    expired = asked(ruled, "video.mp4", "LifecycleExpiration:DeleteMarkerCreated")
    assert any("no versioning" in note for note in expired.notes)
    assert told(expired)["userIdentity"] == {"principalId": "s3.amazonaws.com"}


def test_tags_that_are_deleted_are_gone_when_filters_look(ruled: Metabase) -> None:
    team = Filter("team", "blue", Part.TAGS)
    ruled.rules.edit("media", lambda _: [Rule("team", TOPIC_ARN, ("s3:*",), (team,))])
    ruled.objects.put("media", new_object(), Operation.PUT, origin())
    tags = {"team": "blue"}
    assert asked(ruled, "video.mp4", "ObjectTagging:Put", tags=tags).rules[0].matches
    assert not asked(ruled, "video.mp4", "ObjectTagging:Delete", tags=tags).rules[0].matches


def test_explaining_writes_nothing(ruled: Metabase) -> None:
    ruled.objects.put("media", new_object(), Operation.PUT, origin())
    start = ruled.changes.start()
    before = ruled.changes.head(start, 100)
    for operation in Operation:
        asked(ruled, "video.mp4", operation)
    assert ruled.changes.head(start, 100) == before
    assert ruled.objects.get("media", "video.mp4").etag == new_object().etag
