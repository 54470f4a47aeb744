"""What becomes of the rules in force, and the conditions on it."""

import pytest

from bucketwire.errors import CallError
from bucketwire.event.dialect import AWS, CEPH, STORJ
from bucketwire.event.rule import Filter, Part, Rule
from bucketwire.metainfo.rule_edits import (
    RuleCondition,
    configuration_etag,
    merged_rules,
    with_rule,
    without_rule,
)
from factories import rule

OLD, KEPT = rule("s3:ObjectCreated:*", id="a"), rule("s3:ObjectRemoved:*", id="b")
RULES = [OLD, KEPT]


def holds(condition: RuleCondition, current: list[Rule]) -> bool:
    try:
        return condition.guarding(lambda rules: [*rules, OLD])(current) == [*current, OLD]
    except CallError as error:
        if error.code != "PreconditionFailed":
            raise
        return False


def test_a_put_replaces_or_merges_by_id_and_an_empty_one_clears() -> None:
    new = rule("s3:ObjectCreated:Put", id="a")
    assert merged_rules(RULES, [new], AWS) == [new]
    assert merged_rules(RULES, [new], CEPH) == [new, KEPT]
    assert merged_rules(RULES, [], CEPH) == merged_rules(RULES, [], AWS) == []


def test_one_rule_is_added_or_takes_the_place_of_the_one_of_its_id() -> None:
    new, more = rule("s3:ObjectCreated:Put", id="a"), rule("s3:ObjectTagging:*", id="c")
    for dialect in (AWS, CEPH):
        assert with_rule(RULES, new, dialect) == [new, KEPT]
        assert with_rule(RULES, more, dialect) == [OLD, KEPT, more]


def test_one_rule_must_not_overlap_with_the_others_nor_be_one_too_many() -> None:
    overlapping = rule("s3:ObjectRemoved:Delete", id="c")
    assert len(with_rule(RULES, overlapping, CEPH)) == 3
    with pytest.raises(CallError, match="overlap"):
        with_rule(RULES, overlapping, AWS)
    with pytest.raises(CallError, match="up to 1 "):
        with_rule([OLD], KEPT, STORJ)
    many = [rule(id=str(number)) for number in range(100)]
    for merge in (lambda: with_rule(many, OLD, CEPH), lambda: merged_rules(many, [OLD], CEPH)):
        with pytest.raises(CallError, match="up to 100 "):
            merge()


def test_the_expressions_of_a_bucket_are_bounded_together_however_they_come() -> None:
    def matching(pattern: str, number: int) -> Rule:
        return Rule(str(number), OLD.topic_arn, OLD.events, (Filter("regex", pattern),))

    everyday = [matching(r".*\.jpg", number) for number in range(17)]
    costly = [matching("[ab]*a[ab]{200}x", number) for number in range(3)]
    tagged = Rule("t", OLD.topic_arn, OLD.events, (Filter("regex", "(", Part.TAGS),))
    for dialect in (AWS, CEPH):
        assert merged_rules([], [*everyday, tagged], dialect) == [*everyday, tagged]
        assert with_rule(costly[:1], costly[1], dialect) == costly[:2]
        for merge in (
            lambda dialect=dialect: merged_rules([], costly, dialect),
            lambda dialect=dialect: with_rule(costly[:2], costly[2], dialect),
        ):
            with pytest.raises(CallError, match="too costly together") as raised:
                merge()
            assert raised.value.code == "InvalidArgument"
    with pytest.raises(CallError, match="too costly together"):
        merged_rules(costly[:2], costly[2:], CEPH)
    assert merged_rules(costly[:2], costly[2:], AWS) == costly[2:]


def test_one_rule_is_removed_or_all_are() -> None:
    assert without_rule(RULES, "a") == [KEPT]
    assert without_rule(RULES, "none-such") == RULES
    assert without_rule(RULES, None) == []


def test_the_etag_tells_configurations_apart() -> None:
    by_tag = Rule("a", OLD.topic_arn, OLD.events, (Filter("prefix", "x", Part.TAGS),))
    by_key = Rule("a", OLD.topic_arn, OLD.events, (Filter("prefix", "x"),))
    configurations = ([], [OLD], RULES, [KEPT, OLD], [by_tag], [by_key])
    assert len({configuration_etag(rules) for rules in configurations}) == len(configurations)
    assert configuration_etag([by_key]) == configuration_etag([by_key])


def test_the_etag_never_changes_between_versions() -> None:
    """Tools keep it; were it to change, an upgrade would fail their next conditional write."""
    filtered = Rule("a", "arn:aws:sns:us-east-1::t", ("s3:ObjectCreated:*",), (Filter("prefix", "x"),))
    assert configuration_etag([filtered]) == '"c9ce4ee978254093f7a2da077806ffe7"'


@pytest.mark.parametrize("quoted", [True, False])
def test_a_condition_on_the_etag_is_on_the_whole_configuration(quoted: bool) -> None:
    etag = configuration_etag(RULES)
    etag = etag if quoted else etag.strip('"')
    for rule_id in (None, "a", "new"):
        assert holds(RuleCondition(if_match=etag, rule_id=rule_id), RULES)
        assert holds(RuleCondition(if_match=f'"other", W/{etag}', rule_id=rule_id), RULES)
        assert not holds(RuleCondition(if_match=etag, rule_id=rule_id), [OLD])
        assert not holds(RuleCondition(if_none_match=etag, rule_id=rule_id), RULES)
        assert holds(RuleCondition(if_none_match=etag, rule_id=rule_id), [OLD])
    assert not holds(RuleCondition(if_match=""), RULES)


def test_a_star_asks_for_the_rule_or_for_any() -> None:
    assert holds(RuleCondition(if_none_match="*", rule_id="new"), RULES)
    assert not holds(RuleCondition(if_none_match="*", rule_id="a"), RULES)
    assert holds(RuleCondition(if_match="*", rule_id="a"), RULES)
    assert not holds(RuleCondition(if_match="*", rule_id="new"), RULES)
    assert holds(RuleCondition(if_none_match="*"), [])
    assert not holds(RuleCondition(if_none_match="*"), RULES)
    assert not holds(RuleCondition(if_match="*"), [])
