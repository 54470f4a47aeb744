"""What a new user does first, with the tools that they have."""

import json
import os
import re
import stat
import subprocess
import time
import uuid
from pathlib import Path

from services.http_endpoint import HttpEndpoint, Received
from wire import ACCESS_KEY, PROGRAM, REGION, SECRET_KEY, System

PATIENCE_SECONDS = 60


def fresh(name: str) -> str:
    return f"{name}-{uuid.uuid4().hex[:8]}"


def record_of(event: Received) -> dict[str, object]:
    (record,) = event.decoded["Records"]
    return dict(record)


def test_a_put_reaches_the_endpoint_as_a_full_record(system: System, endpoint: HttpEndpoint) -> None:
    bucket = fresh("first")
    system.subscribe(bucket, bucket, endpoint.url)
    answer = system.client("s3").put_object(Bucket=bucket, Key="folder name/ä+b.txt", Body=b"hello")
    (event,) = endpoint.wait_for(1, PATIENCE_SECONDS)
    record = record_of(event)
    headers = answer["ResponseMetadata"]["HTTPHeaders"]
    owner = system.client("s3").list_buckets()["Owner"]["ID"]
    sequencer = record["s3"]["object"].pop("sequencer")
    assert re.fullmatch(r"[0-9A-F]{16}", sequencer)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", record.pop("eventTime"))
    assert record == {
        "eventVersion": "2.1",
        "eventSource": "aws:s3",
        "awsRegion": REGION,
        "eventName": "ObjectCreated:Put",
        "userIdentity": {"principalId": owner},
        "requestParameters": {"sourceIPAddress": "127.0.0.1"},
        "responseElements": {
            "x-amz-request-id": headers["x-amz-request-id"],
            "x-amz-id-2": headers["x-amz-id-2"],
        },
        "s3": {
            "s3SchemaVersion": "1.0",
            "configurationId": bucket,
            "bucket": {
                "name": bucket,
                "ownerIdentity": {"principalId": owner},
                "arn": f"arn:aws:s3:::{bucket}",
            },
            "object": {
                "key": "folder+name/%C3%A4%2Bb.txt",
                "size": 5,
                "eTag": "5d41402abc4b2a76b9719d911017c592",
            },
        },
    }


def test_overwrite_and_delete_come_in_the_order_of_their_sequencers(
    system: System, endpoint: HttpEndpoint
) -> None:
    bucket = fresh("order")
    s3 = system.client("s3")
    s3.create_bucket(Bucket=bucket)
    arn = system.client("sns").create_topic(Name=bucket, Attributes={"push-endpoint": endpoint.url})[
        "TopicArn"
    ]
    s3.put_bucket_notification_configuration(
        Bucket=bucket,
        NotificationConfiguration={
            "TopicConfigurations": [{"TopicArn": arn, "Events": ["s3:ObjectCreated:*", "s3:ObjectRemoved:*"]}]
        },
        SkipDestinationValidation=True,
    )
    s3.put_object(Bucket=bucket, Key="k", Body=b"1")
    s3.put_object(Bucket=bucket, Key="k", Body=b"22")
    s3.delete_object(Bucket=bucket, Key="k")
    records = [record_of(event) for event in endpoint.wait_for(3, PATIENCE_SECONDS)]
    records.sort(key=lambda record: record["s3"]["object"]["sequencer"])
    told = [(record["eventName"], record["s3"]["object"].get("size")) for record in records]
    assert told == [("ObjectCreated:Put", 1), ("ObjectCreated:Put", 2), ("ObjectRemoved:Delete", None)]


def test_only_what_the_filter_accepts_is_sent(system: System, endpoint: HttpEndpoint) -> None:
    bucket = fresh("filter")
    system.subscribe(bucket, bucket, endpoint.url, prefix="in/")
    s3 = system.client("s3")
    for key in ("out/1", "in/1", "out/2", "in/2"):
        s3.put_object(Bucket=bucket, Key=key, Body=b"")
    events = endpoint.wait_for(2, PATIENCE_SECONDS)
    time.sleep(0.5)
    assert len(endpoint.events()) == 2
    assert {record_of(event)["s3"]["object"]["key"] for event in events} == {"in/1", "in/2"}


def test_the_aws_command_line_gets_its_first_event(
    system: System, endpoint: HttpEndpoint, tmp_path: Path
) -> None:
    """The commands of the README, in its order."""
    name = fresh("cli")
    configuration = {
        "TopicConfigurations": [
            {"TopicArn": f"arn:aws:sns:{REGION}:000000000000:{name}", "Events": ["s3:ObjectCreated:*"]}
        ]
    }
    (tmp_path / "hello.txt").write_text("hello\n")
    for command in (
        ["aws", "sns", "create-topic", "--name", name, "--attributes", f"push-endpoint={endpoint.url}"],
        ["aws", "s3", "mb", f"s3://{name}"],
        [
            *("aws", "s3api", "put-bucket-notification-configuration", "--bucket", name),
            *("--notification-configuration", json.dumps(configuration)),
        ],
        ["aws", "s3", "cp", str(tmp_path / "hello.txt"), f"s3://{name}/hello.txt"],
    ):
        done = subprocess.run(command, env=system.environment(), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    test, event = endpoint.wait_for(2, PATIENCE_SECONDS)
    assert test.decoded["Event"] == "s3:TestEvent"
    assert record_of(event)["s3"]["object"]["size"] == 6


def test_health_pages_tell_what_they_promise(system: System) -> None:
    assert system.get("/-/live")[0] == 200
    assert system.get("/-/ready") == (200, {"ready": True})
    status, text = system.get("/-/metrics")
    assert status == 200
    assert "# TYPE bucketwire_" in text


def test_no_secret_is_in_the_log_or_the_metrics(system: System) -> None:
    assert SECRET_KEY not in system.log.read_text()
    assert SECRET_KEY not in system.get("/-/metrics")[1]


def test_env_prints_lines_that_a_shell_can_read(system: System) -> None:
    printed = subprocess.run(
        [PROGRAM, "env", "--data", str(system.folder / "data"), "--port", str(system.port)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    shell = subprocess.run(
        ["sh", "-c", f'{printed}\nprintf \'%s|%s\' "$AWS_ACCESS_KEY_ID" "$AWS_ENDPOINT_URL"'],
        capture_output=True,
        text=True,
        check=True,
    )
    assert shell.stdout == f"{ACCESS_KEY}|{system.url}"


def test_a_second_system_in_the_same_folder_is_refused(system: System) -> None:
    done = subprocess.run(
        [PROGRAM, "up", "--data", str(system.folder / "data"), "--port", "0"],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )
    assert done.returncode == 1
    assert "another `bucketwire up` runs" in done.stderr


def test_a_port_that_is_taken_is_an_error_that_says_what_to_do(system: System, tmp_path: Path) -> None:
    done = subprocess.run(
        [PROGRAM, "up", "--data", str(tmp_path / "data"), "--port", str(system.port)],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )
    assert done.returncode == 1
    assert "choose another with --host and --port" in done.stderr


def test_kept_credentials_are_readable_by_the_owner_only(system: System) -> None:
    kept = (system.folder / "data" / "root-credentials.json").stat()
    assert stat.S_IMODE(kept.st_mode) == 0o600
    assert kept.st_uid == os.getuid()


def test_a_large_upload_does_not_sit_in_memory(system: System) -> None:
    """256 MiB pass through a gateway that grows by a small part of that."""
    bucket = fresh("large")
    s3 = system.client("s3")
    s3.create_bucket(Bucket=bucket)
    s3.put_object(Bucket=bucket, Key="warm", Body=b"x" * 5_000_000)
    status = Path(f"/proc/{system.part('gateway')}/status")

    def peak_bytes() -> int:
        (line,) = [line for line in status.read_text().splitlines() if line.startswith("VmHWM")]
        return int(line.split()[1]) * 1024

    before = peak_bytes()
    size = 256 * 1024 * 1024
    with Path("/dev/zero").open("rb") as zeros:
        content = _Limited(zeros, size)
        s3.put_object(Bucket=bucket, Key="large", Body=content, ContentLength=size)
    assert s3.head_object(Bucket=bucket, Key="large")["ContentLength"] == size
    assert peak_bytes() - before < 64 * 1024 * 1024


class _Limited:
    """The first bytes of an endless file."""

    def __init__(self, file: object, size: int) -> None:
        self._file = file
        self._size = size
        self._at = 0

    def read(self, count: int = -1) -> bytes:
        left = self._size - self._at
        piece: bytes = self._file.read(left if count < 0 else min(count, left))
        self._at += len(piece)
        return piece

    def seek(self, to: int, whence: int = 0) -> int:
        self._at = {0: to, 1: self._at + to, 2: self._size + to}[whence]
        return self._at

    def tell(self) -> int:
        return self._at
