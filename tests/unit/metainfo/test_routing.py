"""Whose changes a topic gets."""

import json
from unittest.mock import Mock

import msgspec
import pytest

from bucketwire.event.change import ObjectChange, encode_change
from bucketwire.event.dialect import AWS
from bucketwire.event.installation import Installation
from bucketwire.event.topic import Topic
from bucketwire.metabase.base import Metabase
from bucketwire.metabase.values import User
from bucketwire.metainfo.routing import Router
from bucketwire.metainfo.topics import may_publish
from bucketwire.metainfo.users import create_user
from factories import TOPIC_ARN, change, policy_for, rule

DEFAULT_POLICY = json.dumps(
    {
        "Version": "2008-10-17",
        "Id": "__default_policy_ID",
        "Statement": [
            {
                "Sid": "__default_statement_ID",
                "Effect": "Allow",
                "Principal": {"AWS": "*"},
                "Action": ["SNS:Publish", "SNS:SetTopicAttributes"],
                "Resource": TOPIC_ARN,
                "Condition": {"StringEquals": {"AWS:SourceOwner": "topic-owner"}},
            }
        ],
    }
)
"""As Terraform sets it to take a policy away."""
SERVICE_POLICY = json.dumps(
    {
        "Statement": {
            "Effect": "Allow",
            "Principal": {"Service": "s3.amazonaws.com"},
            "Action": "sns:Publish",
            "Resource": TOPIC_ARN,
            "Condition": {
                "ArnLike": {"aws:SourceArn": "arn:aws:s3:*:*:bobs"},
                "StringEquals": {"aws:SourceAccount": "acme"},
            },
        }
    }
)
"""As AWS' manual shows it."""
DENYING_POLICY = json.dumps(
    {
        "Statement": [
            *json.loads(policy_for("*"))["Statement"],
            {
                "Effect": "Deny",
                "Principal": {"AWS": "arn:aws:iam::acme:user/bob"},
                "Action": "sns:*",
                "Resource": "*",
            },
        ]
    }
)


@pytest.fixture
def router(metabase: Metabase) -> Router:
    return Router(metabase, Installation(AWS))


@pytest.fixture
def bob(metabase: Metabase) -> User:
    return create_user(metabase.users, "bob", "acme")[0]


@pytest.fixture
def bobs(metabase: Metabase, bob: User) -> ObjectChange:
    """A change in a bucket of bob's, whose rule names the topic."""
    return change_in(metabase, "bobs", bob.id)


def change_in(metabase: Metabase, bucket: str, owner_id: str) -> ObjectChange:
    made = metabase.buckets.create(bucket, owner_id, "us-east-1")
    revision = metabase.rules.edit(bucket, lambda _: [rule()])
    return msgspec.structs.replace(change(revision=revision), bucket=made.ref())


def put_topic(metabase: Metabase, policy: str | None, owner_id: str = "topic-owner") -> Topic:
    made = Topic(TOPIC_ARN, "videos", owner_id, {} if policy is None else {"Policy": policy})
    metabase.topics.put(made)
    return made


def refusals(router: Router, about: ObjectChange) -> list[str]:
    router.refresh()
    return [refusal for (_, refusal), _ in router.route(encode_change(about))]


@pytest.mark.parametrize(
    ("policy", "is_open"),
    [
        (None, False),
        ("{}", False),
        (DEFAULT_POLICY, False),
        (DENYING_POLICY, False),
        (SERVICE_POLICY, True),
        (policy_for("*"), True),
        (policy_for("acme"), True),
        (policy_for("000000000000"), False),
        (policy_for("arn:aws:iam::acme:user/bob"), True),
        (policy_for("arn:aws:iam::acme:user/carol"), False),
        (policy_for("arn:aws:iam::other:user/bob"), False),
    ],
)
def test_a_policy_opens_a_topic_to_whom_it_would_let_put_a_rule(
    metabase: Metabase, router: Router, bob: User, bobs: ObjectChange, policy: str | None, is_open: bool
) -> None:
    theirs = put_topic(metabase, policy)
    assert may_publish(theirs, bob.id, bob.tenant, bob.name, "bobs") is is_open
    closed = "the topic is another user's, and no policy opens it to the owner of the bucket"
    assert refusals(router, bobs) == ["" if is_open else closed]


def test_a_policy_that_is_narrowed_closes_the_topic_at_the_next_refresh(
    metabase: Metabase, router: Router, bobs: ObjectChange
) -> None:
    put_topic(metabase, policy_for("acme"))
    assert refusals(router, bobs) == [""]
    for narrowed in (DEFAULT_POLICY, None, policy_for("arn:aws:iam::acme:user/carol")):
        put_topic(metabase, narrowed)
        assert refusals(router, bobs) != [""]
    put_topic(metabase, policy_for("acme"))
    assert refusals(router, bobs) == [""]


def test_each_bucket_is_judged_by_itself(metabase: Metabase, router: Router, bobs: ObjectChange) -> None:
    carol, _ = create_user(metabase.users, "carol", "acme")
    carols = change_in(metabase, "carols", carol.id)
    put_topic(metabase, policy_for("arn:aws:iam::acme:user/carol"))
    for _ in range(2):
        assert [bool(*refusals(router, each)) for each in (bobs, carols)] == [True, False]


def test_root_is_known_by_its_name_though_it_is_kept_nowhere(metabase: Metabase, router: Router) -> None:
    roots = change_in(metabase, "roots", "root-id")
    for principal in ("arn:aws:iam::000000000000:user/root", "arn:aws:iam:::user/root-id", "000000000000"):
        put_topic(metabase, policy_for(principal))
        assert refusals(router, roots) == [""]
    put_topic(metabase, policy_for("arn:aws:iam::000000000000:user/bob"))
    assert refusals(router, roots) != [""]


def test_a_user_who_was_removed_is_refused_whatever_the_policy_says(
    metabase: Metabase, router: Router, bob: User, bobs: ObjectChange
) -> None:
    put_topic(metabase, policy_for("*"))
    metabase.buckets.delete("bobs")
    metabase.users.remove(bob.id)
    assert refusals(router, bobs) == ["the topic is another user's, and the owner of the bucket was removed"]


def test_own_topics_need_no_policy_and_the_users_are_asked_for_once(
    metabase: Metabase, router: Router, bob: User, bobs: ObjectChange, monkeypatch: pytest.MonkeyPatch
) -> None:
    users = Mock(wraps=metabase.users)
    monkeypatch.setattr(metabase, "users", users)
    router.refresh()
    put_topic(metabase, DEFAULT_POLICY, bob.id)
    assert refusals(router, bobs) == [""]
    assert users.all.call_count == 0
    put_topic(metabase, policy_for("acme"))
    for _ in range(3):
        assert refusals(router, bobs) == [""]
    assert users.all.call_count == 1
