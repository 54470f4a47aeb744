"""Uploads of browsers' forms."""

import hmac
import json
from base64 import b64encode
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from hashlib import md5, sha1, sha256
from typing import Any
from urllib.parse import quote

import pytest
import urllib3
from urllib3.filepost import encode_multipart_formdata

from bucketwire.metainfo.permission import ACL_DOCUMENT
from factories import rule
from gateway.running import ROOT, RunningGateway
from gateway.signing import client_that_signs

Fields = dict[str, Any]


@pytest.fixture(scope="module")
def pool() -> Iterator[urllib3.PoolManager]:
    with urllib3.PoolManager() as pool:
        yield pool


class Poster:
    """Posts forms to a bucket."""

    def __init__(self, gateway: RunningGateway, pool: urllib3.PoolManager, bucket: str) -> None:
        self.url = f"{gateway.url}/{bucket}"
        self._pool = pool
        self.bucket = bucket

    def post(
        self,
        fields: Fields,
        content: bytes = b"bar",
        filename: str = "foo.txt",
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        body, kind = encode_multipart_formdata([*fields.items(), ("file", (filename, content))])
        sent = {"content-type": kind, **(headers or {})}
        return self._pool.request("POST", self.url, body=body, headers=sent, redirect=False)

    def signed(self, *conditions: Any, minutes: int = 10, **document: Any) -> Fields:
        """The fields of a form whose policy ROOT signed, and which allow keys that start with foo."""
        policy = {
            "expiration": (datetime.now(UTC) + timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "conditions": [
                {"bucket": self.bucket},
                ["starts-with", "$key", "foo"],
                {"acl": "private"},
                ["starts-with", "$Content-Type", "text/plain"],
                *conditions,
            ],
        }
        policy = {name: value for name, value in {**policy, **document}.items() if value is not None}
        encoded = b64encode(json.dumps(policy).encode()).decode()
        signature = hmac.new(ROOT.secret_key.encode(), encoded.encode(), sha1).digest()
        return {
            "key": "foo.txt",
            "AWSAccessKeyId": ROOT.access_key,
            "acl": "private",
            "signature": b64encode(signature).decode(),
            "policy": encoded,
            "Content-Type": "text/plain",
        }


@pytest.fixture
def poster(gateway: RunningGateway, pool: urllib3.PoolManager, bucket: str) -> Poster:
    return Poster(gateway, pool, bucket)


def code_of(answer: Any) -> tuple[int, str]:
    text = answer.data.decode()
    return answer.status, text.partition("<Code>")[2].partition("</Code>")[0]


def content_of(s3: Any, poster: Poster, key: str = "foo.txt") -> bytes:
    content: bytes = s3.get_object(Bucket=poster.bucket, Key=key)["Body"].read()
    return content


def test_anyone_may_post_where_the_bucket_is_open(gateway: RunningGateway, poster: Poster) -> None:
    form = {"key": "foo.txt", "acl": "public-read", "Content-Type": "text/plain"}
    assert code_of(poster.post(form)) == (403, "AccessDenied")
    gateway.metabase.buckets.set_document(poster.bucket, ACL_DOCUMENT, "public-read-write")
    answer = poster.post(form)
    assert (answer.status, answer.headers["etag"]) == (204, f'"{md5(b"bar").hexdigest()}"')
    assert gateway.metabase.objects.get(poster.bucket, "foo.txt").inline == b"bar"


@pytest.mark.parametrize("named", ["acl", "x-amz-acl"])
def test_a_form_opens_nothing_that_the_bucket_keeps_closed(
    gateway: RunningGateway, s3: Any, poster: Poster, named: str
) -> None:
    conditions = [
        {"bucket": poster.bucket},
        ["starts-with", "$key", "foo"],
        ["starts-with", "$Content-Type", ""],
        {named: "public-read"},
    ]
    form = {**without(poster.signed(conditions=conditions), "acl"), named: "public-read"}
    assert poster.post(form).status == 204
    block = {"BlockPublicAcls": True}
    s3.put_public_access_block(Bucket=poster.bucket, PublicAccessBlockConfiguration=block)
    before = gateway.changes()
    assert code_of(poster.post(form)) == (403, "AccessDenied")
    s3.delete_public_access_block(Bucket=poster.bucket)
    enforced = {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]}
    s3.put_bucket_ownership_controls(Bucket=poster.bucket, OwnershipControls=enforced)
    assert code_of(poster.post(form)) == (400, "AccessControlListNotSupported")
    assert poster.post(poster.signed()).status == 204
    assert gateway.changes() == before


def test_a_signed_form_is_stored(s3: Any, poster: Poster) -> None:
    assert poster.post(poster.signed(["content-length-range", 0, 1024])).status == 204
    got = s3.get_object(Bucket=poster.bucket, Key="foo.txt")
    assert (got["Body"].read(), got["ContentType"]) == (b"bar", "text/plain")


@pytest.mark.parametrize("signature_version", ["s3", "s3v4"])
def test_a_form_that_boto3_presigns_is_stored(
    s3: Any, gateway: RunningGateway, pool: urllib3.PoolManager, bucket: str, signature_version: str
) -> None:
    signer = client_that_signs(gateway.url, signature_version)
    form = signer.generate_presigned_post(
        bucket, "dir/${filename}", {"success_action_status": "200"}, [{"success_action_status": "200"}]
    )
    content = b"x" * 3_000_000
    body, kind = encode_multipart_formdata([*form["fields"].items(), ("file", ("a b.bin", content))])
    answer = pool.request("POST", form["url"], body=body, headers={"content-type": kind})
    assert answer.status == 200
    assert s3.get_object(Bucket=bucket, Key="dir/a b.bin")["Body"].read() == content
    signer.close()


def test_names_of_fields_have_no_case(s3: Any, poster: Poster) -> None:
    form = poster.signed(
        conditions=[
            {"bUcKeT": poster.bucket},
            ["StArTs-WiTh", "$KeY", "foo"],
            {"AcL": "private"},
            ["StArTs-WiTh", "$CoNtEnT-TyPe", "text/plain"],
            ["content-length-range", 0, 1024],
        ]
    )
    form["kEy"], form["pOLICy"] = form.pop("key"), form.pop("policy")
    assert poster.post(form).status == 204
    assert content_of(s3, poster) == b"bar"


def test_a_field_to_be_ignored_needs_no_condition(poster: Poster) -> None:
    assert poster.post({**poster.signed(), "x-ignore-foo": "bar"}).status == 204


def test_metadata_and_tags_are_kept(s3: Any, poster: Poster) -> None:
    tagging = "<Tagging><TagSet><Tag><Key>a</Key><Value>1</Value></Tag></TagSet></Tagging>"
    form = poster.signed(["starts-with", "$x-amz-meta-foo", "bar"], ["starts-with", "$tagging", ""])
    assert poster.post({**form, "x-amz-meta-foo": "barclamp", "tagging": tagging}).status == 204
    assert s3.head_object(Bucket=poster.bucket, Key="foo.txt")["Metadata"] == {"foo": "barclamp"}
    tags = s3.get_object_tagging(Bucket=poster.bucket, Key="foo.txt")["TagSet"]
    assert tags == [{"Key": "a", "Value": "1"}]


def test_the_answer_is_the_one_that_is_asked_for(poster: Poster) -> None:
    answered = {}
    for status in ("200", "201", "404"):
        form = poster.signed({"success_action_status": status})
        answered[status] = poster.post({**form, "success_action_status": status})
    assert [answer.status for answer in answered.values()] == [200, 201, 204]
    assert answered["404"].data == b""
    assert f"<Bucket>{poster.bucket}</Bucket><Key>foo.txt</Key>".encode() in answered["201"].data


def test_the_browser_is_sent_on(poster: Poster) -> None:
    url = "http://elsewhere.test/done"
    form = poster.signed(["eq", "$success_action_redirect", url])
    answer = poster.post({**form, "success_action_redirect": url})
    etag = quote(f'"{md5(b"bar").hexdigest()}"')
    expected = f"{url}?bucket={poster.bucket}&key=foo.txt&etag={etag}"
    assert (answer.status, answer.headers["location"]) == (303, expected)


def test_the_location_is_one_that_the_client_can_reach(poster: Poster) -> None:
    plain = poster.post(poster.signed())
    behind_tls = poster.post(poster.signed(), headers={"x-forwarded-proto": "https"})
    assert plain.headers["location"] == f"{poster.url}/foo.txt"
    assert behind_tls.headers["location"] == f"{poster.url}/foo.txt".replace("http:", "https:")


def without(form: Fields, *names: str) -> Fields:
    return {name: text for name, text in form.items() if name not in names}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda form: {**form, "signature": form["signature"][::-1]}, (403, "SignatureDoesNotMatch")),
        (lambda form: {**form, "AWSAccessKeyId": "foo"}, (403, "InvalidAccessKeyId")),
        (lambda form: without(form, "key"), (400, "InvalidArgument")),
        (lambda form: without(form, "signature"), (400, "InvalidArgument")),
        (lambda form: without(form, "policy"), (400, "InvalidArgument")),
        (lambda form: without(form, "acl"), (403, "AccessDenied")),
        (lambda form: {**form, "key": "other"}, (403, "AccessDenied")),
        (lambda form: {**form, "x-amz-meta-more": "1"}, (403, "AccessDenied")),
    ],
)
def test_a_form_that_is_not_as_it_was_signed_is_refused(
    gateway: RunningGateway, poster: Poster, change: Any, expected: tuple[int, str]
) -> None:
    assert code_of(poster.post(change(poster.signed()))) == expected
    page = gateway.metabase.objects.page(poster.bucket, prefix="", delimiter="", after="", limit=1)
    assert page.objects == []


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"expiration": "2020-01-01T00:00:00Z"}, (403, "AccessDenied")),
        ({"expiration": str(datetime(2099, 1, 1, tzinfo=UTC))}, (400, "InvalidPolicyDocument")),
        ({"expiration": None}, (400, "InvalidPolicyDocument")),
        ({"expiration": None, "EXPIRATION": "2099-01-01T00:00:00Z"}, (400, "InvalidPolicyDocument")),
        ({"conditions": None}, (400, "InvalidPolicyDocument")),
        ({"conditions": None, "CONDITIONS": []}, (400, "InvalidPolicyDocument")),
        ({"conditions": [{}]}, (400, "InvalidPolicyDocument")),
        ({"conditions": [["starts-with", "$key", "foo"]]}, (403, "AccessDenied")),
        ({"conditions": [["like", "$key", "foo"]]}, (400, "InvalidPolicyDocument")),
        ({"conditions": [{"bucket": "another"}]}, (403, "AccessDenied")),
    ],
)
def test_a_policy_must_be_whole_and_hold(
    poster: Poster, document: dict[str, Any], expected: tuple[int, str]
) -> None:
    assert code_of(poster.post(poster.signed(**document))) == expected


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ([0, 0], (400, "EntityTooLarge")),
        ([512, 1000], (400, "EntityTooSmall")),
        ([0], (400, "InvalidPolicyDocument")),
        ([-1, 0], (400, "InvalidPolicyDocument")),
    ],
)
def test_the_policy_bounds_the_size(poster: Poster, bounds: list[int], expected: tuple[int, str]) -> None:
    assert code_of(poster.post(poster.signed(["content-length-range", *bounds]))) == expected


def test_a_checksum_in_the_form_is_checked(s3: Any, poster: Poster) -> None:
    right = b64encode(sha256(b"bar").digest()).decode()
    wrong = b64encode(sha256(b"baz").digest()).decode()
    assert code_of(poster.post({**poster.signed(), "x-amz-checksum-sha256": wrong})) == (400, "BadDigest")
    assert poster.post({**poster.signed(), "x-amz-checksum-sha256": right}).status == 204
    head = s3.head_object(Bucket=poster.bucket, Key="foo.txt", ChecksumMode="ENABLED")
    assert head["ChecksumSHA256"] == right


@pytest.mark.parametrize(
    ("kind", "body", "expected"),
    [
        ("text/plain", b"x", (412, "PreconditionFailed")),
        ("multipart/form-data", b"x", (400, "MalformedPOSTRequest")),
        ("multipart/form-data; boundary=b", b"x", (400, "MalformedPOSTRequest")),
        ("multipart/form-data; boundary=b", b"--b--\r\n", (400, "MalformedPOSTRequest")),
        (
            "multipart/form-data; boundary=b",
            b'--b\r\nContent-Disposition: form-data; name="key"\r\n\r\n' + b"k" * 30_000 + b"\r\n--b--\r\n",
            (400, "MaxPostPreDataLengthExceededError"),
        ),
        (
            "multipart/form-data; boundary=b",
            b'--b\r\nContent-Disposition: form-data; name="key"\r\n\r\n\xff\r\n--b--\r\n',
            (400, "MalformedPOSTRequest"),
        ),
    ],
)
def test_what_is_no_form_is_refused(
    gateway: RunningGateway,
    pool: urllib3.PoolManager,
    bucket: str,
    kind: str,
    body: bytes,
    expected: tuple[int, str],
) -> None:
    url = f"{gateway.url}/{bucket}"
    assert code_of(pool.request("POST", url, body=body, headers={"content-type": kind})) == expected


def test_a_field_that_is_not_built_is_not_passed_over(poster: Poster) -> None:
    form = poster.signed(["starts-with", "$x-amz-server-side-encryption", ""])
    answer = poster.post({**form, "x-amz-server-side-encryption": "AES256"})
    assert code_of(answer) == (501, "NotImplemented")


def test_a_form_is_one_change_and_a_refused_one_is_none(gateway: RunningGateway, poster: Poster) -> None:
    gateway.metabase.rules.edit(poster.bucket, lambda _rules: [rule("s3:ObjectCreated:Post")])
    before = gateway.changes()
    assert poster.post(poster.signed(["content-length-range", 0, 1])).status == 400
    assert gateway.changes() == before
    assert poster.post(poster.signed()).status == 204
    assert gateway.changes() == before + 1


def test_a_large_file_that_is_refused_leaves_no_bytes(gateway: RunningGateway, poster: Poster) -> None:
    content = b"x" * 2_000_000
    wrong = {**poster.signed(), "x-amz-checksum-sha256": b64encode(bytes(32)).decode()}
    before = {path for path in gateway.objects.rglob("*") if path.is_file()}
    assert code_of(poster.post(wrong, content)) == (400, "BadDigest")
    assert {path for path in gateway.objects.rglob("*") if path.is_file()} <= before
