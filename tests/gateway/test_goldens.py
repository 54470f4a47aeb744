"""The gateway's own deliveries are the golden messages: one formatter, here and in the pipeline."""

import json
import uuid
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import unquote

import pytest

from gateway.in_process import InProcess
from gateway.running import RunningGateway
from golden.cases import CHANGES, path
from golden.pinned import pinned
from services.http_endpoint import HttpEndpoint, Received

SEVEN = b"7 bytes"
DESCRIPTION = {"Metadata": {"color": "red"}, "Tagging": "team=blue"}
TAGS = {"TagSet": [{"Key": "team", "Value": "blue"}]}
FORMS = {
    "s3": {},
    "cos": {"format": "cos"},
    "structured": {"format": "cloudevents"},
    "binary": {"format": "cloudevents", "cloudevents-mode": "binary"},
}
EVENTS = ["s3:ObjectCreated:*", "s3:ObjectRemoved:*", "s3:ObjectTagging:*"]
Act = Callable[[Any, str, str], Any]


def put(body: bytes) -> Act:
    return lambda s3, bucket, key: s3.put_object(Bucket=bucket, Key=key, Body=body)


def delete(s3: Any, bucket: str, key: str) -> Any:
    return s3.delete_object(Bucket=bucket, Key=key)


def put_then_delete(s3: Any, bucket: str, key: str) -> None:
    put(SEVEN)(s3, bucket, key)
    delete(s3, bucket, key)


def versioning(s3: Any, bucket: str, status: str) -> None:
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": status})


def versioned_put(s3: Any, bucket: str, key: str) -> Any:
    versioning(s3, bucket, "Enabled")
    return s3.put_object(Bucket=bucket, Key=key, Body=SEVEN, **DESCRIPTION)


def versioned_copy(s3: Any, bucket: str, key: str) -> None:
    versioned_put(s3, bucket, "source")
    s3.copy_object(Bucket=bucket, Key=key, CopySource={"Bucket": bucket, "Key": "source"})


def versioned_delete_marker(s3: Any, bucket: str, key: str) -> Any:
    versioned_put(s3, bucket, key)
    return delete(s3, bucket, key)


def versioned_delete_version(s3: Any, bucket: str, key: str) -> None:
    s3.delete_object(Bucket=bucket, Key=key, VersionId=versioned_put(s3, bucket, key)["VersionId"])


def versioned_delete_the_marker(s3: Any, bucket: str, key: str) -> None:
    s3.delete_object(Bucket=bucket, Key=key, VersionId=versioned_delete_marker(s3, bucket, key)["VersionId"])


def suspended_delete_of_null(s3: Any, bucket: str, key: str) -> None:
    versioning(s3, bucket, "Suspended")
    put_then_delete(s3, bucket, key)


def suspended_delete_of_null_marker(s3: Any, bucket: str, key: str) -> None:
    suspended_delete_of_null(s3, bucket, key)
    delete(s3, bucket, key)


def suspended_delete_without_null(s3: Any, bucket: str, key: str) -> None:
    versioned_put(s3, bucket, key)
    versioning(s3, bucket, "Suspended")
    delete(s3, bucket, key)


def tagging_put(s3: Any, bucket: str, key: str) -> None:
    versioned_put(s3, bucket, key)
    s3.put_object_tagging(Bucket=bucket, Key=key, Tagging=TAGS)


def tagging_delete(s3: Any, bucket: str, key: str) -> None:
    versioned_put(s3, bucket, key)
    s3.delete_object_tagging(Bucket=bucket, Key=key)


CASES: dict[str, Act] = {
    "put": put(b"x" * 64908),
    "put-empty": put(b""),
    "put-odd-key": put(b"hello"),
    "delete": put_then_delete,
    "delete-missing": delete,
    "versioned-put": versioned_put,
    "versioned-copy": versioned_copy,
    "versioned-delete-marker": versioned_delete_marker,
    "versioned-delete-version": versioned_delete_version,
    "versioned-delete-the-marker": versioned_delete_the_marker,
    "suspended-delete-of-null": suspended_delete_of_null,
    "suspended-delete-of-null-marker": suspended_delete_of_null_marker,
    "suspended-delete-without-null": suspended_delete_without_null,
    "tagging-put": tagging_put,
    "tagging-delete": tagging_delete,
}


@pytest.fixture(scope="module")
def endpoint() -> Iterator[HttpEndpoint]:
    with HttpEndpoint() as started:
        yield started


def last_delivery(
    gateway: RunningGateway, endpoint: HttpEndpoint, case: str, form: dict[str, str]
) -> Received:
    """What the endpoint gets of the last step of the case, from a topic that is not persistent."""
    s3, sns = gateway.client("s3"), gateway.client("sns")
    name = f"golden-{uuid.uuid4().hex}"
    attributes = {"push-endpoint": endpoint.url, "persistent": "false", "OpaqueData": "mine", **form}
    arn = sns.create_topic(Name=name, Attributes=attributes)["TopicArn"]
    s3.create_bucket(Bucket=name)
    rule = {"Id": "ObjectEvents", "TopicArn": arn, "Events": EVENTS}
    s3.put_bucket_notification_configuration(
        Bucket=name, NotificationConfiguration={"TopicConfigurations": [rule]}
    )
    endpoint.forget()
    CASES[case](s3, name, CHANGES[case].key)
    s3.close()
    sns.close()
    return endpoint.events()[-1]


def golden_lines(case: str, form: str) -> list[bytes]:
    return path(case, form).read_bytes().splitlines()


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("dialect", ["aws", "ceph"])
def test_the_s3_message_is_the_golden_one(
    case: str, dialect: str, endpoint: HttpEndpoint, request: pytest.FixtureRequest
) -> None:
    gateway = request.getfixturevalue("gateway" if dialect == "aws" else "ceph_gateway")
    (golden,) = golden_lines(case, dialect)
    assert pinned(last_delivery(gateway, endpoint, case, FORMS["s3"]).body, golden) == golden


@pytest.mark.parametrize("case", CASES)
def test_the_payload_of_cos_is_the_golden_one(
    case: str, gateway: RunningGateway, endpoint: HttpEndpoint
) -> None:
    golden = golden_lines(case, "cos")[1]
    assert pinned(last_delivery(gateway, endpoint, case, FORMS["cos"]).body, golden) == golden


@pytest.mark.parametrize("case", ["put-odd-key", "versioned-delete-marker"])
def test_cloudevents_are_the_golden_ones(case: str, gateway: RunningGateway, endpoint: HttpEndpoint) -> None:
    golden = golden_lines(case, "cloudevents")[0]
    assert pinned(last_delivery(gateway, endpoint, case, FORMS["structured"]).body, golden) == golden
    attributes, record = golden_lines(case, "binary")[:2]
    received = last_delivery(gateway, endpoint, case, FORMS["binary"])
    assert pinned(received.body, record) == record
    beside = {name[3:]: unquote(value) for name, value in received.headers.items() if name.startswith("ce-")}
    assert pinned(json.dumps(beside).encode(), attributes) == attributes
    assert beside["id"] == received.headers["bucketwire-event-id"]


@pytest.fixture(scope="module")
def in_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    opened = InProcess(tmp_path_factory.mktemp("in-process"))
    opened.signed("PUT", "/media")
    yield opened
    opened.close()


@pytest.mark.parametrize("key", ["%FF", "a%C3", "%C0%AF", "%ED%A0%80", "a%00b"])
def test_a_key_that_no_message_could_carry_is_refused(key: str, in_process: InProcess) -> None:
    answered = in_process.signed("PUT", f"/media/{key}", b"hello")
    assert (answered.status, answered.code) == (400, "InvalidURI")
