"""Listings, through boto3."""

from typing import Any

import pytest

from gateway.refused import refusal
from gateway.running import RunningGateway


def fill(s3: Any, bucket: str, *keys: str) -> None:
    for key in keys:
        s3.put_object(Bucket=bucket, Key=key, Body=b"")


def keys_of(page: Any) -> list[str]:
    return [each["Key"] for each in page.get("Contents", ())]


def prefixes_of(page: Any) -> list[str]:
    return [each["Prefix"] for each in page.get("CommonPrefixes", ())]


def test_the_first_version_pages_by_marker(s3: Any, bucket: str) -> None:
    fill(s3, bucket, "asdf", "boo/bar", "boo/baz/xyzzy", "cquux/thud", "cquux/bla")
    seen: list[tuple[list[str], list[str], str | None]] = []
    marker = ""
    while marker is not None:
        page = s3.list_objects(Bucket=bucket, Delimiter="/", MaxKeys=1, Marker=marker)
        assert page["Marker"] == marker
        marker = page.get("NextMarker")
        assert page["IsTruncated"] is (marker is not None)
        seen.append((keys_of(page), prefixes_of(page), marker))
    assert seen == [(["asdf"], [], "asdf"), ([], ["boo/"], "boo/"), ([], ["cquux/"], None)]
    plain = s3.list_objects(Bucket=bucket, MaxKeys=2)
    assert plain["IsTruncated"] is True
    assert "NextMarker" not in plain
    assert keys_of(s3.list_objects(Bucket=bucket, Marker="boo/bar")) == [
        "boo/baz/xyzzy",
        "cquux/bla",
        "cquux/thud",
    ]
    assert plain["Contents"][0]["Owner"] == {"ID": "root-id", "DisplayName": "root"}


@pytest.mark.parametrize(
    ("delimiter", "keys", "listed", "folded"),
    [
        ("%", ["b%ar", "b%az", "c%ab", "foo"], ["foo"], ["b%", "c%"]),
        (" ", ["b ar", "b az", "c ab", "foo"], ["foo"], ["b ", "c "]),
        ("a", ["bar", "baz", "cab", "foo"], ["foo"], ["ba", "ca"]),
        ("\n", ["bar", "foo"], ["bar", "foo"], []),
        ("ab", ["1ab2", "1ab3", "x"], ["x"], ["1ab"]),
    ],
)
def test_anything_may_be_the_delimiter(
    s3: Any, bucket: str, delimiter: str, keys: list[str], listed: list[str], folded: list[str]
) -> None:
    fill(s3, bucket, *keys)
    for page in (
        s3.list_objects(Bucket=bucket, Delimiter=delimiter),
        s3.list_objects_v2(Bucket=bucket, Delimiter=delimiter),
    ):
        assert page["Delimiter"] == delimiter
        assert (keys_of(page), prefixes_of(page)) == (listed, folded)


def test_keys_are_encoded_if_that_is_asked_for(s3: Any, bucket: str) -> None:
    fill(s3, bucket, "foo+1/bar", "foo/bar/xyzzy", "quux ab/thud", "asdf+b")
    for call in (s3.list_objects, s3.list_objects_v2):
        page = call(Bucket=bucket, Delimiter="/", EncodingType="url")
        assert page["Delimiter"] == "/"
        assert keys_of(page) == ["asdf%2Bb"]
        assert prefixes_of(page) == ["foo%2B1/", "foo/", "quux%20ab/"]


def test_what_is_empty_asks_for_nothing(s3: Any, bucket: str) -> None:
    fill(s3, bucket, "a", "b")
    page = s3.list_objects_v2(Bucket=bucket, Delimiter="", Prefix="", ContinuationToken="", StartAfter="")
    assert keys_of(page) == ["a", "b"]
    assert "Delimiter" not in page
    assert page["ContinuationToken"] == ""
    assert (page["KeyCount"], page["MaxKeys"], page["IsTruncated"]) == (2, 1000, False)
    none = s3.list_objects(Bucket=bucket, MaxKeys=0)
    assert (keys_of(none), none["IsTruncated"]) == ([], False)


def test_a_token_comes_before_the_place_to_start_after(s3: Any, bucket: str) -> None:
    fill(s3, bucket, "bar", "baz", "foo", "quxx")
    first = s3.list_objects_v2(Bucket=bucket, StartAfter="bar", MaxKeys=1)
    assert (keys_of(first), first["StartAfter"]) == (["baz"], "bar")
    token = first["NextContinuationToken"]
    second = s3.list_objects_v2(Bucket=bucket, StartAfter="bar", ContinuationToken=token)
    assert (keys_of(second), second["ContinuationToken"]) == (["foo", "quxx"], token)


def test_owners_are_told_if_that_is_asked_for(s3: Any, bucket: str) -> None:
    fill(s3, bucket, "k")
    assert "Owner" not in s3.list_objects_v2(Bucket=bucket)["Contents"][0]
    owner = s3.list_objects_v2(Bucket=bucket, FetchOwner=True)["Contents"][0]["Owner"]
    assert owner == {"ID": "root-id", "DisplayName": "root"}


def test_a_listing_that_cannot_be_meant_is_refused(s3: Any, bucket: str) -> None:
    assert refusal(s3.list_objects, Bucket=bucket, MaxKeys=-1) == ("InvalidArgument", 400)
    assert refusal(s3.list_objects, Bucket=bucket, EncodingType="base64") == ("InvalidArgument", 400)
    assert refusal(s3.list_objects, Bucket="none-such") == ("NoSuchBucket", 404)
    assert refusal(s3.list_object_versions, Bucket="none-such") == ("NoSuchBucket", 404)


@pytest.mark.parametrize("prefix", ["\n", "a b", "50%25", "+", "ü"])
def test_the_prefix_comes_back_as_it_was_asked_for(s3: Any, bucket: str, prefix: str) -> None:
    fill(s3, bucket, f"{prefix}key", "other")
    for call in (s3.list_objects, s3.list_objects_v2, s3.list_object_versions):
        assert call(Bucket=bucket, Prefix=prefix)["Prefix"] == prefix
    assert keys_of(s3.list_objects(Bucket=bucket, Prefix=prefix)) == [f"{prefix}key"]


@pytest.mark.parametrize("operation", ["ListObjects", "ListObjectsV2"])
def test_a_listing_in_any_order_has_no_delimiter(
    gateway: RunningGateway, bucket: str, operation: str
) -> None:
    s3 = gateway.client("s3")
    fill(s3, bucket, "b", "a")

    def ask(params: dict[str, Any], **_: Any) -> None:
        params["url"] += "&allow-unordered=true"

    s3.meta.events.register(f"before-call.s3.{operation}", ask)
    call = s3.list_objects if operation == "ListObjects" else s3.list_objects_v2
    assert keys_of(call(Bucket=bucket)) == ["a", "b"]
    assert refusal(call, Bucket=bucket, Delimiter="/") == ("InvalidArgument", 400)
    s3.close()
