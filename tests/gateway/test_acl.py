"""Canned ACLs, and what they open to other users and to those who have not signed."""

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore import UNSIGNED
from botocore.config import Config

from gateway.running import OTHER, ROOT, RunningGateway, run_gateway
from gateway.test_configuration import code_of

ALL = "http://acs.amazonaws.com/groups/global/AllUsers"
SIGNED = "http://acs.amazonaws.com/groups/global/AuthenticatedUsers"
DENIED = ("AccessDenied", 403)
MINE = ("root-id", "FULL_CONTROL")
ACLS = {
    "private": {MINE},
    "public-read": {MINE, (ALL, "READ")},
    "public-read-write": {MINE, (ALL, "READ"), (ALL, "WRITE")},
    "authenticated-read": {MINE, (SIGNED, "READ")},
}


@pytest.fixture(scope="module")
def other(gateway: RunningGateway) -> Iterator[Any]:
    client = gateway.client("s3", OTHER)
    yield client
    client.close()


@pytest.fixture
def new_gateway(tmp_path: Path) -> Iterator[RunningGateway]:
    """One that nobody has called yet."""
    yield from run_gateway(tmp_path, "aws")


@pytest.fixture(scope="module")
def nobody(gateway: RunningGateway) -> Iterator[Any]:
    config = Config(signature_version=UNSIGNED, retries={"total_max_attempts": 1})
    client = boto3.client("s3", endpoint_url=gateway.url, region_name="us-east-1", config=config)
    yield client
    client.close()


@pytest.fixture(params=["other", "nobody"])
def stranger(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(request.param)


def granted(answer: dict[str, Any]) -> set[tuple[str, str]]:
    return {
        (each["Grantee"].get("ID") or each["Grantee"]["URI"], each["Permission"]) for each in answer["Grants"]
    }


def new_bucket(s3: Any, **asked: Any) -> str:
    name = f"bucket-{uuid.uuid4().hex}"
    s3.create_bucket(Bucket=name, **asked)
    return name


@pytest.mark.parametrize("acl", ACLS)
def test_a_canned_acl_reads_as_its_grants(s3: Any, acl: str) -> None:
    bucket = new_bucket(s3, ACL=acl)
    assert granted(s3.get_bucket_acl(Bucket=bucket)) == ACLS[acl]
    s3.put_bucket_acl(Bucket=bucket, ACL="private")
    assert granted(s3.get_bucket_acl(Bucket=bucket)) == ACLS["private"]
    s3.put_bucket_acl(Bucket=bucket, ACL=acl)
    assert granted(s3.get_bucket_acl(Bucket=bucket)) == ACLS[acl]
    s3.put_object(Bucket=bucket, Key="key", Body=b"x")
    assert granted(s3.get_object_acl(Bucket=bucket, Key="key")) == ACLS["private"]
    s3.put_object_acl(Bucket=bucket, Key="key", ACL=acl)
    assert granted(s3.get_object_acl(Bucket=bucket, Key="key")) == ACLS[acl]


def test_grants_name_their_grantees_as_s3_does_groups_first(s3: Any, bucket: str) -> None:
    s3.put_bucket_acl(Bucket=bucket, ACL="public-read")
    answer = s3.get_bucket_acl(Bucket=bucket)
    assert answer["Owner"] == {"ID": "root-id", "DisplayName": "root"}
    assert answer["Grants"] == [
        {"Grantee": {"URI": ALL, "Type": "Group"}, "Permission": "READ"},
        {
            "Grantee": {"ID": "root-id", "DisplayName": "root", "Type": "CanonicalUser"},
            "Permission": "FULL_CONTROL",
        },
    ]


@pytest.mark.parametrize("acl", ACLS)
def test_a_policy_that_equals_a_canned_acl_is_taken_as_such(s3: Any, acl: str) -> None:
    model = new_bucket(s3, ACL=acl)
    copy = new_bucket(s3)
    answer = s3.get_bucket_acl(Bucket=model)
    s3.put_bucket_acl(Bucket=copy, AccessControlPolicy={"Owner": answer["Owner"], "Grants": answer["Grants"]})
    assert granted(s3.get_bucket_acl(Bucket=copy)) == ACLS[acl]


def test_grant_headers_that_equal_a_canned_acl_are_taken_as_such(s3: Any, bucket: str) -> None:
    s3.put_bucket_acl(Bucket=bucket, GrantRead=f'uri="{ALL}"', GrantFullControl="id=root-id")
    assert granted(s3.get_bucket_acl(Bucket=bucket)) == ACLS["public-read"]


def test_a_grant_to_someone_who_is_not_there_is_refused(s3: Any, bucket: str) -> None:
    put = s3.put_bucket_acl

    def policy(**grantee: str) -> dict[str, Any]:
        return {"Owner": {"ID": "root-id"}, "Grants": [{"Grantee": grantee, "Permission": "READ"}]}

    unknown = policy(Type="CanonicalUser", ID="_nobody")
    assert code_of(lambda: put(Bucket=bucket, AccessControlPolicy=unknown)) == ("InvalidArgument", 400)
    address = policy(Type="AmazonCustomerByEmail", EmailAddress="nobody@example.invalid")
    refused = ("UnresolvableGrantByEmailAddress", 400)
    assert code_of(lambda: put(Bucket=bucket, AccessControlPolicy=address)) == refused
    assert code_of(lambda: put(Bucket=bucket, GrantRead="emailAddress=a@example.invalid")) == refused


def test_the_owner_of_the_bucket_is_known_before_the_first_call(new_gateway: RunningGateway) -> None:
    documents = [("acl", "public-read-write")]
    new_gateway.metabase.buckets.create("media", ROOT.user_id, "us-east-1", documents)
    other = new_gateway.client("s3", OTHER)
    other.put_object(Bucket="media", Key="key", Body=b"x")
    wanted = {("other-id", "FULL_CONTROL"), ("root-id", "READ")}
    grants = [{"Grantee": {"ID": who, "Type": "CanonicalUser"}, "Permission": what} for who, what in wanted]
    policy = {"Owner": {"ID": "other-id"}, "Grants": grants}
    other.put_object_acl(Bucket="media", Key="key", AccessControlPolicy=policy)
    assert granted(other.get_object_acl(Bucket="media", Key="key")) == wanted
    other.close()


def test_what_no_canned_acl_says_is_refused(s3: Any, other: Any, bucket: str) -> None:
    other.list_buckets()
    put = s3.put_bucket_acl
    owner = {"ID": "root-id"}
    to_other = {"Grantee": {"ID": "other-id", "Type": "CanonicalUser"}, "Permission": "READ"}
    policy = {"Owner": owner, "Grants": [to_other]}
    stolen = {"Owner": {"ID": "other-id"}, "Grants": [to_other]}
    assert code_of(lambda: put(Bucket=bucket, ACL="public")) == ("InvalidArgument", 400)
    assert code_of(lambda: put(Bucket=bucket, GrantRead="id=other-id")) == ("NotImplemented", 501)
    assert code_of(lambda: put(Bucket=bucket, GrantRead="other-id")) == ("InvalidArgument", 400)
    assert code_of(lambda: put(Bucket=bucket, AccessControlPolicy=policy)) == ("NotImplemented", 501)
    assert code_of(lambda: put(Bucket=bucket, AccessControlPolicy=stolen)) == ("InvalidArgument", 400)
    assert code_of(lambda: put(Bucket=bucket)) == ("MissingSecurityHeader", 400)
    assert code_of(lambda: put(Bucket=bucket, ACL="private", GrantRead="id=a"))[0] == "InvalidRequest"
    without_owner = {"Grants": [to_other]}
    assert code_of(lambda: put(Bucket=bucket, AccessControlPolicy=without_owner))[0] == "MalformedACLError"
    assert granted(s3.get_bucket_acl(Bucket=bucket)) == ACLS["private"]


def test_a_private_bucket_is_closed_to_all_others(s3: Any, bucket: str, stranger: Any) -> None:
    s3.put_object(Bucket=bucket, Key="key", Body=b"x")
    assert code_of(lambda: stranger.list_objects_v2(Bucket=bucket)) == DENIED
    assert code_of(lambda: stranger.get_object(Bucket=bucket, Key="key")) == DENIED
    assert code_of(lambda: stranger.put_object(Bucket=bucket, Key="new", Body=b"x")) == DENIED
    assert code_of(lambda: stranger.delete_object(Bucket=bucket, Key="key")) == DENIED
    assert code_of(lambda: stranger.get_bucket_acl(Bucket=bucket)) == DENIED
    assert code_of(lambda: stranger.put_bucket_acl(Bucket=bucket, ACL="public-read")) == DENIED
    assert code_of(lambda: stranger.get_object_acl(Bucket=bucket, Key="key")) == DENIED
    assert code_of(lambda: stranger.delete_bucket(Bucket=bucket)) == DENIED
    assert code_of(lambda: stranger.list_objects_v2(Bucket="no-such-bucket-here"))[0] == "NoSuchBucket"


def test_public_read_opens_the_list_but_not_the_objects(s3: Any, stranger: Any) -> None:
    bucket = new_bucket(s3, ACL="public-read")
    s3.put_object(Bucket=bucket, Key="key", Body=b"x")
    assert [each["Key"] for each in stranger.list_objects_v2(Bucket=bucket)["Contents"]] == ["key"]
    assert code_of(lambda: stranger.get_object(Bucket=bucket, Key="key")) == DENIED
    assert code_of(lambda: stranger.put_object(Bucket=bucket, Key="new", Body=b"x")) == DENIED


def test_an_object_opens_by_its_own_acl(s3: Any, bucket: str, other: Any, nobody: Any) -> None:
    s3.put_object(Bucket=bucket, Key="key", Body=b"x")
    s3.put_object_acl(Bucket=bucket, Key="key", ACL="public-read")
    assert [each.get_object(Bucket=bucket, Key="key")["Body"].read() for each in (other, nobody)] == [
        b"x"
    ] * 2
    assert code_of(lambda: nobody.list_objects_v2(Bucket=bucket)) == DENIED
    s3.put_object_acl(Bucket=bucket, Key="key", ACL="authenticated-read")
    assert other.get_object(Bucket=bucket, Key="key")["Body"].read() == b"x"
    assert code_of(lambda: nobody.get_object(Bucket=bucket, Key="key")) == DENIED


def test_public_read_write_lets_anyone_write(s3: Any, other: Any, nobody: Any) -> None:
    bucket = new_bucket(s3, ACL="public-read-write")
    for client, key in ((other, "others"), (nobody, "nobodys")):
        client.put_object(Bucket=bucket, Key=key, Body=b"x")
        assert s3.get_object(Bucket=bucket, Key=key)["Body"].read() == b"x"
    assert code_of(lambda: nobody.get_object(Bucket=bucket, Key="nobodys")) == DENIED
    assert code_of(lambda: nobody.get_object_acl(Bucket=bucket, Key="nobodys")) == DENIED
    nobody.delete_object(Bucket=bucket, Key="others")
    assert [each["Key"] for each in nobody.list_objects_v2(Bucket=bucket)["Contents"]] == ["nobodys"]


def test_the_writer_of_an_object_can_open_it_to_the_owner_of_the_bucket(s3: Any, other: Any) -> None:
    bucket = new_bucket(s3, ACL="public-read-write")
    other.put_object(Bucket=bucket, Key="key", Body=b"x")
    for acl, permission in {
        "bucket-owner-read": "READ",
        "bucket-owner-full-control": "FULL_CONTROL",
    }.items():
        other.put_object_acl(Bucket=bucket, Key="key", ACL=acl)
        answer = other.get_object_acl(Bucket=bucket, Key="key")
        assert answer["Owner"] == {"ID": "other-id", "DisplayName": "other"}
        assert granted(answer) == {("other-id", "FULL_CONTROL"), ("root-id", permission)}


def test_each_version_has_its_own_acl(s3: Any, bucket: str) -> None:
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    first, _ = (s3.put_object(Bucket=bucket, Key="key", Body=b"x")["VersionId"] for _ in range(2))
    s3.put_object_acl(Bucket=bucket, Key="key", VersionId=first, ACL="public-read")
    assert granted(s3.get_object_acl(Bucket=bucket, Key="key")) == ACLS["private"]
    assert granted(s3.get_object_acl(Bucket=bucket, Key="key", VersionId=first)) == ACLS["public-read"]


def test_a_bucket_is_not_made_again_with_another_acl(s3: Any, other: Any) -> None:
    bucket = new_bucket(s3, ACL="public-read")
    s3.create_bucket(Bucket=bucket, ACL="public-read")
    assert code_of(lambda: s3.create_bucket(Bucket=bucket)) == ("BucketAlreadyExists", 409)
    assert code_of(lambda: other.create_bucket(Bucket=bucket)) == ("BucketAlreadyExists", 409)
    assert granted(s3.get_bucket_acl(Bucket=bucket)) == ACLS["public-read"]


def test_who_has_not_signed_has_no_buckets(bucket: str, nobody: Any) -> None:
    assert code_of(lambda: nobody.head_bucket(Bucket=bucket)) == ("403", 403)
    assert nobody.list_buckets()["Buckets"] == []
    assert code_of(lambda: nobody.create_bucket(Bucket=f"bucket-{uuid.uuid4().hex}")) == DENIED


def test_everyone_sees_the_own_buckets_page_by_page(s3: Any, other: Any) -> None:
    prefix = f"paged-{uuid.uuid4().hex}"
    names = [f"{prefix}-{number}" for number in range(3)]
    for name in names:
        s3.create_bucket(Bucket=name)
    first = s3.list_buckets(Prefix=prefix, MaxBuckets=2)
    rest = s3.list_buckets(Prefix=prefix, MaxBuckets=2, ContinuationToken=first["ContinuationToken"])
    assert [each["Name"] for each in first["Buckets"] + rest["Buckets"]] == names
    assert "ContinuationToken" not in rest
    assert first["Owner"] == {"ID": ROOT.user_id, "DisplayName": ROOT.display_name}
    assert other.list_buckets(Prefix=prefix)["Buckets"] == []
