"""Parts of a bucket's configuration, through boto3."""

import uuid
from typing import Any

import pytest

from gateway.running import OTHER, RunningGateway
from gateway.test_configuration import code_of

BLOCK_ALL = {
    "BlockPublicAcls": True,
    "IgnorePublicAcls": True,
    "BlockPublicPolicy": True,
    "RestrictPublicBuckets": True,
}
NEVER_SET = {
    "get_bucket_policy": "NoSuchBucketPolicy",
    "get_bucket_cors": "NoSuchCORSConfiguration",
    "get_bucket_website": "NoSuchWebsiteConfiguration",
    "get_bucket_encryption": "ServerSideEncryptionConfigurationNotFoundError",
    "get_bucket_replication": "ReplicationConfigurationNotFoundError",
    "get_object_lock_configuration": "ObjectLockConfigurationNotFoundError",
    "get_public_access_block": "NoSuchPublicAccessBlockConfiguration",
    "get_bucket_ownership_controls": "OwnershipControlsNotFoundError",
}


def controls(ownership: str) -> dict[str, Any]:
    return {"Rules": [{"ObjectOwnership": ownership}]}


def block(s3: Any, bucket: str, **settings: bool) -> None:
    s3.put_public_access_block(Bucket=bucket, PublicAccessBlockConfiguration=settings)


@pytest.mark.parametrize("operation", NEVER_SET)
def test_what_is_not_set_is_told_in_the_words_of_s3(s3: Any, bucket: str, operation: str) -> None:
    get = getattr(s3, operation)
    assert code_of(lambda: get(Bucket=bucket)) == (NEVER_SET[operation], 404)
    assert code_of(lambda: get(Bucket="no-such-bucket-here")) == ("NoSuchBucket", 404)


@pytest.mark.parametrize("operation", [name for name in NEVER_SET if name != "get_object_lock_configuration"])
def test_deleting_what_is_not_set_is_no_error(s3: Any, bucket: str, operation: str) -> None:
    delete = getattr(s3, operation.replace("get_", "delete_"))
    assert delete(Bucket=bucket)["ResponseMetadata"]["HTTPStatusCode"] == 204


def test_what_has_a_default_says_it(s3: Any, bucket: str) -> None:
    assert "LoggingEnabled" not in s3.get_bucket_logging(Bucket=bucket)
    assert "Status" not in s3.get_bucket_accelerate_configuration(Bucket=bucket)
    assert s3.get_bucket_request_payment(Bucket=bucket)["Payer"] == "BucketOwner"
    assert s3.get_bucket_policy_status(Bucket=bucket)["PolicyStatus"] == {"IsPublic": False}
    s3.put_bucket_acl(Bucket=bucket, ACL="public-read")
    assert s3.get_bucket_policy_status(Bucket=bucket)["PolicyStatus"] == {"IsPublic": True}


def test_what_is_not_built_is_refused_when_it_is_set(s3: Any, bucket: str) -> None:
    cors = {"CORSRules": [{"AllowedMethods": ["GET"], "AllowedOrigins": ["*"]}]}
    refused = ("NotImplemented", 501)
    assert code_of(lambda: s3.put_bucket_policy(Bucket=bucket, Policy="{}")) == refused
    assert code_of(lambda: s3.put_bucket_cors(Bucket=bucket, CORSConfiguration=cors)) == refused
    locked = f"bucket-{uuid.uuid4().hex}"
    assert code_of(lambda: s3.create_bucket(Bucket=locked, ObjectLockEnabledForBucket=True)) == refused
    s3.create_bucket(Bucket=locked, ObjectLockEnabledForBucket=False)


def test_the_block_of_public_access_comes_back_as_it_was_set(s3: Any, bucket: str) -> None:
    block(s3, bucket, **BLOCK_ALL)
    assert s3.get_public_access_block(Bucket=bucket)["PublicAccessBlockConfiguration"] == BLOCK_ALL
    s3.delete_public_access_block(Bucket=bucket)
    assert code_of(lambda: s3.get_public_access_block(Bucket=bucket))[1] == 404


@pytest.mark.parametrize("acl", ["public-read", "public-read-write", "authenticated-read"])
def test_public_acls_can_be_refused(s3: Any, bucket: str, acl: str) -> None:
    s3.put_object(Bucket=bucket, Key="key", Body=b"x")
    block(s3, bucket, BlockPublicAcls=True)
    denied = ("AccessDenied", 403)
    assert code_of(lambda: s3.put_bucket_acl(Bucket=bucket, ACL=acl)) == denied
    assert code_of(lambda: s3.put_object_acl(Bucket=bucket, Key="key", ACL=acl)) == denied
    assert code_of(lambda: s3.put_object(Bucket=bucket, Key="new", Body=b"x", ACL=acl)) == denied
    assert code_of(lambda: s3.create_multipart_upload(Bucket=bucket, Key="new", ACL=acl)) == denied
    s3.put_bucket_acl(Bucket=bucket, ACL="private")


def test_public_acls_can_be_ignored(gateway: RunningGateway, s3: Any, bucket: str) -> None:
    other = gateway.client("s3", OTHER)
    s3.put_object(Bucket=bucket, Key="key", Body=b"x")
    s3.put_object_acl(Bucket=bucket, Key="key", ACL="public-read")
    s3.put_bucket_acl(Bucket=bucket, ACL="public-read")
    other.get_object(Bucket=bucket, Key="key")["Body"].read()
    block(s3, bucket, IgnorePublicAcls=True)
    assert code_of(lambda: other.get_object(Bucket=bucket, Key="key")) == ("AccessDenied", 403)
    assert code_of(lambda: other.list_objects_v2(Bucket=bucket)) == ("AccessDenied", 403)
    s3.get_object(Bucket=bucket, Key="key")["Body"].read()
    other.close()


def test_ownership_controls_come_back_as_they_were_set(s3: Any, bucket: str) -> None:
    for ownership in ("ObjectWriter", "BucketOwnerPreferred", "BucketOwnerEnforced"):
        s3.put_bucket_ownership_controls(Bucket=bucket, OwnershipControls=controls(ownership))
        kept = s3.get_bucket_ownership_controls(Bucket=bucket)["OwnershipControls"]
        assert kept == controls(ownership)
    unknown = lambda: s3.put_bucket_ownership_controls(  # noqa: E731
        Bucket=bucket, OwnershipControls=controls("Nobody")
    )
    assert code_of(unknown) == ("MalformedXML", 400)


def test_an_enforced_owner_leaves_no_room_for_acls(gateway: RunningGateway, s3: Any) -> None:
    bucket, other = f"bucket-{uuid.uuid4().hex}", gateway.client("s3", OTHER)
    create = lambda **asked: s3.create_bucket(  # noqa: E731
        Bucket=bucket, ObjectOwnership="BucketOwnerEnforced", **asked
    )
    assert code_of(lambda: create(ACL="public-read"))[0] == "InvalidBucketAclWithObjectOwnership"
    create()
    assert s3.get_bucket_ownership_controls(Bucket=bucket)["OwnershipControls"]["Rules"]
    public = lambda: s3.put_bucket_acl(Bucket=bucket, ACL="public-read")  # noqa: E731
    assert code_of(public) == ("AccessControlListNotSupported", 400)
    s3.delete_bucket_ownership_controls(Bucket=bucket)
    public()
    other.list_objects_v2(Bucket=bucket)
    other.close()


def test_a_bucket_can_be_made_with_its_tags(s3: Any) -> None:
    name, tag = f"bucket-{uuid.uuid4().hex}", {"Key": "team", "Value": "wire"}
    s3.create_bucket(Bucket=name, CreateBucketConfiguration={"Tags": [tag]})
    assert s3.get_bucket_tagging(Bucket=name)["TagSet"] == [tag]


def test_a_bucket_is_never_there_without_what_it_was_asked_to_have(
    s3: Any, gateway: RunningGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dead(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(gateway.metabase.buckets, "set_document", dead)
    bucket = f"bucket-{uuid.uuid4().hex}"
    tags = [{"Key": "team", "Value": "blue"}]
    s3.create_bucket(
        Bucket=bucket,
        ObjectOwnership="BucketOwnerEnforced",
        CreateBucketConfiguration={"Tags": tags},
    )
    assert s3.get_bucket_ownership_controls(Bucket=bucket)["OwnershipControls"] == controls(
        "BucketOwnerEnforced"
    )
    assert s3.get_bucket_tagging(Bucket=bucket)["TagSet"] == tags
