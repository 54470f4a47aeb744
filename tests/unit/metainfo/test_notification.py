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
    check_destinations,
    configuration_from_rules,
    merged_rules,
    rules_from_configuration,
)
from factories import TOPIC_ARN, rule, topic


def entry(*events: str, **more: Any) -> dict[str, Any]:
    return {"TopicArn": TOPIC_ARN, "Events": list(events or ["s3:ObjectCreated:*"]), **more}


def filtered(**filters: str) -> dict[str, Any]:
    return {"Key": {"FilterRules": [{"Name": name, "Value": value} for name, value in filters.items()]}}


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


def test_ceph_wants_ids_and_takes_no_events_for_all() -> None:
    assert refused(entry(), dialect=CEPH).code == "MalformedXML"
    assert refused(entry(Id=""), dialect=CEPH).code == "InvalidArgument"
    assert refused(entry(Id="i", Filter=filtered(infix="x")), dialect=CEPH).code == "MalformedXML"
    (made,) = rules_of({**entry(Id="i"), "Events": []}, dialect=CEPH)
    assert made.events == ("s3:ObjectCreated:*", "s3:ObjectRemoved:*")


def test_a_put_replaces_or_merges_by_id_and_an_empty_one_clears() -> None:
    old, kept, new = rule(id="a"), rule(id="b"), rule("s3:ObjectCreated:Put", id="a")
    assert merged_rules([old, kept], [new], AWS) == [new]
    assert merged_rules([old, kept], [new], CEPH) == [new, kept]
    assert merged_rules([old, kept], [], CEPH) == merged_rules([old, kept], [], AWS) == []


def test_a_topic_that_is_missing_deleted_or_anothers_is_refused() -> None:
    good = topic()
    deleted = type(good)(good.arn, good.name, good.owner_id, deleted_at_ns=1)
    check_destinations([rule()], lambda _: good, "owner-1", AWS)
    for found, caller in ((None, "owner-1"), (deleted, "owner-1"), (good, "someone")):
        with pytest.raises(CallError, match="Unable to validate") as raised:
            check_destinations([rule(), rule()], lambda _, found=found: found, caller, AWS)
        assert raised.value.code == "InvalidArgument"
        assert raised.value.fields["ArgumentName1"] == TOPIC_ARN
        assert "ArgumentName2" not in raised.value.fields
        with pytest.raises(CallError) as raised:
            check_destinations([rule()], lambda _, found=found: found, caller, CEPH)
        assert raised.value.code == "NoSuchKey"


filters = st.dictionaries(st.sampled_from(["prefix", "suffix"]), st.text(max_size=20)).map(
    lambda values: filtered(**values)
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
