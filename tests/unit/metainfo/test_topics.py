"""Topics: what may be one."""

from typing import Any

import msgspec
import pytest

from bucketwire.errors import CallError
from bucketwire.event.dialect import AWS, CEPH
from bucketwire.event.topic import Topic
from bucketwire.metainfo.topics import (
    checked_arn,
    created_topic,
    existing_topic,
    shown_attributes,
    topic_arn,
    without_password,
)
from factories import topic


def with_attributes(**attributes: str) -> Topic:
    return msgspec.structs.replace(
        topic(), attributes={name.replace("_", "-"): text for name, text in attributes.items()}
    )


def refused(existing: Topic | None, wanted: Topic, dialect: Any = AWS) -> CallError:
    with pytest.raises(CallError) as raised:
        created_topic(existing, wanted, dialect)
    return raised.value


def test_an_arn_has_the_tenant_of_the_dialect() -> None:
    assert topic_arn("t", "us-east-1", AWS) == "arn:aws:sns:us-east-1:000000000000:t"
    assert topic_arn("t", "default", CEPH) == "arn:aws:sns:default::t"


@pytest.mark.parametrize("name", ["", "a b", "a.b", "x" * 257, "ü"])
def test_a_name_that_no_topic_can_have_is_refused(name: str) -> None:
    for dialect, code in ((AWS, "InvalidParameter"), (CEPH, "InvalidInput")):
        with pytest.raises(CallError, match="Topic Name") as raised:
            topic_arn(name, "us-east-1", dialect)
        assert raised.value.code == code


def test_an_arn_that_is_none_is_refused() -> None:
    with pytest.raises(CallError) as raised:
        checked_arn("nonsense", AWS)
    assert raised.value.code == "InvalidParameter"


@pytest.mark.parametrize(
    "endpoint",
    [
        "",
        "localhost:9000",
        "ftp://host/",
        "http://",
        "http://host:port/",
        "http://a b/",
        "https://[::1",
        "http://h\n/",
    ],
)
def test_an_endpoint_that_cannot_be_delivered_to_is_refused(endpoint: str) -> None:
    error = refused(None, with_attributes(push_endpoint=endpoint))
    assert (error.code, "push-endpoint" in error.message, "http://" in error.message) == (
        "InvalidParameter",
        True,
        True,
    )


def test_a_topic_without_an_endpoint_is_refused() -> None:
    assert "push-endpoint" in refused(None, with_attributes()).message


def test_unknown_attributes_and_flags_that_are_none_are_named() -> None:
    assert "color" in refused(None, with_attributes(push_endpoint="http://h/", color="red")).message
    assert "persistent" in refused(None, with_attributes(push_endpoint="http://h/", persistent="yes")).message


def test_a_value_that_no_document_could_show_is_refused() -> None:
    wanted = with_attributes(push_endpoint="http://h/", OpaqueData="bell \x07")
    assert refused(None, wanted).code == "InvalidParameter"


def test_creating_again_succeeds_with_the_same_attributes_or_none() -> None:
    existing = topic(persistent="true")
    assert created_topic(existing, existing, AWS) is None
    assert created_topic(existing, with_attributes(), AWS) is None


def test_creating_again_with_other_attributes_is_an_error_or_an_update() -> None:
    existing, wanted = topic("http://one/"), topic("http://two/")
    assert refused(existing, wanted).message.endswith("Topic already exists with different attributes")
    assert created_topic(existing, wanted, CEPH) == wanted


def test_a_deleted_topic_can_be_created_anew() -> None:
    deleted = msgspec.structs.replace(topic("http://one/"), deleted_at_ns=1)
    wanted = topic("http://two/")
    assert created_topic(deleted, wanted, AWS) == wanted


def test_another_users_topic_cannot_be_taken_or_seen() -> None:
    others = msgspec.structs.replace(topic(), owner_id="someone")
    for dialect in (AWS, CEPH):
        assert refused(others, topic(), dialect).code == "AuthorizationError"
    with pytest.raises(CallError) as raised:
        existing_topic(others, "owner-1")
    assert raised.value.code == "AuthorizationError"


@pytest.mark.parametrize("found", [None, msgspec.structs.replace(topic(), deleted_at_ns=1)])
def test_a_topic_that_is_not_there_is_not_found(found: Topic | None) -> None:
    with pytest.raises(CallError, match="Topic does not exist") as raised:
        existing_topic(found, "owner-1")
    assert raised.value.code == "NotFound"


def test_a_password_in_the_endpoint_is_never_shown() -> None:
    secret = topic("https://user:pa%40ss@host:8443/path?x=1")
    assert shown_attributes(secret)["push-endpoint"] == "https://user:****@host:8443/path?x=1"
    assert without_password("http://host/") == "http://host/"
    assert "pa%40ss" not in str(refused(secret, topic("http://user:other@h/")))
    assert "pass" not in str(refused(None, topic("ftp://user:pass@h/")))
