"""Topics that are not persistent: the gateway delivers before it answers."""

import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from bucketwire.gateway.push_turns import UNDER_WAY
from bucketwire.metrics import MESSAGES
from factories import policy_for
from gateway.running import RunningGateway, run_gateway
from gateway.test_users import new_user
from services.http_endpoint import HttpEndpoint, Mode

PAUSE_SECONDS = 3.0


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGateway]:
    yield from run_gateway(tmp_path_factory.mktemp("push"), "ceph", push_deadline_seconds=PAUSE_SECONDS)


@pytest.fixture
def endpoint() -> Iterator[HttpEndpoint]:
    with HttpEndpoint() as started:
        yield started


@pytest.fixture
def bucket(s3: Any) -> str:
    name = f"bucket-{uuid.uuid4().hex}"
    s3.create_bucket(Bucket=name)
    return name


def subscribe(s3: Any, sns: Any, bucket: str, endpoint: HttpEndpoint, **attributes: str) -> str:
    name = f"topic-{uuid.uuid4().hex}"
    arn: str = sns.create_topic(Name=name, Attributes={"push-endpoint": endpoint.url, **attributes})[
        "TopicArn"
    ]
    rule = {"Id": name, "TopicArn": arn, "Events": ["s3:ObjectCreated:*", "s3:ObjectRemoved:*"]}
    s3.put_bucket_notification_configuration(
        Bucket=bucket, NotificationConfiguration={"TopicConfigurations": [rule]}
    )
    return arn


def names(endpoint: HttpEndpoint) -> list[tuple[str, str]]:
    records = [event.decoded["Records"][0] for event in endpoint.events()]
    return [(record["eventName"], record["s3"]["object"]["key"]) for record in records]


def failed_pushes() -> float:
    return float(MESSAGES.labels("push_failed")._value.get())


def test_every_kind_of_write_is_delivered_before_its_answer_and_leaves_no_row(
    gateway: RunningGateway, s3: Any, sns: Any, bucket: str, endpoint: HttpEndpoint
) -> None:
    subscribe(s3, sns, bucket, endpoint)
    changes = gateway.changes()
    s3.put_object(Bucket=bucket, Key="a", Body=b"hello")
    assert names(endpoint) == [("ObjectCreated:Put", "a")]
    s3.copy_object(Bucket=bucket, Key="b", CopySource={"Bucket": bucket, "Key": "a"})
    assert names(endpoint)[1:] == [("ObjectCreated:Copy", "b")]
    upload = s3.create_multipart_upload(Bucket=bucket, Key="m")["UploadId"]
    part = s3.upload_part(Bucket=bucket, Key="m", UploadId=upload, PartNumber=1, Body=b"part")["ETag"]
    parts = {"Parts": [{"PartNumber": 1, "ETag": part}]}
    s3.complete_multipart_upload(Bucket=bucket, Key="m", UploadId=upload, MultipartUpload=parts)
    assert names(endpoint)[2:] == [("ObjectCreated:CompleteMultipartUpload", "m")]
    s3.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": key} for key in ("a", "b")]})
    assert sorted(names(endpoint)[3:]) == [("ObjectRemoved:Delete", "a"), ("ObjectRemoved:Delete", "b")]
    s3.delete_object(Bucket=bucket, Key="m")
    assert names(endpoint)[5:] == [("ObjectRemoved:Delete", "m")]
    assert gateway.changes() == changes


@pytest.mark.parametrize("mode", [Mode.REFUSE, Mode.DOWN, Mode.HANG])
def test_the_operation_succeeds_when_its_push_fails(
    s3: Any, sns: Any, bucket: str, endpoint: HttpEndpoint, mode: Mode
) -> None:
    subscribe(s3, sns, bucket, endpoint)
    endpoint.mode = mode
    failed = failed_pushes()
    s3.put_object(Bucket=bucket, Key="k", Body=b"hello")
    assert s3.get_object(Bucket=bucket, Key="k")["Body"].read() == b"hello"
    assert failed_pushes() == failed + 1
    assert names(endpoint) == []


def test_many_writes_at_once_wait_for_their_turn_and_none_is_left_out(
    gateway: RunningGateway, s3: Any, sns: Any, bucket: str, endpoint: HttpEndpoint
) -> None:
    subscribe(s3, sns, bucket, endpoint)
    clients = [gateway.client("s3") for _ in range(8)]
    keys = [f"key-{number}" for number in range(4 * UNDER_WAY)]

    def put(number: int) -> None:
        clients[number % len(clients)].put_object(Bucket=bucket, Key=keys[number], Body=b"")

    with ThreadPoolExecutor(len(keys)) as pool:
        list(pool.map(put, range(len(keys))))
    assert sorted(key for _, key in names(endpoint)) == sorted(keys)
    for client in clients:
        client.close()


def test_a_write_that_fails_is_not_pushed(s3: Any, sns: Any, bucket: str, endpoint: HttpEndpoint) -> None:
    subscribe(s3, sns, bucket, endpoint)
    s3.put_object(Bucket=bucket, Key="k", Body=b"1")
    with pytest.raises(s3.exceptions.ClientError):
        s3.put_object(Bucket=bucket, Key="k", Body=b"2", IfNoneMatch="*")
    assert len(names(endpoint)) == 1


def test_a_persistent_topic_beside_a_synchronous_one_gets_its_own_from_the_stream(
    gateway: RunningGateway, s3: Any, sns: Any, bucket: str, endpoint: HttpEndpoint
) -> None:
    subscribe(s3, sns, bucket, endpoint)
    changes = gateway.changes()
    with HttpEndpoint() as other:
        subscribe(s3, sns, bucket, other, persistent="true")
        s3.put_object(Bucket=bucket, Key="k", Body=b"hello")
        assert (len(names(endpoint)), len(names(other))) == (1, 0)
    assert gateway.changes() == changes + 1


def test_a_topic_that_becomes_persistent_is_so_for_the_next_write(
    gateway: RunningGateway, s3: Any, sns: Any, bucket: str, endpoint: HttpEndpoint
) -> None:
    arn = subscribe(s3, sns, bucket, endpoint)
    s3.put_object(Bucket=bucket, Key="k", Body=b"1")
    changes = gateway.changes()
    attributes = {"push-endpoint": endpoint.url, "persistent": "true"}
    sns.create_topic(Name=arn.rpartition(":")[2], Attributes=attributes)
    s3.put_object(Bucket=bucket, Key="k", Body=b"2")
    assert len(names(endpoint)) == 1
    assert gateway.changes() == changes + 1


def test_a_topic_that_its_owner_opens_to_someone_else_gets_nothing_by_an_older_rule(
    gateway: RunningGateway, endpoint: HttpEndpoint
) -> None:
    """A rule may name a topic that is not there yet, and the policy may let somebody else in only."""
    owner, writer, guest = (new_user(gateway) for _ in range(3))
    s3, sns = gateway.client("s3", writer), gateway.client("sns", owner)
    name = f"later-{uuid.uuid4().hex}"
    arn = f"arn:aws:sns:us-east-1::{name}"
    s3.create_bucket(Bucket=name)
    rule = {"Id": "r", "TopicArn": arn, "Events": ["s3:ObjectCreated:*"]}
    s3.put_bucket_notification_configuration(
        Bucket=name,
        NotificationConfiguration={"TopicConfigurations": [rule]},
        SkipDestinationValidation=True,
    )
    for number, (let_in, delivered) in enumerate([(guest, 0), (writer, 1), (guest, 1)]):
        policy = policy_for(f"arn:aws:iam:::user/{let_in.display_name}")
        made = sns.create_topic(Name=name, Attributes={"push-endpoint": endpoint.url, "Policy": policy})
        assert made["TopicArn"] == arn
        s3.put_object(Bucket=name, Key=f"key-{number}", Body=b"hello")
        assert len(names(endpoint)) == delivered
    s3.close()
    sns.close()
