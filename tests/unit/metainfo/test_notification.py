"""Notification configurations: the checks, and the way back."""

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bucketwire.errors import CallError
from bucketwire.event.dialect import AWS, CEPH, STORJ, Dialect
from bucketwire.event.name import EVENT_NAMES
from bucketwire.event.rule import Rule
from bucketwire.metainfo.notification import (
    configuration_from_rules,
    rule_from_configuration,
    rules_from_configuration,
)
from factories import TOPIC_ARN


def entry(*events: str, **more: Any) -> dict[str, Any]:
    return {"TopicArn": TOPIC_ARN, "Events": list(events or ["s3:ObjectCreated:*"]), **more}


def conditions(**values: str) -> dict[str, Any]:
    return {"FilterRules": [{"Name": name, "Value": value} for name, value in values.items()]}


def filtered(**filters: str) -> dict[str, Any]:
    return {"Key": conditions(**filters)}


def rules_of(*entries: dict[str, Any], dialect: Dialect = AWS) -> list[Rule]:
    numbers = count(1)
    new_id: Callable[[], str] = lambda: f"made-{next(numbers)}"  # noqa: E731
    return rules_from_configuration({"TopicConfigurations": list(entries)}, dialect, new_id)


def refused(*entries: dict[str, Any], dialect: Dialect = AWS) -> CallError:
    with pytest.raises(CallError) as raised:
        rules_of(*entries, dialect=dialect)
    return raised.value


def test_an_id_is_made_when_there_is_none() -> None:
    made, given_id = rules_of(entry(), entry("s3:ObjectRemoved:*", Id="mine"))
    assert (made.id, given_id.id) == ("made-1", "mine")


def test_filter_names_are_read_in_any_case_and_shown_in_the_dialects() -> None:
    described = filtered(PREFIX="a/", sUffix=".jpg")
    for dialect, names in ((AWS, ["Prefix", "Suffix"]), (CEPH, ["prefix", "suffix"])):
        shown = configuration_from_rules(rules_of(entry(Id="i", Filter=described), dialect=dialect), dialect)
        rules = shown["TopicConfigurations"][0]["Filter"]["Key"]["FilterRules"]
        assert [each["Name"] for each in rules] == names


@pytest.mark.parametrize(
    ("broken", "code", "message", "fields"),
    [
        (
            {"TopicArn": "arn:nonsense"},
            "InvalidArgument",
            "The ARN could not be parsed",
            {"ArgumentName": "Topic", "ArgumentValue": "arn:nonsense"},
        ),
        (
            {"Events": ["s3:ObjectEaten:*"]},
            "InvalidArgument",
            "A specified event is not supported for notifications.",
            {"ArgumentName": "Event", "ArgumentValue": "s3:ObjectEaten:*"},
        ),
        (
            {"Filter": filtered(infix="x")},
            "InvalidArgument",
            "filter rule name must be either prefix or suffix",
            {"ArgumentName": "FilterRule.Name", "ArgumentValue": "infix"},
        ),
        ({"Filter": {"Key": {"FilterRules": [{"Name": "prefix"}]}}}, "MalformedXML", None, {}),
        ({"Filter": {"Key": {"FilterRules": [{"Value": "x"}]}}}, "MalformedXML", None, {}),
        ({"Filter": filtered(prefix="a", Prefix="b")}, "InvalidArgument", None, None),
        ({"Filter": filtered(prefix="x" * 1025)}, "InvalidArgument", None, None),
        ({"Id": "x" * 256}, "InvalidArgument", None, None),
        ({"Events": []}, "MalformedXML", None, {}),
    ],
)
def test_what_is_wrong_in_form_is_answered_in_the_words_of_s3(
    broken: dict[str, Any], code: str, message: str | None, fields: dict[str, str] | None
) -> None:
    error = refused({**entry(), **broken})
    assert error.code == code
    assert message is None or error.message == message
    assert fields is None or error.fields == fields


def test_an_empty_filter_value_is_accepted() -> None:
    assert rules_of(entry(Filter=filtered(prefix="")))[0].filters[0].value == ""


def test_an_id_that_is_used_twice_is_refused() -> None:
    error = refused(entry(Id="same"), entry("s3:ObjectRemoved:*", Id="same"))
    assert (error.code, error.fields["ArgumentValue"]) == ("InvalidArgument", "same")


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (entry(), entry(), "Configurations overlap"),
        (entry(), entry("s3:ObjectCreated:Put"), "Configurations overlap"),
        (entry(Filter=filtered(prefix="a")), entry(), "Configuration is ambiguously defined"),
        (
            entry(Filter=filtered(prefix="a", suffix=".jpg")),
            entry(Filter=filtered(prefix="ab", suffix="jpg")),
            "Configuration is ambiguously defined",
        ),
    ],
)
def test_rules_that_overlap_are_refused(first: dict[str, Any], second: dict[str, Any], message: str) -> None:
    assert refused(first, second).message.startswith(message)
    named = [{**first, "Id": "1"}, {**second, "Id": "2"}]
    assert len(rules_of(*named, dialect=CEPH)) == 2


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (entry(), entry("s3:ObjectRemoved:*")),
        (entry("s3:ObjectCreated:Put"), entry("s3:ObjectCreated:Copy")),
        (entry(Filter=filtered(prefix="a")), entry(Filter=filtered(prefix="b"))),
        (
            entry(Filter=filtered(prefix="a", suffix=".jpg")),
            entry(Filter=filtered(prefix="a", suffix=".png")),
        ),
    ],
)
def test_rules_that_share_no_event_of_a_key_are_accepted(
    first: dict[str, Any], second: dict[str, Any]
) -> None:
    assert len(rules_of(first, second)) == 2


@pytest.mark.parametrize(
    "member", ["QueueConfigurations", "LambdaFunctionConfigurations", "EventBridgeConfiguration"]
)
def test_other_destinations_are_refused_with_what_is_supported(member: str) -> None:
    with pytest.raises(CallError, match="use TopicConfiguration") as raised:
        rules_from_configuration({member: []}, AWS, str)
    assert raised.value.code == "InvalidArgument"


def test_a_bucket_has_as_many_rules_as_the_dialect_allows() -> None:
    entries = [entry(Filter=filtered(prefix=f"{number:03}")) for number in range(101)]
    assert len(rules_of(*entries[:100])) == 100
    assert refused(*entries).code == "InvalidArgument"
    assert refused(*entries[:2], dialect=STORJ).code == "InvalidArgument"


def test_filters_are_on_the_key_the_metadata_and_the_tags_and_come_back_in_that_order() -> None:
    described = {
        "Tags": conditions(Team="Blue", team="red"),
        "Metadata": conditions(**{"X-Amz-Meta-Color": "Red"}),
        "Key": conditions(regex="[a-z]+", prefix="a"),
    }
    (made,) = rules_of(entry(Id="i", Filter=described))
    assert [(each.part, each.name, each.value) for each in made.filters] == [
        ("key", "regex", "[a-z]+"),
        ("key", "prefix", "a"),
        ("metadata", "x-amz-meta-color", "Red"),
        ("tags", "Team", "Blue"),
        ("tags", "team", "red"),
    ]
    (shown,) = configuration_from_rules([made], AWS)["TopicConfigurations"]
    assert list(shown["Filter"]) == ["Key", "Metadata", "Tags"]
    assert shown["Filter"]["Key"] == conditions(Regex="[a-z]+", Prefix="a")
    assert shown["Filter"]["Metadata"] == conditions(**{"x-amz-meta-color": "Red"})


@pytest.mark.parametrize(
    ("described", "message"),
    [
        ({"Metadata": conditions(color="red")}, "must start with x-amz-meta-"),
        ({"Metadata": conditions(**{"x-amz-meta-": "red"})}, "must start with x-amz-meta-"),
        ({"Metadata": conditions(**{"x-amz-meta-a": "1", "X-Amz-Meta-A": "2"})}, "more than one"),
        ({"Tags": conditions(**{"": "red"})}, "must not be empty"),
        ({"Tags": conditions(**{"x" * 1025: "red"})}, "1024 characters"),
        ({"Tags": conditions(team="x" * 1025)}, "1024 characters"),
        ({"Key": conditions(regex="(")}, "regular expression is not valid"),
        ({"Key": conditions(regex=r"(a)\1")}, "regular expression is not valid"),
        ({"Key": conditions(regex="((a{1000}){1000}){1000}")}, "regular expression is not valid"),
        ({"Key": conditions(regex=".*a.{700}(x|7)|.*b.{200}q")}, "regular expression is too costly"),
        ({"Key": conditions(regex="[ab]*a[ab]{400}x")}, "regular expression is too costly"),
    ],
)
def test_a_filter_that_cannot_be_is_refused(described: dict[str, Any], message: str) -> None:
    error = refused(entry(Filter=described))
    assert (error.code, message in error.message) == ("InvalidArgument", True)


def test_the_longest_filter_is_accepted() -> None:
    assert rules_of(entry(Filter=filtered(prefix="x" * 1024)))
    assert rules_of(entry(Filter=filtered(regex="(?:)" * 256)))


@pytest.mark.parametrize("dialect", [AWS, CEPH])
def test_an_arn_is_not_longer_than_2048_characters(dialect: Dialect) -> None:
    tenant = "t" * (2048 - len("arn:aws:sns:us-east-1::name"))
    longest = f"arn:aws:sns:us-east-1:{tenant}:name"
    assert rules_of({**entry(Id="i"), "TopicArn": longest}, dialect=dialect)[0].topic_arn == longest
    error = refused({**entry(Id="i"), "TopicArn": longest + "e"}, dialect=dialect)
    assert (error.code, "2048 characters" in error.message) == ("InvalidArgument", True)


@pytest.mark.parametrize(
    "broken",
    [
        {"TopicArn": "arn:aws:sns:" + "x" * 900_000},
        {"TopicArn": "x" * 2000},
        {"Id": "x" * 2000},
        {"Events": ["s3:" + "x" * 2000]},
        {"Filter": {"Key": {"FilterRules": [{"Name": "prefix", "Value": "x" * 2000}]}}},
        {"Filter": {"Tags": {"FilterRules": [{"Name": "x" * 2000, "Value": "y"}]}}},
    ],
)
def test_errors_repeat_no_more_than_1024_characters_of_a_value(broken: dict[str, Any]) -> None:
    for dialect in (AWS, CEPH, STORJ):
        error = refused({**entry(Id="i"), **broken}, dialect=dialect)
        assert max(len(text) for text in (error.message, *error.fields.values())) <= 1024


def test_the_same_holds_for_the_one_rule_that_is_put_by_its_id() -> None:
    with pytest.raises(CallError) as raised:
        rule_from_configuration({"TopicConfigurations": [entry(Id="x" * 9000)]}, AWS, "y" * 9000)
    assert max(len(text) for text in (raised.value.message, *raised.value.fields.values())) <= 1024


def test_rules_that_filter_by_more_than_prefix_and_suffix_overlap_with_nothing() -> None:
    plain = entry()
    for described in (
        filtered(regex=".*"),
        {"Metadata": conditions(**{"x-amz-meta-a": "1"})},
        {"Tags": conditions(a="1")},
    ):
        assert len(rules_of(plain, entry(Filter=described), entry(Filter=described))) == 3


def test_a_topic_of_pubsub_is_named_directly_and_a_malformed_one_is_refused() -> None:
    arn = "arn:gcp:pubsub::my-project:my-topic"
    for dialect in (AWS, CEPH, STORJ):
        assert rules_of({**entry(Id="i"), "TopicArn": arn}, dialect=dialect)[0].topic_arn == arn
    for bad in (
        "arn:gcp:pubsub:eu:my-project:my-topic",
        "arn:gcp:pubsub::my-project:",
        "arn:gcp:pubsub::p:t",
        "projects/my-project/topics/my-topic",
        "@log",
        "",
    ):
        for dialect in (AWS, CEPH, STORJ):
            error = refused({**entry(Id="i"), "TopicArn": bad}, dialect=dialect)
            assert (error.code, error.message) == ("InvalidArgument", "The ARN could not be parsed")


def test_storj_knows_only_pubsub_and_filters_on_prefix_and_suffix() -> None:
    assert "arn:gcp:pubsub::PROJECT:TOPIC" in refused(entry(), dialect=STORJ).message
    pubsub = {**entry(), "TopicArn": "arn:gcp:pubsub::my-project:my-topic"}
    for broken in (
        {"Filter": filtered(regex="a")},
        {"Filter": {"Tags": conditions(a="b")}},
        {"Filter": {"Metadata": conditions(**{"x-amz-meta-a": "b"})}},
        {"Events": ["s3:ObjectTagging:*"]},
        {"Events": ["s3:ObjectCreated:Post"]},
    ):
        assert refused({**pubsub, **broken}, dialect=STORJ).code == "InvalidArgument"
    assert rules_of({**pubsub, "Filter": filtered(prefix="a", suffix="")}, dialect=STORJ)


def test_one_rule_is_put_by_its_id_which_it_need_not_repeat() -> None:
    for dialect in (AWS, CEPH):
        for one in (entry(), entry(Id="mine")):
            assert rule_from_configuration({"TopicConfigurations": [one]}, dialect, "mine").id == "mine"
        for wrong in (
            {},
            {"TopicConfigurations": [entry(Id="other")]},
            {"TopicConfigurations": [entry(), entry()]},
            {"QueueConfigurations": [{}]},
        ):
            with pytest.raises(CallError) as raised:
                rule_from_configuration(wrong, dialect, "mine")
            assert raised.value.code == "InvalidArgument"
    for bad in ("x" * 256, "a\x00b"):
        with pytest.raises(CallError) as raised:
            rule_from_configuration({"TopicConfigurations": [entry()]}, AWS, bad)
        assert raised.value.code == "InvalidArgument"


def test_ceph_wants_ids_and_takes_no_events_for_all() -> None:
    assert refused(entry(), dialect=CEPH).code == "MalformedXML"
    assert refused(entry(Id=""), dialect=CEPH).code == "InvalidArgument"
    assert refused(entry(Id="i", Filter=filtered(infix="x")), dialect=CEPH).code == "MalformedXML"
    (made,) = rules_of({**entry(Id="i"), "Events": []}, dialect=CEPH)
    assert made.events == ("s3:ObjectCreated:*", "s3:ObjectRemoved:*")


values = st.text(max_size=20)
filters = st.fixed_dictionaries(
    {},
    optional={
        "Key": st.dictionaries(st.sampled_from(["prefix", "suffix"]), values).map(
            lambda given: conditions(**given)
        ),
        "Metadata": st.dictionaries(st.sampled_from(["x-amz-meta-a", "x-amz-meta-b"]), values).map(
            lambda given: conditions(**given)
        ),
        "Tags": st.dictionaries(st.text(min_size=1, max_size=5), values).map(
            lambda given: conditions(**given)
        ),
    },
)
entries = st.builds(
    lambda number, events, described: {
        "Id": f"id-{number}",
        "TopicArn": TOPIC_ARN,
        "Events": events,
        "Filter": described,
    },
    st.integers(0, 99),
    st.lists(st.sampled_from(sorted(EVENT_NAMES)), min_size=1, unique=True),
    filters,
)


@given(st.lists(entries, max_size=5, unique_by=lambda each: each["Id"]), st.sampled_from([AWS, CEPH]))
def test_what_is_shown_can_be_put_again(wanted: list[dict[str, Any]], dialect: Dialect) -> None:
    try:
        rules = rules_from_configuration({"TopicConfigurations": wanted}, dialect, str)
    except CallError:
        return
    assert rules_from_configuration(configuration_from_rules(rules, dialect), dialect, str) == rules
