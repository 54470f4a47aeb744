"""Signature Version 2, in the header and presigned, with boto3."""

import hmac
import time
from base64 import b64encode
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from hashlib import sha1
from typing import Any

import pytest
import urllib3
from botocore.exceptions import ClientError

from bucketwire.access.credentials import Credentials
from gateway.running import ROOT, RunningGateway
from gateway.signing import client_that_signs


@pytest.fixture(scope="module")
def old(gateway: RunningGateway) -> Iterator[Any]:
    client = client_that_signs(gateway.url, "s3")
    yield client
    client.close()


@pytest.fixture(scope="module")
def pool() -> Iterator[urllib3.PoolManager]:
    with urllib3.PoolManager() as pool:
        yield pool


def refused(call: Any, **arguments: Any) -> tuple[int, str]:
    with pytest.raises(ClientError) as raised:
        call(**arguments)
    response = raised.value.response
    return response["ResponseMetadata"]["HTTPStatusCode"], response["Error"]["Code"]


def code_of(answer: Any) -> tuple[int, str]:
    text = answer.data.decode()
    return answer.status, text.partition("<Code>")[2].partition("</Code>")[0]


@pytest.mark.parametrize("key", ["key", "dir/ü €", "a+b %20?&=", "~/'()!*"])
def test_calls_that_boto3_signs_are_accepted(old: Any, bucket: str, key: str) -> None:
    old.put_object(Bucket=bucket, Key=key, Body=b"hello", Metadata={"a": "b"}, ContentType="text/plain")
    assert old.get_object(Bucket=bucket, Key=key, Range="bytes=1-2")["Body"].read() == b"el"
    assert old.head_object(Bucket=bucket, Key=key)["Metadata"] == {"a": "b"}
    listed = old.list_objects_v2(Bucket=bucket, Prefix=key[:1])
    assert [each["Key"] for each in listed["Contents"]] == [key]
    old.delete_object(Bucket=bucket, Key=key)


def test_buckets_and_their_parts_are_reached(old: Any, bucket: str) -> None:
    assert bucket in [each["Name"] for each in old.list_buckets()["Buckets"]]
    old.head_bucket(Bucket=bucket)
    old.get_bucket_location(Bucket=bucket)
    upload = old.create_multipart_upload(Bucket=bucket, Key="key")
    named = {"Bucket": bucket, "Key": "key", "UploadId": upload["UploadId"]}
    part = old.upload_part(**named, PartNumber=1, Body=b"x")
    parts = [{"PartNumber": 1, "ETag": part["ETag"]}]
    old.complete_multipart_upload(**named, MultipartUpload={"Parts": parts})


def test_a_wrong_secret_and_an_unknown_key_are_told_apart(gateway: RunningGateway) -> None:
    liar = client_that_signs(gateway.url, "s3", credentials=Credentials(ROOT.access_key, "wrong", "", ""))
    assert refused(liar.list_buckets) == (403, "SignatureDoesNotMatch")
    nobody = client_that_signs(gateway.url, "s3", credentials=Credentials("NOBODY", "wrong", "", ""))
    assert refused(nobody.list_buckets) == (403, "InvalidAccessKeyId")
    liar.close()
    nobody.close()


@pytest.mark.parametrize(
    ("date", "expected"),
    [
        ("Bad Date", (403, "AccessDenied")),
        ("", (403, "AccessDenied")),
        ("Tue, 07 Jul 1950 21:53:04 GMT", (403, "AccessDenied")),
        ("Tue, 07 Jul 2010 21:53:04 GMT", (403, "RequestTimeTooSkewed")),
        ("Tue, 07 Jul 2099 21:53:04 GMT", (403, "RequestTimeTooSkewed")),
        ("Tue, 07 Jul 9999 21:53:04 GMT", (403, "RequestTimeTooSkewed")),
    ],
)
def test_the_date_of_a_request_must_be_about_now(
    gateway: RunningGateway, bucket: str, date: str, expected: tuple[int, str]
) -> None:
    client = client_with_date(gateway, date)
    assert refused(client.put_object, Bucket=bucket, Key="key") == expected
    client.close()


def test_the_date_may_stand_in_a_header_of_its_own(gateway: RunningGateway, bucket: str) -> None:
    client = client_with_date(gateway, format_datetime(datetime.now(UTC), usegmt=True))
    client.put_object(Bucket=bucket, Key="key")
    assert client.head_object(Bucket=bucket, Key="key")["ContentLength"] == 0
    client.close()


def client_with_date(gateway: RunningGateway, date: str) -> Any:
    client = client_that_signs(gateway.url, "s3")

    def add(params: Any, **_: Any) -> None:
        params["headers"]["x-amz-date"] = date

    client.meta.events.register("before-call.s3.PutObject", add)
    return client


def test_presigned_requests_work_until_they_expire(old: Any, pool: urllib3.PoolManager, bucket: str) -> None:
    named = {"Bucket": bucket, "Key": "a key"}

    def sent(method: str, operation: str, seconds: int = 100, **more: Any) -> Any:
        url = old.generate_presigned_url(operation, named, ExpiresIn=seconds)
        assert "Signature=" in url
        return pool.request(method, url, **more)

    assert sent("PUT", "put_object", body=b"hello").status == 200
    assert sent("GET", "get_object").data == b"hello"
    assert sent("HEAD", "head_object").headers["content-length"] == "5"
    assert code_of(sent("GET", "get_object", seconds=-100)) == (403, "AccessDenied")
    assert code_of(sent("GET", "put_object")) == (403, "SignatureDoesNotMatch")
    assert sent("DELETE", "delete_object").status == 204


@pytest.mark.parametrize("signature_version", ["s3", "s3v4"])
def test_a_presigned_header_may_stand_in_the_query_alone(
    gateway: RunningGateway, pool: urllib3.PoolManager, bucket: str, signature_version: str
) -> None:
    client = client_that_signs(gateway.url, signature_version)
    url = client.generate_presigned_url(
        "put_object", {"Bucket": bucket, "Key": "key", "ACL": "public-read", "ContentType": "text/plain"}
    )
    headers = {"x-amz-acl": "public-read", "content-type": "text/plain"}
    answer = pool.request(
        "PUT",
        url,
        body=b"hello",
        headers=headers if signature_version == "s3v4" else {"content-type": "text/plain"},
    )
    assert answer.status == 200
    assert pool.request("GET", f"{gateway.url}/{bucket}/key").data == b"hello"
    client.close()


def test_overrides_of_answers_are_signed(old: Any, pool: urllib3.PoolManager, bucket: str) -> None:
    old.put_object(Bucket=bucket, Key="key", Body=b"hello")
    wanted = {"Bucket": bucket, "Key": "key", "ResponseContentType": "text/odd; a=b"}
    url = old.generate_presigned_url("get_object", wanted)
    assert pool.request("GET", url).headers["content-type"] == "text/odd; a=b"
    assert pool.request("GET", url.replace("odd", "bad")).status == 403


@pytest.mark.parametrize(
    "added",
    [
        "acl",
        "%61cl",
        "%74agging",
        "%76ersionId=abc",
        "response-%63ontent-type=text/html",
        "attributes",
        "x-amz-acl=public-read",
        "%78-amz-acl=public-read",
    ],
)
def test_nothing_that_means_something_can_be_added_to_a_presigned_url(
    old: Any, pool: urllib3.PoolManager, bucket: str, added: str
) -> None:
    old.put_object(Bucket=bucket, Key="key", Body=b"hello")
    url = old.generate_presigned_url("get_object", {"Bucket": bucket, "Key": "key"})
    assert code_of(pool.request("GET", f"{url}&{added}")) == (403, "SignatureDoesNotMatch")


def test_no_parameter_that_is_signed_can_be_hidden_in_another(
    old: Any, pool: urllib3.PoolManager, bucket: str
) -> None:
    old.put_object(Bucket=bucket, Key="key", Body=b"hello")
    wanted = {"Bucket": bucket, "Key": "key", "ResponseCacheControl": "a&b", "VersionId": "null"}
    url = old.generate_presigned_url("get_object", wanted)
    assert pool.request("GET", url).data == b"hello"
    hidden = url.replace("&versionId=", "%26versionId%3D")
    assert code_of(pool.request("GET", hidden)) == (403, "SignatureDoesNotMatch")


def test_a_presigned_copy_cannot_be_made_an_upload(old: Any, pool: urllib3.PoolManager, bucket: str) -> None:
    old.put_object(Bucket=bucket, Key="key", Body=b"hello")
    wanted = {"Bucket": bucket, "Key": "new", "CopySource": f"{bucket}/key", "TaggingDirective": "COPY"}
    url = old.generate_presigned_url("copy_object", wanted)
    shown, hidden = f"={bucket}%2Fkey&x-amz-tagging", f"%3A{bucket}%2Fkey%0Ax-amz-tagging"
    changed = pool.request("PUT", url.replace(shown, hidden), body=b"other")
    assert code_of(changed) == (403, "SignatureDoesNotMatch")
    assert pool.request("PUT", url).status == 200
    assert old.get_object(Bucket=bucket, Key="new")["Body"].read() == b"hello"


def test_what_narrows_a_listing_need_not_be_signed(old: Any, pool: urllib3.PoolManager, bucket: str) -> None:
    for key in ("a/1", "a/2", "b"):
        old.put_object(Bucket=bucket, Key=key)
    narrow = {"Prefix": "a", "Delimiter": "/", "MaxKeys": 5, "EncodingType": "url"}
    for call, more in (
        ("list_objects", {"Marker": "a"}),
        ("list_objects_v2", {"StartAfter": "a", "FetchOwner": True}),
        ("list_object_versions", {"KeyMarker": "a"}),
    ):
        given = {"Bucket": bucket, **narrow, **more}
        assert getattr(old, call)(**given)["CommonPrefixes"] == [{"Prefix": "a/"}]
        url = old.generate_presigned_url(call, given)
        assert b"<CommonPrefixes><Prefix>a/</Prefix>" in pool.request("GET", f"{url}&x-id=x&other=y").data


def test_what_only_bucketwire_has_cannot_be_signed(old: Any, pool: urllib3.PoolManager, bucket: str) -> None:
    url = old.generate_presigned_url("list_objects", {"Bucket": bucket})
    assert code_of(pool.request("GET", f"{url}&explain&key=k&event=x")) == (403, "AccessDenied")
    assert code_of(pool.request("GET", url, headers={"x-bucketwire-move": "true"})) == (403, "AccessDenied")


@pytest.mark.parametrize(
    ("sent", "signed"),
    [
        ("uploads", "uploads"),
        ("uploads=", "uploads"),
        ("uploads=", "uploads="),
        ("prefix=a&uploads=", "uploads"),
        ("%75ploads", "uploads"),
    ],
)
def test_a_name_without_a_value_is_signed_with_or_without_the_sign(
    gateway: RunningGateway, pool: urllib3.PoolManager, bucket: str, sent: str, signed: str
) -> None:
    date = format_datetime(datetime.now(UTC), usegmt=True)
    text = f"GET\n\n\n{date}\n/{bucket}?{signed}"
    signature = b64encode(hmac.new(ROOT.secret_key.encode(), text.encode(), sha1).digest()).decode()
    headers = {"date": date, "authorization": f"AWS {ROOT.access_key}:{signature}"}
    answer = pool.request("GET", f"{gateway.url}/{bucket}?{sent}", headers=headers)
    assert (answer.status, b"ListMultipartUploadsResult" in answer.data) == (200, True)


@pytest.mark.parametrize("expires", ["", "x", "-1", "9" * 30, "٣"])
def test_the_end_of_a_presigned_request_is_a_number(
    old: Any, pool: urllib3.PoolManager, bucket: str, expires: str
) -> None:
    url = old.generate_presigned_url("get_object", {"Bucket": bucket, "Key": "key"})
    head, _, end = url.partition("Expires=")
    changed = f"{head}Expires={expires}{end.lstrip('0123456789')}"
    assert code_of(pool.request("GET", changed)) == (403, "AccessDenied")


def test_a_presigned_request_has_no_greatest_age(old: Any, pool: urllib3.PoolManager, bucket: str) -> None:
    old.put_object(Bucket=bucket, Key="key", Body=b"hello")
    a_year = int(timedelta(days=365).total_seconds())
    url = old.generate_presigned_url("get_object", {"Bucket": bucket, "Key": "key"}, ExpiresIn=a_year)
    assert f"Expires={int(time.time() + a_year)}"[:14] in url
    assert pool.request("GET", url).data == b"hello"
