"""Tags of objects and buckets, through boto3."""

from typing import Any

import pytest

from bucketwire.errors import InvalidRequest
from bucketwire.gateway.s3_tagging import parse_tagging_header
from factories import rule
from gateway.running import OTHER, RunningGateway
from gateway.test_configuration import code_of


def tags(**by_key: str) -> dict[str, Any]:
    return {"TagSet": [{"Key": key, "Value": value} for key, value in by_key.items()]}


def many(count: int, **first: str) -> dict[str, Any]:
    return tags(**first, **{f"k{number}": "v" for number in range(count - len(first))})


def put(s3: Any, bucket: str, tagging: dict[str, Any]) -> Any:
    return s3.put_object_tagging(Bucket=bucket, Key="key", Tagging=tagging)


@pytest.fixture
def key(s3: Any, bucket: str) -> str:
    s3.put_object(Bucket=bucket, Key="key", Body=b"x")
    return "key"


def test_tags_of_an_object_are_set_read_replaced_and_removed(s3: Any, bucket: str, key: str) -> None:
    named = {"Bucket": bucket, "Key": key}
    assert s3.get_object_tagging(**named)["TagSet"] == []
    assert put(s3, bucket, tags(color="blue", empty=""))["ResponseMetadata"]["HTTPStatusCode"] == 200
    assert s3.get_object_tagging(**named)["TagSet"] == tags(color="blue", empty="")["TagSet"]
    put(s3, bucket, tags(shape="round"))
    assert s3.get_object_tagging(**named)["TagSet"] == tags(shape="round")["TagSet"]
    assert s3.delete_object_tagging(**named)["ResponseMetadata"]["HTTPStatusCode"] == 204
    assert s3.get_object_tagging(**named)["TagSet"] == []


def test_an_object_has_as_many_and_as_long_tags_as_s3_allows(s3: Any, bucket: str, key: str) -> None:
    widest = many(10, **{"k" * 128: "v" * 256, "signs +-=._:/@": "\u00e9t\u00e9 2026"})
    put(s3, bucket, widest)
    assert s3.get_object_tagging(Bucket=bucket, Key=key)["TagSet"] == widest["TagSet"]


@pytest.mark.parametrize(
    "refused",
    [
        many(11),
        tags(**{"k" * 129: "v"}),
        tags(k="v" * 257),
        tags(**{"what?": "v"}),
        tags(k="a\tb"),
        tags(**{"aws:k": "v"}),
        {"TagSet": [*tags(k="1")["TagSet"], *tags(k="2")["TagSet"]]},
    ],
    ids=["eleven", "long key", "long value", "sign in key", "sign in value", "system", "twice"],
)
def test_tags_that_s3_would_not_take_change_nothing(
    s3: Any, bucket: str, key: str, refused: dict[str, Any]
) -> None:
    put(s3, bucket, tags(kept="yes"))
    assert code_of(lambda: put(s3, bucket, refused)) == ("InvalidTag", 400)
    assert s3.get_object_tagging(Bucket=bucket, Key=key)["TagSet"] == tags(kept="yes")["TagSet"]


def test_each_version_has_its_own_tags(s3: Any, bucket: str) -> None:
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    first, second = (s3.put_object(Bucket=bucket, Key="key", Body=b"x")["VersionId"] for _ in range(2))
    named = {"Bucket": bucket, "Key": "key"}
    answer = s3.put_object_tagging(**named, VersionId=first, Tagging=tags(of="first"))
    assert answer["VersionId"] == first
    assert s3.get_object_tagging(**named)["TagSet"] == []
    assert s3.get_object_tagging(**named)["VersionId"] == second
    assert s3.get_object_tagging(**named, VersionId=first)["TagSet"] == tags(of="first")["TagSet"]
    assert s3.delete_object_tagging(**named, VersionId=first)["VersionId"] == first
    assert s3.get_object_tagging(**named, VersionId=first)["TagSet"] == []
    marker = s3.delete_object(**named)["VersionId"]
    assert code_of(lambda: s3.get_object_tagging(**named)) == ("NoSuchKey", 404)
    assert code_of(lambda: s3.get_object_tagging(**named, VersionId=marker)) == ("MethodNotAllowed", 405)


def test_tags_of_what_does_not_exist_or_is_not_ones_own(
    gateway: RunningGateway, s3: Any, bucket: str, key: str
) -> None:
    other = gateway.client("s3", OTHER)
    assert code_of(lambda: s3.get_object_tagging(Bucket=bucket, Key="none")) == ("NoSuchKey", 404)
    assert code_of(lambda: put(s3, "no-such-bucket-here", tags(k="v"))) == ("NoSuchBucket", 404)
    assert code_of(lambda: other.get_object_tagging(Bucket=bucket, Key="none")) == ("AccessDenied", 403)
    assert code_of(lambda: put(other, bucket, tags(k="v"))) == ("AccessDenied", 403)
    s3.put_object_acl(Bucket=bucket, Key=key, ACL="public-read")
    assert code_of(lambda: put(other, bucket, tags(k="v"))) == ("AccessDenied", 403)
    other.close()


def test_setting_and_removing_tags_is_a_change_each_and_a_refusal_none(
    gateway: RunningGateway, s3: Any, bucket: str, key: str
) -> None:
    gateway.metabase.rules.edit(bucket, lambda _rules: [rule("s3:ObjectTagging:*")])
    before = gateway.changes()
    put(s3, bucket, tags(k="v"))
    assert gateway.changes() == before + 1
    assert code_of(lambda: put(s3, bucket, many(11))) == ("InvalidTag", 400)
    s3.get_object_tagging(Bucket=bucket, Key=key)
    s3.put_object_acl(Bucket=bucket, Key=key, ACL="public-read")
    assert gateway.changes() == before + 1
    s3.delete_object_tagging(Bucket=bucket, Key=key)
    assert gateway.changes() == before + 2


def test_taking_all_tags_off_is_told_alike_however_it_is_asked_for_and_also_where_there_are_none(
    gateway: RunningGateway, s3: Any, bucket: str, key: str
) -> None:
    gateway.metabase.rules.edit(bucket, lambda _rules: [rule("s3:ObjectTagging:*")])
    put(s3, bucket, tags(k="v"))
    put(s3, bucket, tags())
    s3.delete_object_tagging(Bucket=bucket, Key=key)
    assert gateway.operations(bucket) == ["ObjectTagging:Put", *2 * ["ObjectTagging:Delete"]]


def test_tags_of_a_bucket(s3: Any, bucket: str) -> None:
    assert code_of(lambda: s3.get_bucket_tagging(Bucket=bucket)) == ("NoSuchTagSet", 404)
    s3.put_bucket_tagging(Bucket=bucket, Tagging=many(50))
    assert s3.get_bucket_tagging(Bucket=bucket)["TagSet"] == many(50)["TagSet"]
    over = lambda: s3.put_bucket_tagging(Bucket=bucket, Tagging=many(51))  # noqa: E731
    assert code_of(over) == ("InvalidTag", 400)
    assert s3.delete_bucket_tagging(Bucket=bucket)["ResponseMetadata"]["HTTPStatusCode"] == 204
    assert code_of(lambda: s3.get_bucket_tagging(Bucket=bucket)) == ("NoSuchTagSet", 404)


def test_the_tagging_header_is_a_query() -> None:
    assert parse_tagging_header("foo=bar&bar") == {"foo": "bar", "bar": ""}
    assert parse_tagging_header("a%20b=c%2Fd&e=%C3%A9") == {"a b": "c/d", "e": "\u00e9"}
    assert parse_tagging_header("") == {}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a=1&a=2", "InvalidArgument"),
        ("a=%ff", "InvalidArgument"),
        ("=v", "InvalidTag"),
        ("a=%3F", "InvalidTag"),
    ],
)
def test_a_tagging_header_that_cannot_be_taken(text: str, code: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        parse_tagging_header(text)
    assert raised.value.code == code
