"""Multipart uploads, with boto3."""

import hashlib
import uuid
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from threading import Event
from typing import Any

import pytest
from boto3.s3.transfer import TransferConfig
from botocore.exceptions import ClientError

from bucketwire.event.change import Versioning
from bucketwire.gateway import s3_parts
from factories import rule
from gateway.running import OTHER, RunningGateway

MIB = 1024**2
FIRST = b"a" * 5 * MIB
LAST = b"the end"


def refused(call: Any, **arguments: Any) -> tuple[int, str]:
    with pytest.raises(ClientError) as raised:
        call(**arguments)
    response = raised.value.response
    return response["ResponseMetadata"]["HTTPStatusCode"], response["Error"]["Code"]


def started(s3: Any, bucket: str, key: str = "key", **more: Any) -> dict[str, Any]:
    answer = s3.create_multipart_upload(Bucket=bucket, Key=key, **more)
    return {"Bucket": bucket, "Key": key, "UploadId": answer["UploadId"]}


def sent(s3: Any, upload: dict[str, Any], *contents: bytes, **more: Any) -> list[dict[str, Any]]:
    parts = []
    for number, content in enumerate(contents, 1):
        answer = s3.upload_part(**upload, PartNumber=number, Body=content, **more)
        checksums = {name: value for name, value in answer.items() if name.startswith("Checksum")}
        parts.append({"PartNumber": number, "ETag": answer["ETag"], **checksums})
    return parts


def completed(s3: Any, upload: dict[str, Any], parts: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    answer: dict[str, Any] = s3.complete_multipart_upload(**upload, MultipartUpload={"Parts": parts}, **more)
    return answer


def test_an_object_is_made_of_its_parts(s3: Any, bucket: str) -> None:
    upload = started(
        s3,
        bucket,
        ContentType="text/plain",
        Metadata={"colour": "blue"},
        CacheControl="no-store",
        Tagging="a=1",
    )
    answer = completed(s3, upload, sent(s3, upload, FIRST, LAST))
    digests = hashlib.md5(FIRST).digest() + hashlib.md5(LAST).digest()
    assert answer["ETag"] == f'"{hashlib.md5(digests).hexdigest()}-2"'
    assert answer["Location"].endswith(f"/{bucket}/key")
    got = s3.get_object(Bucket=bucket, Key="key")
    assert got["Body"].read() == FIRST + LAST
    assert (got["ContentType"], got["CacheControl"], got["Metadata"]) == (
        "text/plain",
        "no-store",
        {"colour": "blue"},
    )
    ranged = s3.get_object(Bucket=bucket, Key="key", Range=f"bytes={5 * MIB - 1}-{5 * MIB + 2}")
    assert ranged["Body"].read() == b"athe"


def test_completing_twice_answers_as_the_first_time(s3: Any, bucket: str) -> None:
    upload = started(s3, bucket)
    parts = sent(s3, upload, LAST)
    first = completed(s3, upload, parts)
    assert completed(s3, upload, parts)["ETag"] == first["ETag"]
    s3.put_object(Bucket=bucket, Key="key", Body=b"other")
    answered = refused(s3.complete_multipart_upload, **upload, MultipartUpload={"Parts": parts})
    assert answered == (404, "NoSuchUpload")


def test_a_part_that_is_sent_again_counts(s3: Any, bucket: str) -> None:
    upload = started(s3, bucket)
    sent(s3, upload, b"first try")
    completed(s3, upload, sent(s3, upload, b"second try"))
    assert s3.get_object(Bucket=bucket, Key="key")["Body"].read() == b"second try"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda _parts: [], (400, "MalformedXML")),
        (lambda parts: parts[::-1], (400, "InvalidPartOrder")),
        (lambda parts: [parts[0], parts[0]], (400, "InvalidPartOrder")),
        (lambda parts: [{**parts[0], "PartNumber": 9999}], (400, "InvalidPart")),
        (lambda parts: [{**parts[0], "ETag": '"ffffffffffffffffffffffffffffffff"'}], (400, "InvalidPart")),
        (lambda parts: [{**parts[0], "ETag": '"garbage"'}], (400, "InvalidPart")),
        (lambda parts: parts, (400, "EntityTooSmall")),
    ],
)
def test_a_list_of_parts_that_is_wrong_is_refused_and_changes_nothing(
    s3: Any, bucket: str, change: Any, expected: tuple[int, str]
) -> None:
    upload = started(s3, bucket)
    parts = sent(s3, upload, b"small", b"small too")
    answered = refused(s3.complete_multipart_upload, **upload, MultipartUpload={"Parts": change(parts)})
    assert answered == expected
    assert len(s3.list_parts(**upload)["Parts"]) == 2


def test_completing_without_a_list_is_refused(s3: Any, bucket: str) -> None:
    assert refused(s3.complete_multipart_upload, **started(s3, bucket)) == (400, "MalformedXML")


def test_an_upload_that_is_not_there_has_no_parts(s3: Any, bucket: str) -> None:
    upload = {"Bucket": bucket, "Key": "key", "UploadId": "nothing"}
    gone = (404, "NoSuchUpload")
    assert refused(s3.upload_part, **upload, PartNumber=1, Body=b"x") == gone
    assert refused(s3.list_parts, **upload) == gone
    assert refused(s3.abort_multipart_upload, **upload) == gone
    parts = [{"PartNumber": 1, "ETag": '"d41d8cd98f00b204e9800998ecf8427e"'}]
    assert refused(s3.complete_multipart_upload, **upload, MultipartUpload={"Parts": parts}) == gone


@pytest.mark.parametrize("number", [0, -1, 10001])
def test_part_numbers_go_from_1_to_10000(s3: Any, bucket: str, number: int) -> None:
    upload = started(s3, bucket)
    answered = refused(s3.upload_part, **upload, PartNumber=number, Body=b"x")
    assert answered == (400, "InvalidArgument")


def test_aborting_drops_the_parts(s3: Any, bucket: str) -> None:
    upload = started(s3, bucket)
    sent(s3, upload, LAST)
    assert s3.abort_multipart_upload(**upload)["ResponseMetadata"]["HTTPStatusCode"] == 204
    assert refused(s3.list_parts, **upload) == (404, "NoSuchUpload")
    assert "Uploads" not in s3.list_multipart_uploads(Bucket=bucket)
    assert refused(s3.get_object, Bucket=bucket, Key="key") == (404, "NoSuchKey")


def test_parts_are_listed_page_by_page(s3: Any, bucket: str) -> None:
    upload = started(s3, bucket)
    sent(s3, upload, b"1", b"22", b"333")
    page = s3.list_parts(**upload, MaxParts=2)
    assert (page["IsTruncated"], page["NextPartNumberMarker"]) == (True, 2)
    assert [(part["PartNumber"], part["Size"]) for part in page["Parts"]] == [(1, 1), (2, 2)]
    rest = s3.list_parts(**upload, PartNumberMarker=2)
    assert (rest["IsTruncated"], [part["PartNumber"] for part in rest["Parts"]]) == (False, [3])
    assert rest["Owner"]["ID"] == "root-id"


def test_uploads_are_listed_by_key_with_prefixes_folded(s3: Any, bucket: str) -> None:
    uploads = [started(s3, bucket, key) for key in ("b/2", "a", "b/1", "a")]
    listed = s3.list_multipart_uploads(Bucket=bucket)
    assert [each["Key"] for each in listed["Uploads"]] == ["a", "a", "b/1", "b/2"]
    first = listed["Uploads"][0]
    assert first["UploadId"] == uploads[1]["UploadId"]
    folded = s3.list_multipart_uploads(Bucket=bucket, Delimiter="/")
    assert folded["CommonPrefixes"] == [{"Prefix": "b/"}]
    page = s3.list_multipart_uploads(Bucket=bucket, MaxUploads=1)
    assert (page["IsTruncated"], page["NextKeyMarker"]) == (True, "a")
    after = s3.list_multipart_uploads(
        Bucket=bucket, KeyMarker=page["NextKeyMarker"], UploadIdMarker=page["NextUploadIdMarker"]
    )
    assert [each["UploadId"] for each in after["Uploads"]] == [uploads[i]["UploadId"] for i in (3, 2, 0)]


def test_uploads_are_listed_page_by_page_with_the_markers_that_are_told(s3: Any, bucket: str) -> None:
    for key in ("a/1", "a/2", "b", "c/1", "c/2", "d"):
        started(s3, bucket, key)
    seen, asked = [], {"Bucket": bucket, "Delimiter": "/", "MaxUploads": 1}
    while True:
        page = s3.list_multipart_uploads(**asked)
        seen += [each["Prefix"] for each in page.get("CommonPrefixes", [])]
        seen += [each["Key"] for each in page.get("Uploads", [])]
        if not page["IsTruncated"]:
            break
        assert page["NextKeyMarker"] == seen[-1]
        assert ("NextUploadIdMarker" in page) == ("Uploads" in page)
        asked["KeyMarker"], asked["UploadIdMarker"] = (
            page["NextKeyMarker"],
            page.get("NextUploadIdMarker", ""),
        )
    assert seen == ["a/", "b", "c/", "d"]


@pytest.mark.parametrize("size", [10, 6 * MIB])
def test_a_part_is_copied_from_a_range_of_another_object(s3: Any, bucket: str, size: int) -> None:
    content = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    s3.put_object(Bucket=bucket, Key="source ü?&", Body=content)
    upload = started(s3, bucket)
    source = {"Bucket": bucket, "Key": "source ü?&"}
    part = s3.upload_part_copy(
        **upload, PartNumber=1, CopySource=source, CopySourceRange=f"bytes=2-{size - 2}"
    )
    parts = [{"PartNumber": 1, "ETag": part["CopyPartResult"]["ETag"]}]
    completed(s3, upload, parts)
    assert s3.get_object(Bucket=bucket, Key="key")["Body"].read() == content[2 : size - 1]


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ("0-2", "InvalidArgument"),
        ("bytes=0", "InvalidArgument"),
        ("bytes=hello-world", "InvalidArgument"),
        ("bytes=0-bar", "InvalidArgument"),
        ("bytes=hello-", "InvalidArgument"),
        ("bytes=0-2,3-5", "InvalidArgument"),
        ("bytes=0-21", "InvalidRange"),
        (f"bytes=0-{'9' * 5000}", "InvalidRange"),
    ],
)
def test_a_range_that_cannot_be_copied_is_refused(s3: Any, bucket: str, asked: str, code: str) -> None:
    s3.put_object(Bucket=bucket, Key="source", Body=b"hello")
    source = {"Bucket": bucket, "Key": "source"}
    answered = refused(
        s3.upload_part_copy,
        **started(s3, bucket),
        PartNumber=1,
        CopySource=source,
        CopySourceRange=asked,
    )
    assert answered[1] == code


def test_the_source_of_a_copied_part_must_be_there_and_be_as_expected(s3: Any, bucket: str) -> None:
    upload = started(s3, bucket)
    source = {"Bucket": bucket, "Key": "source"}
    assert refused(s3.upload_part_copy, **upload, PartNumber=1, CopySource=source) == (404, "NoSuchKey")
    s3.put_object(**source, Body=b"hello")
    conditions = {"CopySourceIfMatch": '"other"'}
    answered = refused(s3.upload_part_copy, **upload, PartNumber=1, CopySource=source, **conditions)
    assert answered == (412, "PreconditionFailed")


@pytest.mark.parametrize(
    ("algorithm", "kind"),
    [
        ("CRC32", "COMPOSITE"),
        ("CRC32", "FULL_OBJECT"),
        ("CRC32C", "FULL_OBJECT"),
        ("CRC64NVME", "FULL_OBJECT"),
        ("SHA1", "COMPOSITE"),
        ("SHA256", "COMPOSITE"),
    ],
)
def test_the_checksum_of_the_object_follows_from_those_of_its_parts(
    s3: Any, bucket: str, algorithm: str, kind: str
) -> None:
    member = f"Checksum{algorithm}"
    upload = started(s3, bucket, ChecksumAlgorithm=algorithm, ChecksumType=kind)
    parts = sent(s3, upload, FIRST, LAST, ChecksumAlgorithm=algorithm)
    answer = completed(s3, upload, parts)
    s3.put_object(Bucket=bucket, Key="whole", Body=FIRST + LAST, ChecksumAlgorithm=algorithm)
    whole = s3.head_object(Bucket=bucket, Key="whole", ChecksumMode="ENABLED")[member]
    assert answer["ChecksumType"] == kind
    assert answer[member] == whole if kind == "FULL_OBJECT" else answer[member].endswith("-2")
    head = s3.head_object(Bucket=bucket, Key="key", ChecksumMode="ENABLED")
    assert (head[member], head["ChecksumType"]) == (answer[member], kind)


def test_a_composite_checksum_that_is_promised_is_checked(s3: Any, bucket: str) -> None:
    upload = started(s3, bucket, ChecksumAlgorithm="SHA256")
    parts = sent(s3, upload, LAST, ChecksumAlgorithm="SHA256")
    right = b64encode(hashlib.sha256(hashlib.sha256(LAST).digest()).digest()).decode()
    named = {**upload, "MultipartUpload": {"Parts": parts}}
    assert refused(s3.complete_multipart_upload, **named, ChecksumSHA256="bad") == (400, "InvalidRequest")
    wrong = b64encode(bytes(32)).decode()
    assert refused(s3.complete_multipart_upload, **named, ChecksumSHA256=wrong)[1] == "BadDigest"
    assert refused(s3.complete_multipart_upload, **named, ChecksumType="FULL_OBJECT")[1] == "BadDigest"
    assert completed(s3, upload, parts, ChecksumSHA256=right)["ChecksumSHA256"] == f"{right}-1"


def test_a_part_with_a_wrong_digest_is_refused(s3: Any, bucket: str) -> None:
    upload = started(s3, bucket)
    wrong = b64encode(bytes(16)).decode()
    assert refused(s3.upload_part, **upload, PartNumber=1, Body=b"x", ContentMD5=wrong) == (400, "BadDigest")
    other = {"ChecksumAlgorithm": "SHA1"}
    upload = started(s3, bucket, ChecksumAlgorithm="SHA256")
    assert refused(s3.upload_part, **upload, PartNumber=1, Body=b"x", **other)[1] == "InvalidRequest"


def test_a_condition_on_the_current_object_holds_at_the_end(s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="key", Body=b"there")
    upload = started(s3, bucket)
    parts = sent(s3, upload, LAST)
    named = {**upload, "MultipartUpload": {"Parts": parts}}
    assert refused(s3.complete_multipart_upload, **named, IfNoneMatch="*") == (412, "PreconditionFailed")
    etag = s3.head_object(Bucket=bucket, Key="key")["ETag"]
    completed(s3, upload, parts, IfMatch=etag)


def test_an_upload_into_versioned_bucket_tells_its_version(
    s3: Any, bucket: str, gateway: RunningGateway
) -> None:
    gateway.metabase.buckets.set_versioning(bucket, Versioning.ENABLED)
    upload = started(s3, bucket)
    version = completed(s3, upload, sent(s3, upload, LAST))["VersionId"]
    assert gateway.metabase.objects.get(bucket, "key", version).size_bytes == len(LAST)


def test_others_cannot_touch_an_upload(s3: Any, bucket: str, gateway: RunningGateway) -> None:
    upload = started(s3, bucket)
    other = gateway.client("s3", OTHER)
    denied = (403, "AccessDenied")
    assert refused(other.upload_part, **upload, PartNumber=1, Body=b"x") == denied
    assert refused(other.abort_multipart_upload, **upload) == denied
    assert refused(other.list_multipart_uploads, Bucket=bucket) == denied
    other.close()


def test_a_missing_bucket_has_no_uploads(s3: Any) -> None:
    name = f"missing-{uuid.uuid4().hex}"
    assert refused(s3.create_multipart_upload, Bucket=name, Key="key") == (404, "NoSuchBucket")
    assert refused(s3.list_multipart_uploads, Bucket=name) == (404, "NoSuchBucket")


def test_only_the_completion_is_a_change(s3: Any, bucket: str, gateway: RunningGateway) -> None:
    gateway.metabase.rules.edit(bucket, lambda _rules: [rule()])
    before = gateway.changes()
    upload = started(s3, bucket)
    parts = sent(s3, upload, LAST)
    s3.abort_multipart_upload(**started(s3, bucket, "other"))
    assert gateway.changes() == before
    completed(s3, upload, parts)
    completed(s3, upload, parts)
    assert gateway.changes() == before + 1


def test_boto3_transfers_large_files_in_parts(s3: Any, bucket: str) -> None:
    content = bytes(range(256)) * 48 * 1024
    s3.upload_fileobj(BytesIO(content), bucket, "large", Config=TransferConfig(8 * MIB))
    assert s3.head_object(Bucket=bucket, Key="large")["ETag"].endswith('-2"')
    received = BytesIO()
    s3.download_fileobj(bucket, "large", received, Config=TransferConfig(8 * MIB))
    assert received.getvalue() == content


def test_an_upload_is_for_who_started_it_and_for_the_owner_of_the_bucket(
    s3: Any, gateway: RunningGateway, bucket: str
) -> None:
    s3.put_bucket_acl(Bucket=bucket, ACL="public-read-write")
    other, denied = gateway.client("s3", OTHER), (403, "AccessDenied")
    upload = started(s3, bucket)
    parts = sent(s3, upload, LAST)
    assert refused(other.upload_part, **upload, PartNumber=1, Body=b"theirs") == denied
    source = f"{bucket}/key"
    assert refused(other.upload_part_copy, **upload, PartNumber=1, CopySource=source) == denied
    assert refused(other.list_parts, **upload) == denied
    assert refused(other.complete_multipart_upload, **upload, MultipartUpload={"Parts": parts}) == denied
    assert refused(other.abort_multipart_upload, **upload) == denied
    completed(s3, upload, parts)
    assert s3.get_object(Bucket=bucket, Key="key")["Body"].read() == LAST
    theirs = started(other, bucket, "theirs")
    completed(other, theirs, sent(other, theirs, LAST))
    s3.abort_multipart_upload(**started(other, bucket, "theirs"))
    other.close()


def test_the_location_is_one_that_the_client_can_reach(s3: Any, bucket: str) -> None:
    def over_tls(request: Any, **_: Any) -> None:
        request.headers["x-forwarded-proto"] = "https"

    upload = started(s3, bucket)
    parts = sent(s3, upload, LAST)
    assert completed(s3, upload, parts)["Location"].startswith("http://127.0.0.1")
    s3.meta.events.register("before-send.s3.CompleteMultipartUpload", over_tls)
    try:
        assert completed(s3, upload, parts)["Location"].startswith("https://127.0.0.1")
    finally:
        s3.meta.events.unregister("before-send.s3.CompleteMultipartUpload", over_tls)


def test_the_largest_lists_are_taken(s3: Any, bucket: str) -> None:
    parts = [
        {"PartNumber": number, "ETag": f'"{number:032x}"', "ChecksumSHA256": b64encode(bytes(32)).decode()}
        for number in range(1, 10_001)
    ]
    unknown = {"Bucket": bucket, "Key": "key", "UploadId": "unknown"}
    answered = refused(s3.complete_multipart_upload, **unknown, MultipartUpload={"Parts": parts})
    assert answered == (404, "NoSuchUpload")
    keys = [{"Key": f"{number:04d}" + "&" * 1020} for number in range(700)]
    assert len(s3.delete_objects(Bucket=bucket, Delete={"Objects": keys})["Deleted"]) == len(keys)


def test_nobody_waits_for_those_who_copy(
    gateway: RunningGateway, s3: Any, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More copies than the gateway has threads, none of which comes to an end before all else is done."""
    copies, released, copy_bytes = 40, Event(), s3_parts._copy_bytes

    def slowly(*given: Any) -> Any:
        released.wait(60)
        return copy_bytes(*given)

    monkeypatch.setattr(s3_parts, "_copy_bytes", slowly)
    s3.put_object(Bucket=bucket, Key="source", Body=LAST)
    upload, client = started(s3, bucket), gateway.client("s3", max_pool_connections=copies)

    def copy(number: int) -> str:
        source = {"Bucket": bucket, "Key": "source"}
        answer = client.upload_part_copy(**upload, PartNumber=number, CopySource=source)
        return str(answer["CopyPartResult"]["ETag"])

    with ThreadPoolExecutor(copies) as threads:
        copied = [threads.submit(copy, number) for number in range(1, copies + 1)]
        for number in range(20):
            s3.put_object(Bucket=bucket, Key=f"other-{number}", Body=b"other")
        assert not any(each.done() for each in copied)
        released.set()
        assert len({each.result(60) for each in copied}) == 1
