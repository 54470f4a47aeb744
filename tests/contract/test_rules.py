"""The contract of `Rules`: history, and no window in which a write sees old rules."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bucketwire.errors import InvalidRequest, NotFound
from bucketwire.event.change import decode_change
from bucketwire.event.name import Operation
from bucketwire.event.rule import Rule, matching
from bucketwire.metabase import open_metabase
from bucketwire.metabase.base import Metabase
from bucketwire.metabase.values import Slice
from factories import new_object, origin, rule


def test_rules_come_back_in_the_order_they_were_written(metabase: Metabase, bucket: str) -> None:
    wanted = [rule(id="b", prefix="b/"), rule("s3:ObjectCreated:Put", id="a", suffix=".mp4")]
    metabase.rules.edit(bucket, lambda _: wanted)
    assert metabase.rules.current(bucket) == wanted


def test_an_edit_sees_the_rules_in_force(metabase: Metabase, bucket: str) -> None:
    metabase.rules.edit(bucket, lambda _: [rule(id="one")])
    metabase.rules.edit(bucket, lambda present: [*present, rule(id="two")])
    assert [each.id for each in metabase.rules.current(bucket)] == ["one", "two"]


def test_an_edit_that_raises_changes_nothing(metabase: Metabase, bucket: str) -> None:
    metabase.rules.edit(bucket, lambda _: [rule(id="kept")])

    def refuse(_: list[Rule]) -> list[Rule]:
        raise InvalidRequest("no")

    with pytest.raises(InvalidRequest):
        metabase.rules.edit(bucket, refuse)
    assert [each.id for each in metabase.rules.current(bucket)] == ["kept"]


def test_an_edit_that_changes_nothing_makes_no_revision(metabase: Metabase, bucket: str) -> None:
    assert metabase.rules.edit(bucket, lambda _: []) == 0
    first = metabase.rules.edit(bucket, lambda _: [rule(id="one"), rule(id="two")])
    assert metabase.rules.edit(bucket, lambda _: [rule(id="one"), rule(id="two")]) == first
    second = metabase.rules.edit(bucket, lambda rules: rules[::-1])
    assert second > first
    assert [each.id for each in metabase.rules.current(bucket)] == ["two", "one"]


def test_old_revisions_stay_as_they_were_also_when_the_bucket_is_gone(
    metabase: Metabase, metabase_url: str, bucket: str
) -> None:
    bucket_id = metabase.buckets.get(bucket).id
    first = metabase.rules.edit(bucket, lambda _: [rule(id="one")])
    second = metabase.rules.edit(bucket, lambda _: [])
    third = metabase.rules.edit(bucket, lambda _: [rule(id="three")])
    assert first < second < third
    metabase.buckets.delete(bucket)
    again = open_metabase(metabase_url)
    try:
        found = [[each.id for each in again.rules.at(bucket_id, at)] for at in (0, first, second, third)]
    finally:
        again.close()
    assert found == [[], ["one"], [], ["three"]]


def test_a_bucket_made_anew_inherits_no_rules(metabase: Metabase, bucket: str) -> None:
    metabase.rules.edit(bucket, lambda _: [rule()])
    metabase.buckets.delete(bucket)
    metabase.buckets.create(bucket, "owner-1", "us-east-1")
    assert metabase.rules.current(bucket) == []


def test_rules_of_a_missing_bucket_are_not_found(metabase: Metabase) -> None:
    with pytest.raises(NotFound):
        metabase.rules.current("nothing")
    with pytest.raises(NotFound):
        metabase.rules.edit("nothing", lambda rules: rules)


STEPS = st.lists(st.one_of(st.integers(0, 2), st.sampled_from(["a/x", "b/x", "c"])), max_size=15)


@settings(max_examples=30)
@given(steps=STEPS)
def test_each_change_is_judged_by_the_rules_in_force_when_it_was_written(
    metabase: Metabase, metabase_url: str, bucket: str, steps: list[int | str]
) -> None:
    configurations = [[], [rule(id="a", prefix="a/")], [rule(id="all"), rule(id="b", prefix="b/")]]
    other = open_metabase(metabase_url)  # a second gateway: rules put by one hold for the other at once
    start = metabase.changes.head(metabase.changes.start(), 1_000_000)
    metabase.rules.edit(bucket, lambda _: [])
    in_force: list[Rule] = []
    expected = []
    for step in steps:
        if isinstance(step, int):
            in_force = configurations[step]
            metabase.rules.edit(bucket, lambda _, rules=in_force: rules)
        else:
            other.objects.put(bucket, new_object(step), Operation.PUT, origin())
            ids = [each.id for each in in_force if not each.filters or step.startswith(each.filters[0].value)]
            if ids:
                expected.append((step, ids))
    other.close()
    end = metabase.changes.head(start, 1_000_000)
    routed = []
    for row in metabase.changes.read(Slice(start, end)):
        change = decode_change(row)
        assert change.revision is not None
        by_revision = matching(change, metabase.rules.at(change.bucket.id, change.revision))
        by_time = matching(change, metabase.rules.at(change.bucket.id, change.committed_at_ns))
        assert by_revision == by_time
        routed.append((change.key, [each.id for each in by_revision]))
    assert routed == expected
