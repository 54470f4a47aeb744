"""What is the storj dialect's own, on the way from an upload to its change."""

from collections.abc import Iterator
from typing import Any

import pytest

from bucketwire.event.change import decode_change
from bucketwire.metabase.values import Slice
from factories import rule
from gateway.running import RunningGateway, run_gateway


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGateway]:
    yield from run_gateway(tmp_path_factory.mktemp("storj"), "storj")


def test_a_rule_for_puts_gets_multipart_uploads_too_as_puts(gateway: RunningGateway, s3: Any) -> None:
    s3.create_bucket(Bucket="uploads")
    arn = "arn:gcp:pubsub::some-project:events"
    gateway.metabase.rules.edit("uploads", lambda _: [rule("s3:ObjectCreated:Put", topic_arn=arn)])
    upload = s3.create_multipart_upload(Bucket="uploads", Key="m")["UploadId"]
    part = s3.upload_part(Bucket="uploads", Key="m", UploadId=upload, PartNumber=1, Body=b"part")["ETag"]
    parts = {"Parts": [{"PartNumber": 1, "ETag": part}]}
    s3.complete_multipart_upload(Bucket="uploads", Key="m", UploadId=upload, MultipartUpload=parts)
    stream = gateway.metabase.changes
    start = stream.start()
    (row,) = stream.read(Slice(start, stream.head(start, 100)))
    assert decode_change(row).operation == "ObjectCreated:Put"
