"""Rules one by one, the conditions that let tools share a bucket, and documents that no library sends."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from botocore.auth import HmacV1Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as SigningCredentials

from gateway.in_process import HOST, Answered, InProcess
from gateway.notifications import document, prefix_filter, rule_element, topic_named
from gateway.running import OTHER, ROOT, RunningGateway

SKIPPING = {"x_amz_skip_destination_validation": "true"}


@pytest.fixture(params=["aws", "ceph"])
def gateway(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[InProcess]:
    gateway = InProcess(tmp_path, request.param)
    gateway.signed("PUT", "/media")
    yield gateway
    gateway.close()


def put(gateway: InProcess, *elements: str, rule_id: str = "", **headers: str) -> Answered:
    named = [(name.replace("_", "-"), text) for name, text in headers.items()]
    return gateway.signed("PUT", f"/media?notification={rule_id}", document(*elements), named)


def ids(answered: Answered) -> list[str | None]:
    assert answered.status == 200
    return [each.text for each in ET.fromstring(answered.body).iter() if each.tag.endswith("}Id")]


def current(gateway: InProcess) -> list[str | None]:
    return ids(gateway.signed("GET", "/media?notification"))


def test_one_rule_is_shown_and_removed_by_its_id(gateway: InProcess) -> None:
    arn = topic_named(gateway)
    put(gateway, *(rule_element(arn, each, inner=prefix_filter(each)) for each in "abc"))
    assert ids(gateway.signed("GET", "/media?notification=b")) == ["b"]
    missing = gateway.signed("GET", "/media?notification=x")
    assert (missing.status, missing.code) == (404, "NoSuchKey")
    assert gateway.signed("DELETE", "/media?notification=b").status == 204
    assert gateway.signed("DELETE", "/media?notification=b").status == 204
    assert current(gateway) == ["a", "c"]
    assert gateway.signed("DELETE", "/media?notification").status == 204
    assert current(gateway) == []
    assert gateway.signed("DELETE", "/media?notification").status == 204


def test_an_id_is_never_overlooked_however_it_is_sent(gateway: InProcess) -> None:
    arn = topic_named(gateway)
    put(gateway, *(rule_element(arn, each, inner=prefix_filter(each)) for each in "abc"))
    for query in ("notification&notification-id=b", "notification&notification=b"):
        assert ids(gateway.signed("GET", f"/media?{query}")) == ["b"]
    assert gateway.signed("DELETE", "/media?notification&notification-id=b").status == 204
    assert gateway.signed("DELETE", "/media?notification&notification=c").status == 204
    assert current(gateway) == ["a"]
    assert gateway.signed("DELETE", "/media?notification=a&notification-id=c").code == "InvalidArgument"


def test_one_rule_is_put_and_the_others_stay(gateway: InProcess) -> None:
    one, two = topic_named(gateway, "one"), topic_named(gateway, "two")
    put(gateway, rule_element(one, "a", ("s3:ObjectRemoved:*",)))
    assert put(gateway, rule_element(one), rule_id="b").status == 200
    assert put(gateway, rule_element(two, "b"), rule_id="b").status == 200
    assert current(gateway) == ["a", "b"]
    assert gateway.signed("GET", "/media?notification=b").field("Topic") == two
    for wrong in (
        document(),
        document(rule_element(one, "a")),
        document(rule_element(one), rule_element(two)),
    ):
        refused = gateway.signed("PUT", "/media?notification=b", wrong)
        assert (refused.status, refused.code) == (400, "InvalidArgument")
    assert current(gateway) == ["a", "b"]


def test_the_etag_guards_the_whole_configuration(gateway: InProcess) -> None:
    arn = topic_named(gateway)
    first = put(gateway, rule_element(arn, "a"), If_None_Match="*").headers["etag"]
    assert gateway.signed("GET", "/media?notification").headers["etag"] == first
    assert put(gateway, rule_element(arn, "z"), If_None_Match="*").status == 412
    second = put(gateway, rule_element(arn, "b", ("s3:ObjectRemoved:*",)), rule_id="b", If_Match=first)
    assert second.status == 200
    stale = put(gateway, rule_element(arn, "c"), rule_id="c", If_Match=first)
    assert (stale.status, stale.code, stale.field("Condition")) == (412, "PreconditionFailed", "If-Match")
    assert gateway.signed("DELETE", "/media?notification=a", b"", [("If-Match", first)]).status == 412
    assert current(gateway) == ["a", "b"]
    assert gateway.signed("GET", "/media?notification=a").headers["etag"] == second.headers["etag"]
    matching = [("If-Match", second.headers["etag"])]
    third = gateway.signed("DELETE", "/media?notification=a", b"", matching)
    assert third.status == 204
    assert gateway.signed("GET", "/media?notification").headers["etag"] == third.headers["etag"]


def test_a_new_rule_can_be_kept_from_replacing_anothers(gateway: InProcess) -> None:
    arn = topic_named(gateway)
    assert put(gateway, rule_element(arn), rule_id="mine", If_None_Match="*").status == 200
    assert put(gateway, rule_element(arn), rule_id="mine", If_None_Match="*").status == 412
    other = rule_element(arn, events=("s3:ObjectRemoved:*",))
    assert put(gateway, other, rule_id="other", If_None_Match="*").status == 200
    assert current(gateway) == ["mine", "other"]


@pytest.mark.parametrize("rule_id", ["", "r"])
@pytest.mark.parametrize("headers", [{}, SKIPPING])
def test_another_users_topic_is_refused_whatever_is_skipped(
    gateway: InProcess, rule_id: str, headers: dict[str, str]
) -> None:
    arn = topic_named(gateway, owner_id=OTHER.user_id)
    refused = put(gateway, rule_element(arn, "r"), rule_id=rule_id, **headers)
    if gateway.app._services.dialect.name == "ceph":
        assert (refused.status, refused.code) == (403, "AccessDenied")
    else:
        assert (refused.status, refused.code) == (400, "InvalidArgument")
        assert (refused.field("Message") or "").startswith("Unable to validate")
        assert refused.field("ArgumentName1") == arn
    gateway.metabase.topics.delete(arn)
    assert put(gateway, rule_element(arn, "r"), rule_id=rule_id, **headers).status in {400, 403, 404}
    assert current(gateway) == []


@pytest.mark.parametrize("rule_id", ["", "r"])
def test_a_topic_that_is_open_or_not_there_yet_may_be_named_without_validation(
    gateway: InProcess, rule_id: str
) -> None:
    allowed = {"Effect": "Allow", "Principal": "*", "Action": "sns:Publish", "Resource": "*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [allowed]})
    opened = topic_named(gateway, owner_id=OTHER.user_id, Policy=policy)
    for arn in (opened, f"{opened}-later"):
        assert put(gateway, rule_element(arn, "r"), rule_id=rule_id, **SKIPPING).status == 200
        assert gateway.signed("GET", "/media?notification=r").field("Topic") == arn


def test_expressions_that_would_slow_down_every_writer_are_refused(gateway: InProcess) -> None:
    arn = topic_named(gateway)

    def matching(pattern: str, rule_id: str) -> str:
        condition = f"<FilterRule><Name>regex</Name><Value>{pattern}</Value></FilterRule>"
        return rule_element(arn, rule_id, inner=f"<Filter><S3Key>{condition}</S3Key></Filter>")

    refused = put(gateway, matching(".*a.{700}(x|7)|.*b.{200}q", "first"))
    assert (refused.status, refused.code) == (400, "InvalidArgument")
    assert "too costly" in (refused.field("Message") or "")
    one, two, three = (matching("[ab]*a[ab]{200}x", each) for each in ("first", "second", "third"))
    assert put(gateway, one, two).status == 200
    refused = put(gateway, three, rule_id="third")
    assert (refused.status, refused.code) == (400, "InvalidArgument")
    assert "too costly together" in (refused.field("Message") or "")
    assert len(current(gateway)) == 2


def test_filters_on_metadata_and_tags_come_back_as_ceph_shows_them(tmp_path: Path) -> None:
    gateway = InProcess(tmp_path, "ceph")
    gateway.signed("PUT", "/media")
    described = "".join(
        f"<{part}><FilterRule><Name>{name}</Name><Value>v</Value></FilterRule></{part}>"
        for part, name in (("S3Key", "regex"), ("S3Metadata", "x-amz-meta-k"), ("S3Tags", "t"))
    )
    put(gateway, rule_element(topic_named(gateway), "n", inner=f"<Filter>{described}</Filter>"))
    shown = gateway.signed("GET", "/media?notification=n").body.decode()
    assert f"<Filter>{described}</Filter>" in shown
    gateway.close()


def test_another_tool_signs_with_version_2(gateway: InProcess) -> None:
    put(gateway, rule_element(topic_named(gateway), "mine_1"))
    for method, status in (("GET", 200), ("DELETE", 204), ("GET", 404)):
        request = AWSRequest(method, f"http://{HOST}/media?notification=mine_1", headers={})
        HmacV1Auth(SigningCredentials(ROOT.access_key, ROOT.secret_key)).add_auth(request)
        headers = [(name, str(text)) for name, text in request.headers.items()]
        answered = gateway.send(method, "/media?notification=mine_1", [*headers, ("Host", HOST)])
        assert answered.status == status


@pytest.mark.parametrize(
    "element",
    [
        "<QueueConfiguration><Queue>arn:aws:sqs:us-east-1:1:q</Queue></QueueConfiguration>",
        "<CloudFunctionConfiguration><InvocationRole>r</InvocationRole></CloudFunctionConfiguration>",
        "<EventBridgeConfiguration/>",
    ],
)
def test_other_destinations_are_refused_with_what_there_is(gateway: InProcess, element: str) -> None:
    refused = put(gateway, element)
    assert (refused.status, refused.code) == (400, "InvalidArgument")
    assert "use TopicConfiguration" in (refused.field("Message") or "")


def test_the_deprecated_operations_work(ceph_gateway: RunningGateway) -> None:
    s3, sns = ceph_gateway.client("s3"), ceph_gateway.client("sns")
    arn: Any = sns.create_topic(Name="old", Attributes={"persistent": "true"})["TopicArn"]
    s3.create_bucket(Bucket="media")
    old = {"Id": "a", "Topic": arn, "Event": "s3:ObjectCreated:Put", "Events": ["s3:ObjectRemoved:*"]}
    s3.put_bucket_notification(Bucket="media", NotificationConfiguration={"TopicConfiguration": old})
    found = s3.get_bucket_notification(Bucket="media")["TopicConfiguration"]
    assert (found["Id"], found["Topic"]) == ("a", arn)
    (now,) = s3.get_bucket_notification_configuration(Bucket="media")["TopicConfigurations"]
    assert sorted(now["Events"]) == ["s3:ObjectCreated:Put", "s3:ObjectRemoved:*"]
    s3.close()
    sns.close()
