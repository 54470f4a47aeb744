"""Lifecycle configurations and what a run of the lifecycle does, through boto3."""

import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bucketwire.event.change import ObjectChange, decode_change
from bucketwire.event.expiry import expiry_name
from bucketwire.metainfo.expire import LifecycleCounts, run_lifecycle
from gateway.running import OTHER, RunningGateway
from gateway.test_configuration import code_of, configured, new_topic

RULE = {"ID": "all", "Status": "Enabled", "Filter": {"Prefix": ""}}
EVENTS = ("s3:ObjectRemoved:*", "s3:LifecycleExpiration:*")


def put(s3: Any, bucket: str, *rules: dict[str, Any]) -> None:
    s3.put_bucket_lifecycle_configuration(Bucket=bucket, LifecycleConfiguration={"Rules": list(rules)})


def run_after(gateway: RunningGateway, days: int) -> LifecycleCounts:
    later = datetime.now(UTC) + timedelta(days=days)
    return run_lifecycle(gateway.metabase, int(later.timestamp()) * 10**9)


def versioned(s3: Any, bucket: str) -> None:
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})


def listed(s3: Any, bucket: str) -> tuple[int, int]:
    """How many versions there are, and how many delete markers."""
    found = s3.list_object_versions(Bucket=bucket)
    return len(found.get("Versions", [])), len(found.get("DeleteMarkers", []))


def changes(gateway: RunningGateway, bucket: str) -> list[ObjectChange]:
    stream = gateway.metabase.changes
    start = stream.start()
    parts = stream.split(start, stream.head(start, 1_000_000), 1)
    read = [decode_change(each) for part in parts for each in stream.read(part)]
    return [change for change in read if change.bucket.name == bucket]


def test_a_configuration_comes_back_as_it_was_put(s3: Any, bucket: str) -> None:
    rules = [
        {"ID": "one", "Status": "Enabled", "Prefix": "a/", "Expiration": {"Days": 3}},
        {
            "ID": "two",
            "Status": "Disabled",
            "Filter": {
                "And": {
                    "Prefix": "b/",
                    "Tags": [{"Key": "k", "Value": "v"}, {"Key": "l", "Value": ""}],
                    "ObjectSizeGreaterThan": 10,
                }
            },
            "Expiration": {"Date": datetime(2031, 1, 1, tzinfo=UTC)},
            "NoncurrentVersionExpiration": {"NoncurrentDays": 3, "NewerNoncurrentVersions": 2},
        },
        {
            "ID": "three",
            "Status": "Enabled",
            "Filter": {},
            "Expiration": {"ExpiredObjectDeleteMarker": True},
            "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 7},
        },
    ]
    put(s3, bucket, *rules)
    assert s3.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"] == rules


def test_there_is_none_before_it_is_put_and_after_it_is_deleted(s3: Any, bucket: str) -> None:
    missing = ("NoSuchLifecycleConfiguration", 404)
    assert code_of(lambda: s3.get_bucket_lifecycle_configuration(Bucket=bucket)) == missing
    put(s3, bucket, {**RULE, "Expiration": {"Days": 1}})
    for _ in range(2):
        s3.delete_bucket_lifecycle(Bucket=bucket)
    assert code_of(lambda: s3.get_bucket_lifecycle_configuration(Bucket=bucket)) == missing


@pytest.mark.parametrize(
    ("rule", "answer"),
    [
        ({"ID": "x" * 256, "Expiration": {"Days": 1}}, ("InvalidArgument", 400)),
        ({"Expiration": {"Days": 0}}, ("InvalidArgument", 400)),
        ({"Status": "enabled", "Expiration": {"Days": 1}}, ("MalformedXML", 400)),
        ({"Expiration": {"Date": datetime(2031, 1, 1, 1, tzinfo=UTC)}}, ("InvalidArgument", 400)),
        ({"Transitions": [{"Days": 1, "StorageClass": "GLACIER"}]}, ("NotImplemented", 501)),
    ],
)
def test_what_is_wrong_or_not_built_is_refused(
    s3: Any, bucket: str, rule: dict[str, Any], answer: tuple[str, int]
) -> None:
    assert code_of(lambda: put(s3, bucket, {**RULE, **rule})) == answer


def test_ids_are_generated_and_must_differ(s3: Any, bucket: str) -> None:
    unnamed = {"Status": "Enabled", "Prefix": "a", "Expiration": {"Days": 1}}
    put(s3, bucket, unnamed, {**unnamed, "Prefix": "b"})
    ids = {rule["ID"] for rule in s3.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"]}
    assert len(ids) == 2
    same = {**unnamed, "ID": "same"}
    assert code_of(lambda: put(s3, bucket, same, same)) == ("InvalidArgument", 400)


def test_a_lifecycle_is_for_the_owner_alone(gateway: RunningGateway, bucket: str) -> None:
    other = gateway.client("s3", OTHER)
    refused = ("AccessDenied", 403)
    assert code_of(lambda: other.get_bucket_lifecycle_configuration(Bucket=bucket)) == refused
    assert code_of(lambda: put(other, bucket, {**RULE, "Expiration": {"Days": 1}})) == refused
    assert code_of(lambda: other.delete_bucket_lifecycle(Bucket=bucket)) == refused
    other.close()


def test_expired_objects_are_deleted_once_and_each_is_one_change(
    gateway: RunningGateway, s3: Any, sns: Any, bucket: str
) -> None:
    arn = new_topic(sns)
    s3.put_bucket_notification_configuration(
        Bucket=bucket, NotificationConfiguration=configured(arn, *EVENTS)
    )
    for key in ("old/1", "old/2", "kept"):
        s3.put_object(Bucket=bucket, Key=key, Body=b"x")
    put(s3, bucket, {**RULE, "Filter": {"Prefix": "old/"}, "Expiration": {"Days": 1}})
    run_after(gateway, 0)
    assert len(s3.list_objects_v2(Bucket=bucket)["Contents"]) == 3
    with ThreadPoolExecutor(2) as two:
        runs = list(two.map(lambda _: run_after(gateway, 3), range(2)))
    assert sum(counts.expired_objects for counts in runs) == 2
    assert [each["Key"] for each in s3.list_objects_v2(Bucket=bucket)["Contents"]] == ["kept"]
    made = changes(gateway, bucket)
    assert sorted((change.key, change.operation) for change in made) == [
        ("old/1", "LifecycleExpiration:Delete"),
        ("old/2", "LifecycleExpiration:Delete"),
    ]
    s3.delete_bucket_lifecycle(Bucket=bucket)


def test_versions_go_step_by_step_until_nothing_is_left(
    gateway: RunningGateway, s3: Any, sns: Any, bucket: str
) -> None:
    arn = new_topic(sns)
    s3.put_bucket_notification_configuration(
        Bucket=bucket, NotificationConfiguration=configured(arn, *EVENTS)
    )
    versioned(s3, bucket)
    for body in (b"1", b"2"):
        s3.put_object(Bucket=bucket, Key="k", Body=body)
    put(
        s3,
        bucket,
        {**RULE, "Expiration": {"Days": 1}, "NoncurrentVersionExpiration": {"NoncurrentDays": 1}},
    )
    run_after(gateway, 3)
    assert listed(s3, bucket) == (1, 1)
    run_after(gateway, 3)
    assert listed(s3, bucket) == (0, 1)
    run_after(gateway, 3)
    assert listed(s3, bucket) == (0, 0)
    made = changes(gateway, bucket)
    assert [change.operation.value.partition(":")[2] for change in made] == [
        "Delete",
        "DeleteMarkerCreated",
        "Delete",
        "Delete",
    ]
    assert [str(expiry_name(change)).rpartition(":")[2] for change in made] == [
        "NonCurrent",
        "Current",
        "NonCurrent",
        "DeleteMarker",
    ]
    s3.delete_bucket_lifecycle(Bucket=bucket)


def test_the_null_version_of_a_suspended_bucket_is_hidden_by_one_marker(
    gateway: RunningGateway, s3: Any, bucket: str
) -> None:
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Suspended"})
    s3.put_object(Bucket=bucket, Key="k", Body=b"x")
    put(s3, bucket, {**RULE, "Expiration": {"Days": 1}})
    run_after(gateway, 3)
    assert listed(s3, bucket) == (0, 1)
    s3.put_object(Bucket=bucket, Key="k", Body=b"back")
    assert s3.get_object(Bucket=bucket, Key="k")["Body"].read() == b"back"
    s3.delete_bucket_lifecycle(Bucket=bucket)


def test_abandoned_uploads_are_aborted(gateway: RunningGateway, s3: Any, bucket: str) -> None:
    upload = s3.create_multipart_upload(Bucket=bucket, Key="k")["UploadId"]
    s3.upload_part(Bucket=bucket, Key="k", UploadId=upload, PartNumber=1, Body=b"x")
    put(s3, bucket, {**RULE, "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 2}})
    assert run_after(gateway, 1).aborted_uploads == 0
    assert run_after(gateway, 4).aborted_uploads == 1
    assert run_after(gateway, 4).aborted_uploads == 0
    assert "Uploads" not in s3.list_multipart_uploads(Bucket=bucket)
    s3.delete_bucket_lifecycle(Bucket=bucket)


def test_rules_of_the_ceph_dialect_may_name_the_kind_of_expiry(ceph_gateway: RunningGateway) -> None:
    s3, sns = ceph_gateway.client("s3"), ceph_gateway.client("sns")
    bucket = f"bucket-{uuid.uuid4().hex}"
    s3.create_bucket(Bucket=bucket)
    arn = new_topic(sns)
    rule = configured(arn, "s3:ObjectLifecycle:Expiration:Current", Id="kind")
    s3.put_bucket_notification_configuration(Bucket=bucket, NotificationConfiguration=rule)
    s3.put_object(Bucket=bucket, Key="k", Body=b"x")
    put(s3, bucket, {**RULE, "Expiration": {"Days": 1}})
    run_after(ceph_gateway, 3)
    assert [change.key for change in changes(ceph_gateway, bucket)] == ["k"]
    s3.close()
    sns.close()


def test_rules_of_the_aws_dialect_may_not(s3: Any, sns: Any, bucket: str) -> None:
    rule = configured(new_topic(sns), "s3:ObjectLifecycle:Expiration:Current")
    assert code_of(
        lambda: s3.put_bucket_notification_configuration(Bucket=bucket, NotificationConfiguration=rule)
    ) == ("InvalidArgument", 400)
