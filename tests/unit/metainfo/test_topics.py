"""Topics: what may be one, and whose it is."""

import json
from typing import Any

import msgspec
import pytest

from bucketwire.access.policy import ACTIONS, GET, Who
from bucketwire.errors import CallError
from bucketwire.event.dialect import AWS, CEPH, Dialect
from bucketwire.event.topic import Topic
from bucketwire.metainfo.topic_view import ceph_attributes, ceph_topic, default_policy, sns_attributes
from bucketwire.metainfo.topics import (
    checked_arn,
    checked_tags,
    created_topic,
    existing_topic,
    may,
    may_publish,
    set_attribute,
    shown_attributes,
    tagged,
    topic_arn,
    untagged,
    without_password,
)
from factories import topic

OWNER = Who("", "owner", "owner-1")
OTHER = Who("", "other", "owner-2")


def with_attributes(**attributes: str) -> Topic:
    return msgspec.structs.replace(
        topic(), attributes={name.replace("_", "-"): text for name, text in attributes.items()}
    )


def opened(*actions: str, principal: Any = "*") -> Topic:
    statement = {"Effect": "Allow", "Principal": principal, "Action": list(actions), "Resource": "*"}
    return topic(Policy=json.dumps({"Statement": statement}))


def create(existing: Topic | None, wanted: Topic, who: Who = OWNER, dialect: Dialect = AWS) -> Topic | None:
    return created_topic(wanted, who, dialect)(existing)


def set_to(
    existing: Topic | None, name: str, value: str, who: Who = OWNER, dialect: Dialect = AWS
) -> Topic | None:
    return set_attribute(name, value, who, dialect)(existing)


def error_of(call: Any, *given: Any, **named: Any) -> CallError:
    with pytest.raises(CallError) as raised:
        call(*given, **named)
    return raised.value


def test_an_arn_has_the_tenant_of_the_caller_or_that_of_the_dialect() -> None:
    assert topic_arn("t", "us-east-1", "", AWS) == "arn:aws:sns:us-east-1:000000000000:t"
    assert topic_arn("t", "default", "", CEPH) == "arn:aws:sns:default::t"
    for dialect in (AWS, CEPH):
        assert topic_arn("t", "default", "acme", dialect) == "arn:aws:sns:default:acme:t"


@pytest.mark.parametrize("name", ["", "a b", "a.b", "x" * 257, "ü"])
def test_a_name_that_no_topic_can_have_is_refused(name: str) -> None:
    for dialect, code in ((AWS, "InvalidParameter"), (CEPH, "InvalidInput")):
        error = error_of(topic_arn, name, "us-east-1", "", dialect)
        assert (error.code, "Topic Name" in error.message) == (code, True)


@pytest.mark.parametrize(
    "text", ["nonsense", "arn:aws:sns:r:a\x00b:t", "arn:aws:sns:r:" + "x" * 1000 + ":t", ""]
)
def test_an_arn_that_is_none_is_refused(text: str) -> None:
    assert error_of(checked_arn, text, AWS).code == "InvalidParameter"


def test_creating_again_succeeds_with_the_same_attributes_or_none() -> None:
    existing = topic(persistent="true")
    assert create(existing, existing) is None
    assert create(existing, with_attributes()) is None


def test_creating_again_with_other_attributes_is_an_error_or_an_update() -> None:
    existing, wanted = topic("http://one/", OpaqueData="x"), topic("http://two/")
    error = error_of(create, existing, wanted)
    assert error.message.endswith("Attributes Reason: Topic already exists with different attributes")
    assert create(existing, wanted, dialect=CEPH) == wanted


def test_creating_again_with_other_tags_is_an_error_or_an_update() -> None:
    existing = msgspec.structs.replace(topic(), tags={"a": "1"})
    wanted = msgspec.structs.replace(topic(), tags={"a": "2"})
    assert error_of(create, existing, wanted).message.endswith("already exists with different tags")
    assert create(existing, wanted, dialect=CEPH) == wanted
    assert create(existing, topic(), dialect=CEPH) == existing


def test_a_deleted_topic_can_be_created_anew() -> None:
    deleted = msgspec.structs.replace(topic("http://one/"), deleted_at_ns=1)
    wanted = topic("http://two/")
    assert create(deleted, wanted) == wanted


@pytest.mark.parametrize("dialect", [AWS, CEPH])
def test_the_name_of_a_deleted_topic_stays_its_owners(dialect: Dialect) -> None:
    for before in (topic("http://one/"), opened("sns:CreateTopic")):
        deleted = msgspec.structs.replace(before, deleted_at_ns=1)
        error = error_of(
            create, deleted, msgspec.structs.replace(topic(), owner_id="owner-2"), OTHER, dialect
        )
        taken = error_of(create, topic(), topic(), OTHER, dialect)
        assert (error.code, error.message) == (taken.code, taken.message)


def test_another_users_topic_cannot_be_taken_set_or_seen() -> None:
    for dialect in (AWS, CEPH):
        assert error_of(create, topic(), topic(), OTHER, dialect).code == "AuthorizationError"
    assert error_of(set_to, topic(), "OpaqueData", "x", OTHER).code == "AuthorizationError"
    assert error_of(existing_topic, topic(), OTHER, GET, AWS).code == "AuthorizationError"


def test_a_policy_opens_a_topic_for_what_it_names_and_the_owner_stays() -> None:
    readable, settable = opened("sns:GetTopicAttributes"), opened("sns:SetTopicAttributes")
    assert existing_topic(readable, OTHER, GET, AWS) is readable
    assert error_of(set_to, readable, "OpaqueData", "x", OTHER).code == "AuthorizationError"
    changed = set_to(settable, "OpaqueData", "x", OTHER)
    assert changed is not None
    assert (changed.owner_id, changed.attributes["OpaqueData"]) == ("owner-1", "x")
    updated = create(opened("sns:CreateTopic"), topic("http://two/"), OTHER, CEPH)
    assert updated is not None
    assert (updated.owner_id, updated.endpoint) == ("owner-1", "http://two/")


def test_the_owner_may_publish_and_whom_the_policy_names() -> None:
    assert may_publish(topic(), "owner-1", "", "owner", "media")
    assert not may_publish(topic(), "owner-2", "", "other", "media")
    named = opened("sns:Publish", principal={"AWS": "arn:aws:iam::acme:user/anne"})
    assert may_publish(named, "id", "acme", "anne", "media")
    assert not may_publish(named, "id", "acme", "fred", "media")
    assert not may_publish(opened("sns:GetTopicAttributes"), "id", "acme", "anne", "media")


def test_a_topic_can_be_opened_to_a_bucket() -> None:
    condition = {
        "ArnLike": {"aws:SourceArn": "arn:aws:s3:*:*:media"},
        "StringEquals": {"aws:SourceAccount": "000000000000"},
    }
    statement = {
        "Effect": "Allow",
        "Principal": {"Service": "s3.amazonaws.com"},
        "Action": "SNS:Publish",
        "Resource": topic().arn,
        "Condition": condition,
    }
    shared = topic(Policy=json.dumps({"Statement": [statement]}))
    assert may_publish(shared, "owner-2", "", "other", "media")
    assert not may_publish(shared, "owner-2", "", "other", "another")
    assert not may_publish(shared, "owner-2", "acme", "other", "media")


def test_the_default_policy_can_be_set_and_opens_the_topic_to_nobody_else() -> None:
    shown = sns_attributes(topic())["Policy"]
    assert shown == default_policy(topic())
    changed = set_to(topic(), "Policy", shown)
    assert changed is not None
    assert sns_attributes(changed)["Policy"] == shown
    for action in ACTIONS:
        assert may(changed, OWNER, action)
        assert not may(changed, OTHER, action)
    assert not may_publish(changed, "owner-2", "", "other", "media")


def test_a_policy_about_another_topic_is_refused_when_it_is_set_and_at_creation() -> None:
    foreign = default_policy(topic(name="photos"))
    for error in (
        error_of(set_to, topic(), "Policy", foreign),
        error_of(create, None, topic(Policy=foreign)),
    ):
        assert (error.code, "Policy: bad resource" in error.message) == ("InvalidParameter", True)


def test_a_stored_policy_that_would_be_refused_today_opens_nothing() -> None:
    stored = opened("sns:*").attributes["Policy"]
    twice = topic(Policy=stored.replace('"Effect"', '"Effect": "Deny", "Effect"'))
    assert not may(twice, OTHER, GET)
    assert may(twice, OWNER, GET)


@pytest.mark.parametrize("found", [None, msgspec.structs.replace(topic(), deleted_at_ns=1)])
def test_a_topic_that_is_not_there_is_not_found(found: Topic | None) -> None:
    error = error_of(existing_topic, found, OWNER, GET, AWS)
    assert (error.code, error.message) == ("NotFound", "Topic does not exist")
    assert error_of(set_to, found, "OpaqueData", "x").code == "NotFound"


def test_setting_one_attribute_keeps_the_others_and_an_empty_value_unsets_it() -> None:
    changed = set_to(topic(OpaqueData="x", max_retries="3"), "OpaqueData", "y")
    assert changed is not None
    assert changed.attributes == {
        "push-endpoint": "http://127.0.0.1:1/",
        "max_retries": "3",
        "OpaqueData": "y",
    }
    for name, nothing in (("OpaqueData", ""), ("max_retries", "None")):
        unset = set_to(changed, name, nothing)
        assert unset is not None
        assert name not in unset.attributes


def test_a_topic_that_is_not_persistent_cannot_be_made_to_want_order() -> None:
    persistent = topic(ordering="key", persistent="true")
    for error in (
        error_of(create, None, topic(ordering="key"), dialect=CEPH),
        error_of(create, topic(), topic(ordering="key"), dialect=CEPH),
        error_of(create, None, topic(ordering="key", persistent="false")),
        error_of(set_to, topic(), "ordering", "key", dialect=CEPH),
        error_of(set_to, persistent, "persistent", "", dialect=CEPH),
        error_of(set_to, persistent, "persistent", "false"),
    ):
        assert "ordering: key needs persistent=true" in error.message
    assert create(None, persistent, dialect=CEPH) == persistent
    assert set_to(topic(persistent="true"), "ordering", "key", dialect=CEPH) is not None
    assert set_to(topic(), "ordering", "key") is not None


def test_a_topic_that_is_so_already_can_still_be_set_and_created_again() -> None:
    stored = topic(ordering="key")
    assert set_to(stored, "OpaqueData", "x", dialect=CEPH) == topic(ordering="key", OpaqueData="x")
    assert create(stored, stored, dialect=CEPH) == stored


def test_a_longer_pause_that_is_stored_does_not_hinder_other_settings() -> None:
    stored = topic(retry_sleep_duration="31622400")
    changed = set_to(stored, "OpaqueData", "x")
    assert changed is not None
    assert changed.attributes["retry_sleep_duration"] == "31622400"


def test_tags_are_added_and_removed() -> None:
    existing = msgspec.structs.replace(topic(), tags={"a": "1", "b": "2"})
    changed = tagged({"a": "9", "c": "3"}, OWNER, AWS)(existing)
    assert changed is not None
    assert changed.tags == {"a": "9", "b": "2", "c": "3"}
    changed = untagged(["b", "x"], OWNER, AWS)(changed)
    assert changed is not None
    assert changed.tags == {"a": "9", "c": "3"}


def test_tags_have_their_own_words_in_a_policy() -> None:
    for action, change in (
        ("sns:TagResource", tagged({}, OTHER, AWS)),
        ("sns:UntagResource", untagged([], OTHER, AWS)),
    ):
        assert change(opened(action)) is not None
        assert error_of(change, opened("sns:SetTopicAttributes")).code == "AuthorizationError"


@pytest.mark.parametrize(
    "sent",
    [
        [None],
        [{"Key": "a"}],
        [{"Key": "a", "Value": "1"}, {"Key": "a", "Value": "2"}],
        [{"Key": "", "Value": ""}],
        [{"Key": "x" * 129, "Value": ""}],
        [{"Key": "x", "Value": "x" * 257}],
        [{"Key": "x", "Value": "\x00"}],
        [{"Key": str(number), "Value": ""} for number in range(51)],
    ],
)
def test_tags_that_cannot_be_kept_are_refused(sent: list[Any]) -> None:
    error = error_of(checked_tags, sent, AWS)
    assert (error.code, "Tags" in error.message) == ("InvalidParameter", True)


def test_a_password_in_the_endpoint_is_never_shown() -> None:
    secret = topic("https://user:pa%40ss@host:8443/path?x=1")
    assert shown_attributes(secret)["push-endpoint"] == "https://user:****@host:8443/path?x=1"
    assert without_password("http://host/") == "http://host/"


@pytest.mark.parametrize("dialect", [AWS, CEPH])
def test_to_set_or_create_what_is_shown_overwrites_no_secret(dialect: Dialect) -> None:
    existing = topic("https://user:hush@host/")
    shown = shown_attributes(existing)["push-endpoint"]
    for error in (
        error_of(set_to, existing, "push-endpoint", shown, dialect=dialect),
        error_of(create, existing, topic(shown), dialect=dialect),
        error_of(create, None, topic(shown), dialect=dialect),
    ):
        assert error.code == dialect.bad_topic_code
        assert "send the secret itself" in error.message


def test_no_secret_is_in_any_view_of_a_topic() -> None:
    attributes = {"password": "hush-1", "user-name": "hush-2", "signing-secret": "hush-3", "odd": "hush-4"}
    attributes["oauth-token-endpoint"] = "https://client:hush-6@idp/token"
    secret = topic("kafka://u:hush-5@host/", **attributes)
    for shown in (
        shown_attributes(secret),
        sns_attributes(secret),
        ceph_attributes(secret, CEPH),
        ceph_topic(secret, CEPH),
    ):
        assert "hush" not in json.dumps(shown)
    assert ceph_topic(secret, CEPH)["EndPoint"]["HasStoredSecret"] == "True"


def test_ceph_shows_a_topic_by_its_endpoint() -> None:
    shown = ceph_topic(topic("http://h/", name="t", OpaqueData="x", time_to_live="30"), CEPH)
    assert list(shown) == ["User", "Name", "EndPoint", "TopicArn", "OpaqueData"]
    assert shown["EndPoint"] == {
        "EndpointAddress": "http://h/",
        "EndpointArgs": "OpaqueData=x&Version=2010-03-31&push-endpoint=http://h/&time_to_live=30",
        "EndpointTopic": "t",
        "HasStoredSecret": "False",
        "Persistent": "False",
        "TimeToLive": "30",
        "MaxRetries": "None",
        "RetrySleepDuration": "None",
    }
    as_text = json.loads(ceph_attributes(topic(persistent="TRUE"), CEPH)["EndPoint"])
    assert (as_text["Persistent"], as_text["HasStoredSecret"]) == ("true", "false")
