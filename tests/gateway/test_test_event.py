"""The test event: a new destination must take it, or the configuration is refused and the old one stays."""

import threading
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from gateway.running import RunningGateway, run_gateway
from gateway.test_configuration import configured, error_of
from services.http_endpoint import HttpEndpoint, Mode
from wire import until

UNABLE = "Unable to validate the following destination configurations"


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGateway]:
    """As the product comes: the aws dialect tests destinations."""
    folder = tmp_path_factory.mktemp("testing")
    yield from run_gateway(folder, "aws", test_events=None, secrets_in_cleartext=True)


@pytest.fixture(scope="module")
def testing_ceph_gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGateway]:
    yield from run_gateway(tmp_path_factory.mktemp("testing-ceph"), "ceph", test_events=True)


@pytest.fixture(scope="module")
def storj_gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGateway]:
    yield from run_gateway(tmp_path_factory.mktemp("testing-storj"), "storj", test_events=None)


@pytest.fixture
def endpoint() -> Iterator[HttpEndpoint]:
    with HttpEndpoint() as endpoint:
        yield endpoint


def new_topic(sns: Any, url: str, **attributes: str) -> str:
    named = {"push-endpoint": url, **attributes} if url else attributes
    return str(sns.create_topic(Name=f"topic-{uuid.uuid4().hex}", Attributes=named)["TopicArn"])


def put(s3: Any, bucket: str, *configurations: dict[str, Any], **more: Any) -> None:
    entries = [entry for each in configurations for entry in each["TopicConfigurations"]]
    s3.put_bucket_notification_configuration(
        Bucket=bucket, NotificationConfiguration={"TopicConfigurations": entries}, **more
    )


def ids(s3: Any, bucket: str) -> list[str]:
    found = s3.get_bucket_notification_configuration(Bucket=bucket).get("TopicConfigurations", [])
    return [each["Id"] for each in found]


def test_a_new_destination_gets_it_before_the_put_is_answered(
    s3: Any, sns: Any, bucket: str, endpoint: HttpEndpoint
) -> None:
    put(s3, bucket, configured(new_topic(sns, endpoint.url), Id="mine"))
    (event,) = endpoint.events()
    told = event.decoded
    assert (told["Service"], told["Event"], told["Bucket"]) == ("Amazon S3", "s3:TestEvent", bucket)
    assert set(told) == {"Service", "Event", "Time", "Bucket", "RequestId", "HostId"}
    assert ids(s3, bucket) == ["mine"]


def test_a_destination_in_force_is_not_tested_again_and_each_new_one_once(
    s3: Any, sns: Any, bucket: str, endpoint: HttpEndpoint
) -> None:
    first = new_topic(sns, endpoint.url)
    put(s3, bucket, configured(first))
    endpoint.mode = Mode.DOWN
    put(s3, bucket, configured(first, "s3:ObjectCreated:Put"))
    endpoint.mode = Mode.OK
    second = new_topic(sns, endpoint.url)
    created, removed = configured(second), configured(second, "s3:ObjectRemoved:*")
    put(s3, bucket, configured(first, "s3:ObjectTagging:*"), created, removed)
    assert len(endpoint.events()) == 2


def test_a_topic_can_ask_for_an_empty_list_of_records(
    s3: Any, sns: Any, bucket: str, endpoint: HttpEndpoint
) -> None:
    put(s3, bucket, configured(new_topic(sns, endpoint.url, **{"test-event-records": "true"})))
    assert endpoint.events()[0].decoded["Records"] == []


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        (Mode.REFUSE, "HTTP 403"),
        (Mode.DOWN, "connection refused"),
        (Mode.CLOSE_EARLY, "connection closed without an answer"),
        (Mode.GARBAGE, "the answer is not HTTP"),
    ],
)
def test_a_destination_that_fails_leaves_the_old_configuration_and_says_why(
    s3: Any, sns: Any, bucket: str, endpoint: HttpEndpoint, mode: Mode, reason: str
) -> None:
    put(s3, bucket, configured(new_topic(sns, endpoint.url), Id="old"))
    endpoint.status = 403
    endpoint.mode = mode
    url = endpoint.url.replace("http://", "http://someone:pass-word@")
    new = new_topic(sns, url)
    error = error_of(lambda: put(s3, bucket, configured(new, Id="new")))
    assert (error["Code"], error["Status"], error["Message"]) == ("InvalidArgument", 400, UNABLE)
    assert (error["ArgumentName1"], error["ArgumentValue1"]) == (new, reason)
    assert "pass-word" not in str(error)
    assert ids(s3, bucket) == ["old"]


def test_all_that_fail_are_named(s3: Any, sns: Any, bucket: str, endpoint: HttpEndpoint) -> None:
    good, bad = new_topic(sns, endpoint.url), [new_topic(sns, "http://127.0.0.1:1/") for _ in range(2)]
    wanted = [
        configured(arn, Filter={"Key": {"FilterRules": [{"Name": "prefix", "Value": str(place)}]}})
        for place, arn in enumerate([bad[0], good, bad[1]])
    ]
    error = error_of(lambda: put(s3, bucket, *wanted))
    assert [error["ArgumentName1"], error["ArgumentName2"]] == bad
    assert "ArgumentName3" not in error


def test_the_header_skips_it(s3: Any, sns: Any, bucket: str, endpoint: HttpEndpoint) -> None:
    put(s3, bucket, configured(new_topic(sns, endpoint.url)), SkipDestinationValidation=True)
    assert endpoint.attempts == 0


def test_a_topic_without_an_endpoint_has_nothing_to_test(s3: Any, sns: Any, bucket: str) -> None:
    put(s3, bucket, configured(new_topic(sns, ""), Id="waits"))
    assert ids(s3, bucket) == ["waits"]


def test_a_destination_that_hangs_keeps_nobody_else_waiting(
    gateway: RunningGateway, s3: Any, sns: Any, bucket: str, endpoint: HttpEndpoint
) -> None:
    endpoint.mode = Mode.HANG
    arn, client, errors = new_topic(sns, endpoint.url), gateway.client("s3"), []
    hanging = threading.Thread(
        target=lambda: errors.append(error_of(lambda: put(client, bucket, configured(arn))))
    )
    hanging.start()
    until(lambda: endpoint.attempts == 1, 10, lambda: "no test event came")
    s3.put_object(Bucket=bucket, Key="k", Body=b"x")
    other = {"push-endpoint": "http://127.0.0.1:1/"}
    waiting = str(sns.create_topic(Name=f"t-{uuid.uuid4().hex}", Attributes=other)["TopicArn"])
    put(s3, bucket, configured(waiting, Id="meanwhile"), SkipDestinationValidation=True)
    endpoint.mode = Mode.DOWN
    hanging.join()
    client.close()
    assert errors[0]["ArgumentName1"] == arn
    assert ids(s3, bucket) == ["meanwhile"]


def test_ceph_tests_only_when_it_is_set_and_tells_the_reason_in_the_message(
    ceph_gateway: RunningGateway, testing_ceph_gateway: RunningGateway
) -> None:
    wanted = {"push-endpoint": "http://127.0.0.1:1/", "persistent": "true"}
    for gateway in (ceph_gateway, testing_ceph_gateway):
        s3, sns = gateway.client("s3"), gateway.client("sns")
        s3.create_bucket(Bucket="tested")
        arn = sns.create_topic(Name="t", Attributes=wanted)["TopicArn"]
        if gateway is ceph_gateway:
            put(s3, "tested", configured(arn, Id="a"))
        else:
            error = error_of(lambda s3=s3, arn=arn: put(s3, "tested", configured(arn, Id="a")))
            assert (error["Code"], error["Status"]) == ("InvalidArgument", 400)
            assert "connection refused" in error["Message"]
            put(s3, "tested", configured(arn, Id="a"), SkipDestinationValidation=True)
        s3.close()
        sns.close()


def test_storj_cannot_skip_it_and_has_no_other_destinations(storj_gateway: RunningGateway) -> None:
    s3 = storj_gateway.client("s3")
    s3.create_bucket(Bucket="tested")
    pubsub = configured("arn:gcp:pubsub::my-project:my-topic")
    error = error_of(lambda: put(s3, "tested", pubsub, SkipDestinationValidation=True))
    assert (error["Code"], error["Status"]) == ("InvalidArgument", 400)
    assert "x-amz-skip-destination-validation" in error["Message"]
    error = error_of(lambda: put(s3, "tested", configured("arn:aws:sns:us-east-1:000000000000:t")))
    assert (error["Code"], error["Status"]) == ("InvalidArgument", 400)
    assert "arn:gcp:pubsub::PROJECT:TOPIC" in error["Message"]
    s3.close()
