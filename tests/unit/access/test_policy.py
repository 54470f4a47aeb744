"""The policy of a topic: what it opens, and to whom."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bucketwire.access.policy import (
    ACTIONS,
    ACTIONS_WITHOUT_EFFECT,
    DELETE,
    GET,
    PUBLISH,
    S3_SERVICE,
    SET,
    SOURCE_ACCOUNT,
    SOURCE_ARN,
    Decision,
    Who,
    decide,
    matches,
    parse_policy,
)
from bucketwire.errors import InvalidRequest
from bucketwire.gateway.protocol.model import load_service

TOPIC = "arn:aws:sns:us-east-1:acme:videos"
FRED = Who("acme", "fred", "id-of-fred")
OTHER = Who("globex", "fred", "id-of-another-fred")
NOBODYS = Who("", "fred", "id-of-a-third-fred")
S3 = Who("acme", "fred", "id-of-fred", service=S3_SERVICE)


def policy(**more: Any) -> str:
    statement = {"Effect": "Allow", "Principal": "*", "Action": "sns:*", "Resource": "*", **more}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def allowed(text: str, who: Who = FRED, action: str = GET, **context: str) -> bool:
    named = {name.replace("_", ":"): value for name, value in context.items()}
    return decide(parse_policy(text), who, action, TOPIC, named) is Decision.ALLOWED


def reason(text: str, topic_arn: str = "") -> str:
    with pytest.raises(InvalidRequest) as raised:
        parse_policy(text, topic_arn)
    return raised.value.message


@pytest.mark.parametrize(
    ("principal", "covered"),
    [
        ("*", {FRED, OTHER, NOBODYS}),
        ({"AWS": "*"}, {FRED, OTHER, NOBODYS}),
        ({"AWS": "acme"}, {FRED}),
        ({"AWS": "arn:aws:iam::acme:root"}, {FRED}),
        ({"AWS": "arn:aws:iam::acme:user/fred"}, {FRED}),
        ({"AWS": "arn:aws:iam::acme:user/id-of-fred"}, {FRED}),
        ({"AWS": "arn:aws:iam::acme:user/anne"}, set()),
        ({"AWS": "arn:aws:iam:::user/fred"}, {NOBODYS}),
        ({"AWS": "arn:aws:iam::000000000000:user/fred"}, {NOBODYS}),
        ({"AWS": ["globex", "arn:aws:iam::acme:user/fred"]}, {FRED, OTHER}),
        ({"AWS": "arn:aws:iam::acme:user/fred:sub"}, set()),
        ({"Service": S3_SERVICE}, set()),
    ],
)
def test_a_principal_is_everybody_an_account_or_a_user_of_one(principal: Any, covered: set[Who]) -> None:
    text = policy(Principal=principal)
    assert {who for who in (FRED, OTHER, NOBODYS) if allowed(text, who)} == covered


def test_only_s3_itself_is_the_service() -> None:
    text = policy(Principal={"Service": S3_SERVICE}, Action="SNS:Publish")
    assert allowed(text, S3, PUBLISH)
    assert not allowed(text, FRED, PUBLISH)
    assert not allowed(text, S3, SET)


def test_actions_are_known_in_any_case_and_by_wildcard() -> None:
    for written, covered in (
        ("sns:*", set(ACTIONS)),
        ("*", set(ACTIONS)),
        ("SNS:getTopicAttributes", {GET}),
        (["sns:Publish", "sns:Delete*"], {PUBLISH, DELETE}),
    ):
        text = policy(Action=written)
        assert {action for action in ACTIONS if allowed(text, FRED, action)} == covered


def test_a_resource_is_the_topic_or_a_pattern_that_fits_it() -> None:
    for resource, fits in (("*", True), (TOPIC, True), ("arn:aws:sns:*:acme:v*", True), (TOPIC + "x", False)):
        assert allowed(policy(Resource=resource)) is fits


def test_a_policy_is_about_its_own_topic_alone() -> None:
    for resource in ("*", TOPIC, "arn:aws:sns:*:*:videos", [TOPIC, "*"]):
        parse_policy(policy(Resource=resource), TOPIC)
    for resource in (TOPIC + "x", "arn:aws:sns:*:*:photos", [TOPIC, "arn:aws:s3:::media"]):
        assert TOPIC in reason(policy(Resource=resource), TOPIC)


@pytest.mark.parametrize("action", ACTIONS_WITHOUT_EFFECT)
def test_what_only_topics_of_aws_can_do_is_understood_and_opens_nothing(action: str) -> None:
    assert action.startswith("sns:")
    for written in (action, action.upper()):
        text = policy(Action=[written])
        assert not any(allowed(text, FRED, known) for known in ACTIONS)


def test_every_action_on_topics_in_the_model_of_sns_is_known() -> None:
    model = load_service("sns")
    on_topics = {
        f"sns:{name}"
        for name in model.operation_names
        if (shape := model.operation_model(name).input_shape)
        and {"TopicArn", "ResourceArn"} & shape.members.keys()
    }
    ours = {"sns:GetTopic"}
    assert on_topics - ours <= {*ACTIONS, *ACTIONS_WITHOUT_EFFECT}


@pytest.mark.parametrize("key", ["AWS:SourceOwner", "aws:SourceOwner", "aws:sourceowner"])
def test_the_source_owner_is_the_user_who_asks(key: str) -> None:
    text = policy(Condition={"StringEquals": {key: "id-of-fred"}})
    assert {who for who in (FRED, OTHER, NOBODYS) if allowed(text, who)} == {FRED}


def test_deny_wins_over_allow_and_silence_is_neither() -> None:
    both = json.loads(policy())
    both["Statement"].append({**both["Statement"][0], "Effect": "Deny", "Action": ["sns:DeleteTopic"]})
    parsed = parse_policy(json.dumps(both))
    assert decide(parsed, FRED, GET, TOPIC, {}) is Decision.ALLOWED
    assert decide(parsed, FRED, DELETE, TOPIC, {}) is Decision.DENIED
    assert decide((), FRED, GET, TOPIC, {}) is Decision.SILENT


def test_the_policy_of_awss_own_manual_opens_the_topic_to_the_named_bucket_alone() -> None:
    text = policy(
        Sid="Example SNS topic policy",
        Principal={"Service": "s3.amazonaws.com"},
        Action=["SNS:Publish"],
        Resource=TOPIC,
        Condition={
            "ArnLike": {"aws:SourceArn": "arn:aws:s3:*:*:media"},
            "StringEquals": {"aws:SourceAccount": "acme"},
        },
    )
    parsed = parse_policy(text)
    for bucket, account, opens in (("media", "acme", True), ("other", "acme", False), ("media", "x", False)):
        context = {SOURCE_ARN: f"arn:aws:s3:::{bucket}", SOURCE_ACCOUNT: account}
        assert (decide(parsed, S3, PUBLISH, TOPIC, context) is Decision.ALLOWED) is opens
    assert decide(parsed, S3, PUBLISH, TOPIC, {}) is Decision.SILENT


@pytest.mark.parametrize(
    ("operator", "pattern", "holds"),
    [
        ("StringEquals", "arn:aws:s3:::media", True),
        ("StringEquals", "arn:aws:s3:::*", False),
        ("StringLike", "arn:aws:s3*med??", True),
        ("ArnEquals", "arn:aws:s3:::med*", True),
        ("ArnLike", "arn:aws:s3:*", False),
        ("ArnLike", ["arn:aws:s3:::x", "arn:aws:s3:::media"], True),
    ],
)
def test_conditions_compare_as_in_aws(operator: str, pattern: Any, holds: bool) -> None:
    text = policy(Condition={operator: {"AWS:SourceArn": pattern}})
    assert allowed(text, aws_SourceArn="arn:aws:s3:::media") is holds


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("{", "not JSON"),
        ("[]", "not a JSON object"),
        ("[" * 100_000, "characters"),
        ("[" * 20_000, "not JSON"),
        ("{}", "Statement"),
        ('{"Statement": []}', "Statement"),
        ('{"Version": "2020-01-01", "Statement": []}', "Version"),
        ('{"Statements": []}', "Statements"),
        (policy(Effect="Maybe"), "Effect"),
        (policy(Action="sns:ListTopics"), "sns:ListTopics"),
        (policy(Action="s3:GetObject"), "s3:GetObject"),
        (policy(Action=[]), "Action"),
        (policy(Action=[1]), "Action"),
        (policy(Resource="videos"), "videos"),
        (policy(Resource=None), "Resource"),
        (policy(Principal=None), "Principal"),
        (policy(Principal={"AWS": "arn:aws:iam::acme:group/all"}), "group/all"),
        (policy(Principal={"AWS": "arn:aws:iam::*:user/fred"}), "without wildcards"),
        (policy(Principal={"AWS": "arn:aws:iam::acme:user/*"}), "user/*"),
        (policy(Principal={"AWS": "arn:aws:iam::acme:user/fre?"}), "fre?"),
        (policy(Principal={"AWS": "ac*"}), "ac*"),
        (
            policy().replace('"Effect": "Allow"', '"Effect": "Deny", "Effect": "Allow"'),
            "'Effect' comes twice",
        ),
        (policy().replace('"Statement"', '"Statement": [], "Statement"'), "'Statement' comes twice"),
        (policy(Id=float("nan")), "not JSON"),
        (policy(Principal={"Service": "lambda.amazonaws.com"}), "lambda.amazonaws.com"),
        (policy(Principal={"Federated": "x"}), "Federated"),
        (policy(NotAction="sns:Publish"), "NotAction"),
        (policy(Condition=[]), "Condition"),
        (policy(Condition={"StringEquals": "x"}), "StringEquals"),
        (policy(Condition={"IpAddress": {"aws:SourceIp": "::1"}}), "IpAddress"),
        (policy(Condition={"StringEquals": {"aws:PrincipalOrgID": "o"}}), "aws:PrincipalOrgID"),
    ],
)
def test_what_is_not_understood_is_named(text: str, named: str) -> None:
    assert named in reason(text)


def test_a_pattern_with_many_stars_takes_no_time() -> None:
    assert not matches("a" * 10_000, "*a" * 200 + "b")
    assert matches("a[1]", "a[?]")


JSON = st.recursive(
    st.none() | st.booleans() | st.text(max_size=5) | st.sampled_from(["*", "Allow", "sns:*", TOPIC]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["Statement", "Effect", "Principal", "Action", "Resource", "Condition", "AWS", "x"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=10,
)


@given(JSON)
def test_any_json_is_a_policy_or_is_refused(document: Any) -> None:
    try:
        parsed = parse_policy(json.dumps(document))
    except InvalidRequest:
        return
    assert decide(parsed, FRED, GET, TOPIC, {}) in Decision
