"""Names of buckets, and who may use them."""

import pytest

from bucketwire.errors import CallError
from bucketwire.metainfo.buckets import bucket_region, check_bucket_name


@pytest.mark.parametrize("name", ["abc", "a" * 63, "my.bucket-1", "123"])
def test_names_that_s3_allows_are_accepted(name: str) -> None:
    check_bucket_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "ab",
        "a" * 64,
        "Upper",
        "under_score",
        "-abc",
        "abc-",
        "a..b",
        "a.-b",
        "a-.b",
        "192.168.5.4",
        "xn--abc",
        "b-s3alias",
        "ü12",
    ],
)
def test_names_that_s3_does_not_allow_are_refused(name: str) -> None:
    with pytest.raises(CallError) as raised:
        check_bucket_name(name)
    assert raised.value.code == "InvalidBucketName"


def test_a_bucket_lies_in_the_region_asked_for_or_in_the_gateways() -> None:
    assert bucket_region(None, "eu-north-1") == bucket_region("", "eu-north-1") == "eu-north-1"
    assert bucket_region("us-west-2", "eu-north-1") == "us-west-2"
    with pytest.raises(CallError) as raised:
        bucket_region("<script>", "eu-north-1")
    assert raised.value.code == "InvalidLocationConstraint"
