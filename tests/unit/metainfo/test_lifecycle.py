"""Lifecycle rules: which are accepted, and what they remove when."""

from datetime import UTC, datetime
from typing import Any

import pytest

from bucketwire.errors import InvalidRequest
from bucketwire.event.change import Status
from bucketwire.metabase.values import StoredObject, Upload
from bucketwire.metainfo.lifecycle import (
    configuration_from_lifecycle,
    due_removals,
    due_upload,
    lifecycle_document,
    lifecycle_from_document,
)
from bucketwire.metainfo.lifecycle_form import lifecycle_from_configuration

DAY_NS = 86_400 * 10**9
NOON_NS = int(datetime(2026, 3, 10, 12, tzinfo=UTC).timestamp()) * 10**9
MIDNIGHT_NS = NOON_NS + DAY_NS // 2


def rules(*entries: dict[str, Any]) -> list[Any]:
    return lifecycle_from_configuration(
        [{"Status": "Enabled", **({} if "Prefix" in each else {"Filter": {}}), **each} for each in entries],
        lambda: "generated",
    )


def version(age_days: float = 0, *, marker: bool = False, size: int = 5, **more: Any) -> StoredObject:
    created_at_ns = NOON_NS - int(age_days * DAY_NS)
    status = Status.DELETE_MARKER_VERSIONED if marker else Status.COMMITTED_VERSIONED
    stored = {"key": "logs/a", "etag": "e", "owner_id": "o", **more}
    return StoredObject(
        version=created_at_ns, status=status, size_bytes=size, created_at_ns=created_at_ns, **stored
    )


def removed(
    entries: list[Any], versions: list[StoredObject], now_ns: int = NOON_NS
) -> list[tuple[int, bool]]:
    """The places of what is removed among the versions, and whether as the current object."""
    return [(versions.index(each.stored), each.current) for each in due_removals(entries, versions, now_ns)]


def code_of(*entries: dict[str, Any]) -> str:
    with pytest.raises(InvalidRequest) as raised:
        lifecycle_from_configuration(list(entries), lambda: "generated")
    return raised.value.code


def test_days_count_up_to_the_next_midnight() -> None:
    one_day = rules({"Expiration": {"Days": 1}})
    assert removed(one_day, [version(1)], MIDNIGHT_NS - 1) == []
    assert removed(one_day, [version(1)], MIDNIGHT_NS) == [(0, True)]


def test_a_date_takes_everything_once_it_has_come() -> None:
    by_date = rules({"Expiration": {"Date": datetime(2026, 3, 11, tzinfo=UTC)}})
    assert removed(by_date, [version(0)], MIDNIGHT_NS - 1) == []
    assert removed(by_date, [version(0)], MIDNIGHT_NS) == [(0, True)]


def test_a_rule_that_is_disabled_does_nothing() -> None:
    assert removed(rules({"Status": "Disabled", "Expiration": {"Days": 1}}), [version(9)]) == []


@pytest.mark.parametrize(
    ("condition", "hits"),
    [
        ({"Prefix": "logs/"}, True),
        ({"Prefix": "other/"}, False),
        ({"Tag": {"Key": "a", "Value": "1"}}, True),
        ({"Tag": {"Key": "a", "Value": "2"}}, False),
        ({"ObjectSizeGreaterThan": 4}, True),
        ({"ObjectSizeGreaterThan": 5}, False),
        ({"ObjectSizeLessThan": 6}, True),
        ({"ObjectSizeLessThan": 5}, False),
        ({"And": {"Prefix": "logs/", "Tags": [{"Key": "a", "Value": "1"}]}}, True),
        ({"And": {"Prefix": "logs/", "Tags": [{"Key": "b", "Value": "1"}]}}, False),
        ({}, True),
    ],
)
def test_a_filter_picks_objects_by_key_tags_and_size(condition: dict[str, Any], hits: bool) -> None:
    expiring = rules({"Filter": condition, "Expiration": {"Days": 1}})
    assert bool(removed(expiring, [version(9, tags={"a": "1"})])) is hits


def test_a_prefix_may_stand_outside_of_a_filter() -> None:
    assert removed(rules({"Prefix": "logs/", "Expiration": {"Days": 1}}), [version(9)]) == [(0, True)]
    assert removed(rules({"Prefix": "x", "Expiration": {"Days": 1}}), [version(9)]) == []


def test_a_marker_goes_only_when_it_is_all_that_is_left() -> None:
    for expiration in ({"ExpiredObjectDeleteMarker": True}, {"Days": 1}):
        expiring = rules({"Expiration": expiration})
        assert removed(expiring, [version(9, marker=True)]) == [(0, False)]
        assert removed(expiring, [version(9, marker=True), version(10)]) == []
    assert removed(rules({"Expiration": {"Days": 1}}), [version(0, marker=True)]) == []


def test_noncurrent_versions_age_from_when_they_were_replaced() -> None:
    after_two = rules({"NoncurrentVersionExpiration": {"NoncurrentDays": 2}})
    assert removed(after_two, [version(1), version(30)]) == []
    assert removed(after_two, [version(3), version(30)]) == [(1, False)]


def test_the_newest_noncurrent_versions_may_be_kept() -> None:
    keeping = rules({"NoncurrentVersionExpiration": {"NoncurrentDays": 1, "NewerNoncurrentVersions": 2}})
    history = [version(age) for age in (5, 6, 7, 8, 9)]
    assert removed(keeping, history) == [(4, False), (3, False)]


def test_each_version_goes_once_though_many_rules_say_so() -> None:
    entry = {"Expiration": {"Days": 1}, "NoncurrentVersionExpiration": {"NoncurrentDays": 1}}
    twice = rules({"ID": "a", **entry}, {"ID": "b", **entry})
    assert removed(twice, [version(5), version(9)]) == [(1, False), (0, True)]


def test_uploads_are_aborted_by_prefix_and_age() -> None:
    aborting = rules({"Prefix": "a", "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 1}})
    old = NOON_NS - 5 * DAY_NS
    assert due_upload(aborting, Upload("1", "a", "o", old), NOON_NS)
    assert not due_upload(aborting, Upload("1", "b", "o", old), NOON_NS)
    assert not due_upload(aborting, Upload("1", "a", "o", NOON_NS), NOON_NS)
    assert not due_upload(rules({"Expiration": {"Days": 1}}), Upload("1", "a", "o", old), NOON_NS)


def test_what_was_put_comes_back_from_the_document() -> None:
    entries = [
        {
            "ID": "a",
            "Status": "Enabled",
            "Filter": {},
            "Expiration": {"Date": datetime(2030, 1, 1, tzinfo=UTC)},
        },
        {"ID": "b", "Status": "Disabled", "Prefix": "", "NoncurrentVersionExpiration": {"NoncurrentDays": 3}},
        {
            "ID": "c",
            "Status": "Enabled",
            "Filter": {"And": {"Prefix": "p", "Tags": [{"Key": "k", "Value": "v"}]}},
            "Expiration": {"ExpiredObjectDeleteMarker": False},
        },
    ]
    kept = lifecycle_from_document(lifecycle_document(lifecycle_from_configuration(entries, str)))
    shown = configuration_from_lifecycle(kept)
    for entry in shown:
        if "And" in entry.get("Filter", {}):
            entry["Filter"]["And"]["Tags"] = list(entry["Filter"]["And"]["Tags"])
    assert shown == entries


def test_a_rule_without_an_id_gets_one() -> None:
    assert rules({"Expiration": {"Days": 1}})[0].id == "generated"


GOOD = {"Status": "Enabled", "Prefix": "", "Expiration": {"Days": 1}}


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"Status": "enabled"}, "MalformedXML"),
        ({"Filter": {}}, "MalformedXML"),
        ({"ID": "x" * 256}, "InvalidArgument"),
        ({"Expiration": {"Days": 0}}, "InvalidArgument"),
        ({"Expiration": {"Days": -1}}, "InvalidArgument"),
        ({"Expiration": {}}, "MalformedXML"),
        ({"Expiration": {"Days": 1, "Date": datetime(2030, 1, 1, tzinfo=UTC)}}, "MalformedXML"),
        ({"Expiration": {"Days": 1, "ExpiredObjectDeleteMarker": True}}, "MalformedXML"),
        ({"Expiration": {"Date": datetime(2030, 1, 1, 1, tzinfo=UTC)}}, "InvalidArgument"),
        ({"NoncurrentVersionExpiration": {}}, "MalformedXML"),
        ({"NoncurrentVersionExpiration": {"NoncurrentDays": 0}}, "InvalidArgument"),
        (
            {"NoncurrentVersionExpiration": {"NoncurrentDays": 1, "NewerNoncurrentVersions": 101}},
            "InvalidArgument",
        ),
        ({"AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 0}}, "InvalidArgument"),
        ({"Transitions": [{"Days": 1, "StorageClass": "GLACIER"}]}, "NotImplemented"),
        ({"NoncurrentVersionTransitions": [{"NoncurrentDays": 1}]}, "NotImplemented"),
    ],
)
def test_a_rule_that_is_wrong_is_refused(changed: dict[str, Any], code: str) -> None:
    assert code_of({**GOOD, **changed}) == code


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ({"Prefix": "a", "Tag": {"Key": "k", "Value": "v"}}, "MalformedXML"),
        ({"And": {}}, "MalformedXML"),
        ({"And": {"Tags": [{"Key": "k", "Value": "v"}, {"Key": "k", "Value": "w"}]}}, "InvalidRequest"),
        ({"And": {"ObjectSizeGreaterThan": 5, "ObjectSizeLessThan": 5}}, "InvalidRequest"),
        ({"ObjectSizeLessThan": 0}, "InvalidRequest"),
    ],
)
def test_a_filter_that_is_wrong_is_refused(condition: dict[str, Any], code: str) -> None:
    assert code_of({"Status": "Enabled", "Filter": condition, "Expiration": {"Days": 1}}) == code


def test_what_tags_cannot_tell_is_refused_with_tags() -> None:
    tagged = {"Status": "Enabled", "Filter": {"Tag": {"Key": "k", "Value": "v"}}}
    assert code_of({**tagged, "Expiration": {"ExpiredObjectDeleteMarker": True}}) == "InvalidRequest"
    aborting = {"AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 1}}
    assert code_of({**tagged, **aborting}) == "InvalidRequest"


def test_a_rule_needs_a_filter_and_an_action() -> None:
    assert code_of({"Status": "Enabled", "Expiration": {"Days": 1}}) == "MalformedXML"
    assert code_of({"Status": "Enabled", "Prefix": ""}) == "InvalidRequest"


def test_a_configuration_has_up_to_a_thousand_rules_with_ids_of_their_own() -> None:
    assert code_of() == "MalformedXML"
    assert code_of(*[{**GOOD, "ID": str(number)} for number in range(1001)]) == "MalformedXML"
    assert code_of({**GOOD, "ID": "a"}, {**GOOD, "ID": "a"}) == "InvalidArgument"
