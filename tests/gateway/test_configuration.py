"""Buckets, topics and notification configurations, through boto3."""

import uuid
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from bucketwire.access.credentials import Credentials
from gateway.running import OTHER, RunningGateway

ENDPOINT = {"push-endpoint": "http://127.0.0.1:1/"}


def error_of(call: Callable[[], Any]) -> dict[str, Any]:
    with pytest.raises(ClientError) as raised:
        call()
    return {
        **raised.value.response["Error"],
        "Status": raised.value.response["ResponseMetadata"]["HTTPStatusCode"],
    }


def code_of(call: Callable[[], Any]) -> tuple[str, int]:
    error = error_of(call)
    return error["Code"], error["Status"]


def new_topic(sns: Any, **attributes: str) -> str:
    return str(
        sns.create_topic(Name=f"topic-{uuid.uuid4().hex}", Attributes={**ENDPOINT, **attributes})["TopicArn"]
    )


def configured(arn: str, *events: str, **more: Any) -> dict[str, Any]:
    return {
        "TopicConfigurations": [{"TopicArn": arn, "Events": list(events or ["s3:ObjectCreated:*"]), **more}]
    }


def test_a_bucket_lives_from_create_to_delete(s3: Any) -> None:
    name = f"bucket-{uuid.uuid4().hex}"
    s3.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
    assert name in [each["Name"] for each in s3.list_buckets()["Buckets"]]
    assert [each["Name"] for each in s3.list_buckets(Prefix=name)["Buckets"]] == [name]
    assert s3.head_bucket(Bucket=name)["BucketRegion"] == "eu-west-1"
    assert s3.get_bucket_location(Bucket=name)["LocationConstraint"] == "eu-west-1"
    s3.delete_bucket(Bucket=name)
    assert code_of(lambda: s3.head_bucket(Bucket=name)) == ("404", 404)
    assert code_of(lambda: s3.delete_bucket(Bucket=name)) == ("NoSuchBucket", 404)


def test_creating_a_bucket_again_succeeds_for_its_owner_alone(
    gateway: RunningGateway, s3: Any, bucket: str
) -> None:
    assert s3.create_bucket(Bucket=bucket)["Location"] == f"/{bucket}"
    assert s3.get_bucket_location(Bucket=bucket)["LocationConstraint"] is None
    other = gateway.client("s3", OTHER)
    assert code_of(lambda: other.create_bucket(Bucket=bucket)) == ("BucketAlreadyExists", 409)
    other.close()


def test_a_bucket_with_objects_is_not_deleted(s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"")
    assert code_of(lambda: s3.delete_bucket(Bucket=bucket)) == ("BucketNotEmpty", 409)


def test_a_name_that_no_bucket_can_have_is_refused(s3: Any) -> None:
    assert code_of(lambda: s3.create_bucket(Bucket="Upper_Case")) == ("InvalidBucketName", 400)


def test_a_wrong_secret_and_an_unknown_key_are_refused(gateway: RunningGateway) -> None:
    wrong = Credentials("AKROOT", "another-secret", "", "")
    unknown = Credentials("AKNOBODY", "secret-of-nobody", "", "")
    for credentials, s3_code, sns_code in (
        (wrong, "SignatureDoesNotMatch", "SignatureDoesNotMatch"),
        (unknown, "InvalidAccessKeyId", "InvalidClientTokenId"),
    ):
        s3, sns = gateway.client("s3", credentials), gateway.client("sns", credentials)
        assert code_of(s3.list_buckets) == (s3_code, 403)
        assert code_of(sns.list_topics) == (sns_code, 403)
        s3.close()
        sns.close()


def test_a_topic_lives_from_create_to_delete(sns: Any) -> None:
    arn = new_topic(sns, OpaqueData="<mine & yours>")
    attributes = sns.get_topic_attributes(TopicArn=arn)["Attributes"]
    assert attributes["TopicArn"] == arn
    assert attributes["OpaqueData"] == "<mine & yours>"
    assert sns.create_topic(Name=arn.rpartition(":")[2], Attributes=ENDPOINT)["TopicArn"] == arn
    for _ in range(2):
        sns.delete_topic(TopicArn=arn)
    assert code_of(lambda: sns.get_topic_attributes(TopicArn=arn)) == ("NotFound", 404)


def test_topics_are_listed_in_pages(sns: Any) -> None:
    arns = {new_topic(sns) for _ in range(102)}
    first = sns.list_topics()
    assert len(first["Topics"]) == 100
    pages = sns.get_paginator("list_topics").paginate()
    listed = [each["TopicArn"] for page in pages for each in page["Topics"]]
    assert arns <= set(listed)
    assert listed == sorted(set(listed))


def test_a_topic_that_cannot_be_is_refused(sns: Any) -> None:
    assert code_of(lambda: sns.create_topic(Name="a b", Attributes=ENDPOINT)) == ("InvalidParameter", 400)
    arn = new_topic(sns)
    other = {"push-endpoint": "http://other/"}
    error = error_of(lambda: sns.create_topic(Name=arn.rpartition(":")[2], Attributes=other))
    assert "already exists with different attributes" in error["Message"]


def test_what_sns_does_not_do_here_is_named(sns: Any) -> None:
    error = error_of(lambda: sns.publish(TopicArn="arn:aws:sns:us-east-1:000000000000:t", Message="x"))
    assert (error["Code"], error["Status"]) == ("NotImplemented", 501)
    assert "Publish" in error["Message"]


def test_another_users_topic_is_out_of_reach(gateway: RunningGateway, sns: Any) -> None:
    arn = new_topic(sns)
    other_sns, other_s3 = gateway.client("sns", OTHER), gateway.client("s3", OTHER)
    assert code_of(lambda: other_sns.get_topic_attributes(TopicArn=arn))[1] == 403
    assert code_of(lambda: other_sns.delete_topic(TopicArn=arn))[1] == 403
    bucket = f"bucket-{uuid.uuid4().hex}"
    other_s3.create_bucket(Bucket=bucket)
    put = other_s3.put_bucket_notification_configuration
    assert code_of(lambda: put(Bucket=bucket, NotificationConfiguration=configured(arn))) == (
        "InvalidArgument",
        400,
    )
    other_sns.close()
    other_s3.close()


def test_a_configuration_comes_back_and_an_empty_one_clears_it(s3: Any, sns: Any, bucket: str) -> None:
    arn = new_topic(sns)
    filters = [{"Name": "prefix", "Value": "a/"}, {"Name": "suffix", "Value": ""}]
    wanted = configured(arn, Id="mine", Filter={"Key": {"FilterRules": filters}})
    s3.put_bucket_notification_configuration(Bucket=bucket, NotificationConfiguration=wanted)
    found = s3.get_bucket_notification_configuration(Bucket=bucket)["TopicConfigurations"]
    shown = [{"Name": "Prefix", "Value": "a/"}, {"Name": "Suffix", "Value": ""}]
    assert found == configured(arn, Id="mine", Filter={"Key": {"FilterRules": shown}})["TopicConfigurations"]
    s3.put_bucket_notification_configuration(Bucket=bucket, NotificationConfiguration={})
    assert "TopicConfigurations" not in s3.get_bucket_notification_configuration(Bucket=bucket)


def test_a_configuration_that_is_refused_changes_nothing(s3: Any, sns: Any, bucket: str) -> None:
    arn = new_topic(sns)
    put, get = s3.put_bucket_notification_configuration, s3.get_bucket_notification_configuration
    put(Bucket=bucket, NotificationConfiguration=configured(arn, Id="kept"))
    missing = arn + "-missing"
    for bad, message in (
        (configured("arn:x"), "The ARN could not be parsed"),
        (configured(arn, "s3:Nothing"), "A specified event is not supported for notifications."),
        (configured(missing), "Unable to validate the following destination configurations"),
    ):
        error = error_of(lambda bad=bad: put(Bucket=bucket, NotificationConfiguration=bad))
        assert (error["Code"], error["Status"], error["Message"]) == ("InvalidArgument", 400, message)
    assert error["ArgumentName1"] == missing
    assert [each["Id"] for each in get(Bucket=bucket)["TopicConfigurations"]] == ["kept"]
    put(Bucket=bucket, NotificationConfiguration=configured(missing), SkipDestinationValidation=True)
    nowhere = {"Bucket": "none-such", "NotificationConfiguration": {}, "SkipDestinationValidation": True}
    assert code_of(lambda: put(**nowhere)) == ("NoSuchBucket", 404)


def test_only_a_write_that_succeeds_and_matches_is_a_change(
    gateway: RunningGateway, s3: Any, sns: Any, bucket: str
) -> None:
    filters = {"Key": {"FilterRules": [{"Name": "suffix", "Value": ".jpg"}]}}
    s3.put_object(Bucket=bucket, Key="before.jpg", Body=b"x")
    wanted = configured(new_topic(sns), Filter=filters)
    s3.put_bucket_notification_configuration(Bucket=bucket, NotificationConfiguration=wanted)
    before = gateway.changes()
    s3.put_object(Bucket=bucket, Key="b.txt", Body=b"x")
    bad = {"Bucket": bucket, "Key": "c.jpg", "Body": b"x", "ContentMD5": "AAAAAAAAAAAAAAAAAAAAAA=="}
    assert code_of(lambda: s3.put_object(**bad)) == ("BadDigest", 400)
    assert gateway.changes() == before
    s3.put_object(Bucket=bucket, Key="a.jpg", Body=b"x")
    s3.put_object(Bucket=bucket, Key="large.jpg", Body=b"x" * 100_000)
    assert gateway.changes() == before + 2


def test_ceph_merges_by_id(ceph_gateway: RunningGateway) -> None:
    s3, sns = ceph_gateway.client("s3"), ceph_gateway.client("sns")
    arn = sns.create_topic(Name="t", Attributes=ENDPOINT)["TopicArn"]
    assert arn == "arn:aws:sns:us-east-1::t"
    s3.create_bucket(Bucket="media")
    for rule_id in ("a", "b"):
        wanted = configured(arn, Id=rule_id)
        s3.put_bucket_notification_configuration(Bucket="media", NotificationConfiguration=wanted)
    found = s3.get_bucket_notification_configuration(Bucket="media")["TopicConfigurations"]
    assert [each["Id"] for each in found] == ["a", "b"]
    missing = configured(arn + "x", Id="c")
    put = s3.put_bucket_notification_configuration
    assert code_of(lambda: put(Bucket="media", NotificationConfiguration=missing)) == ("NoSuchKey", 404)
    s3.close()
    sns.close()
