"""Writes whose message would have no room in the queue of a topic."""

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import urllib3
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import ClientError

from factories import message
from gateway.refused import refusal
from gateway.running import ROOT, RunningGateway, run_gateway

LIMIT_BYTES = 10_000
LARGE = b"x" * 20_000


@pytest.fixture
def gateway(tmp_path: Any) -> Iterator[RunningGateway]:
    yield from run_gateway(tmp_path, "ceph", queue_limit_bytes=LIMIT_BYTES)


def full_topic(gateway: RunningGateway, s3: Any, below: str = "logs/", **attributes: str) -> str:
    """A bucket with a rule for keys below a prefix whose topic's queue is full."""
    bucket, sns = f"bucket-{uuid.uuid4().hex}", gateway.client("sns")
    endpoint = {"push-endpoint": "http://127.0.0.1:1/", "persistent": "true"}
    arn = sns.create_topic(Name="full", Attributes={**endpoint, **attributes})["TopicArn"]
    s3.create_bucket(Bucket=bucket)
    prefix = {"Key": {"FilterRules": [{"Name": "prefix", "Value": below}]}}
    rule = {"Id": "r", "TopicArn": arn, "Events": ["s3:ObjectCreated:*"], "Filter": prefix}
    s3.put_bucket_notification_configuration(
        Bucket=bucket, NotificationConfiguration={"TopicConfigurations": [rule]}
    )
    waiting = message(event_id="waiting", body=b"x" * LIMIT_BYTES, topic_arn=arn)
    gateway.metabase.queue.park([waiting], due_at_ns=0, attempts=1, reason="down")
    sns.close()
    return bucket


def test_a_write_that_would_need_a_full_queue_is_told_to_slow_down_and_changes_nothing(
    gateway: RunningGateway,
) -> None:
    s3 = gateway.client("s3")
    bucket = full_topic(gateway, s3)
    with pytest.raises(ClientError) as refused:
        s3.put_object(Bucket=bucket, Key="logs/a", Body=b"")
    assert refused.value.response["Error"]["Code"] == "SlowDown"
    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 503
    assert "retry-after" in refused.value.response["ResponseMetadata"]["HTTPHeaders"]
    assert s3.list_objects_v2(Bucket=bucket)["KeyCount"] == 0
    s3.put_object(Bucket=bucket, Key="other/a", Body=b"")
    s3.delete_object(Bucket=bucket, Key="logs/a")
    s3.close()


def test_what_is_told_to_slow_down_leaves_no_bytes_on_the_disk(gateway: RunningGateway) -> None:
    s3 = gateway.client("s3")
    bucket = full_topic(gateway, s3)
    s3.put_object(Bucket=bucket, Key="source", Body=LARGE)
    before = files_below(gateway.objects)
    form = s3.generate_presigned_post(bucket, "logs/posted")
    posted = urllib3.request("POST", form["url"], fields={**form["fields"], "file": ("name", LARGE)})
    source = {"Bucket": bucket, "Key": "source"}
    assert refusal(s3.put_object, Bucket=bucket, Key="logs/put", Body=LARGE) == ("SlowDown", 503)
    assert refusal(s3.copy_object, Bucket=bucket, Key="logs/copy", CopySource=source) == ("SlowDown", 503)
    assert (posted.status, b"<Code>SlowDown</Code>" in posted.data) == (503, True)
    assert files_below(gateway.objects) == before
    assert len(before) == 1
    s3.close()


def files_below(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_what_would_be_sent_is_explained_though_the_queue_is_full(gateway: RunningGateway) -> None:
    s3 = gateway.client("s3")
    bucket = full_topic(gateway, s3, below="")
    target = f"{gateway.url}/{bucket}?explain=&key=a&event=s3%3AObjectCreated%3APut"
    request = AWSRequest("GET", target)
    S3SigV4Auth(Credentials(ROOT.access_key, ROOT.secret_key), "s3", "us-east-1").add_auth(request)
    answer = urllib3.request("GET", target, headers=dict(request.headers.items()))
    assert answer.status == 200, answer.data
    s3.close()


def test_where_the_topic_prefers_dead_letters_the_write_goes_through(gateway: RunningGateway) -> None:
    s3 = gateway.client("s3")
    bucket = full_topic(gateway, s3, **{"queue-policy": "dead-letter"})
    s3.put_object(Bucket=bucket, Key="logs/a", Body=b"")
    assert s3.head_object(Bucket=bucket, Key="logs/a")["ContentLength"] == 0
    s3.close()


def test_a_topic_may_have_a_limit_of_its_own(gateway: RunningGateway) -> None:
    s3 = gateway.client("s3")
    bucket = full_topic(gateway, s3, **{"queue-limit": "1000000"})
    s3.put_object(Bucket=bucket, Key="logs/a", Body=b"")
    assert s3.head_object(Bucket=bucket, Key="logs/a")["ContentLength"] == 0
    s3.close()
