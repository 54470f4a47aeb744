"""Events by way of Google Pub/Sub: from a PUT to the HTTP endpoint of a push subscription on the emulator."""

import base64
import json
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from services.http_endpoint import HttpEndpoint
from services.pubsub import PROJECT, PubsubEmulator, pubsub_emulator
from wire import System, until

PATIENCE_SECONDS = 60


@pytest.fixture(scope="module")
def emulator() -> PubsubEmulator:
    return pubsub_emulator()


@pytest.fixture(scope="module", params=["aws", "storj"])
def system(
    request: pytest.FixtureRequest, emulator: PubsubEmulator, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[System]:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PUBSUB_EMULATOR_HOST", emulator.host)
        running = System(tmp_path_factory.mktemp("pubsub"), dialect=request.param)
        try:
            yield running.start()
        finally:
            running.__exit__()


def watch(system: System, topic_arn: str, *, validated: bool = True) -> str:
    """The name of a bucket whose new objects are told to the topic."""
    bucket, s3 = f"pubsub-{uuid.uuid4().hex[:8]}", system.client("s3")
    s3.create_bucket(Bucket=bucket)
    rule = {"Id": "to-pubsub", "TopicArn": topic_arn, "Events": ["s3:ObjectCreated:*"]}
    s3.put_bucket_notification_configuration(
        Bucket=bucket,
        NotificationConfiguration={"TopicConfigurations": [rule]},
        SkipDestinationValidation=not validated,
    )
    return bucket


def pushed_about(system: System, endpoint: HttpEndpoint, key: str) -> dict[str, Any]:
    """The message that the subscription has pushed about the object."""

    def found() -> list[dict[str, Any]]:
        messages = [event.decoded["message"] for event in endpoint.events()]
        return [each for each in messages if each["attributes"].get("bucketwire-key") == key]

    until(
        lambda: bool(found()),
        PATIENCE_SECONDS,
        lambda: f"nothing about {key} came:\n{system.log.read_text()[-4000:]}",
    )
    return found()[0]


def record_in(message: dict[str, Any]) -> dict[str, Any]:
    (record,) = json.loads(base64.b64decode(message["data"]))["Records"]
    return dict(record)


def test_a_put_reaches_the_endpoint_of_a_push_subscription(
    system: System, emulator: PubsubEmulator, endpoint: HttpEndpoint
) -> None:
    topic = emulator.create_topic(push_to=endpoint.url)
    bucket = watch(system, f"arn:gcp:pubsub::{PROJECT}:{topic}")
    system.client("s3").put_object(Bucket=bucket, Key="folder/ä b.txt", Body=b"hello")
    message = pushed_about(system, endpoint, "folder/ä b.txt")
    record = record_in(message)
    assert (record["eventName"], record["s3"]["bucket"]["name"]) == ("ObjectCreated:Put", bucket)
    assert record["s3"]["object"]["size"] == 5
    assert message["attributes"]["content-type"] == "application/json"
    assert message["attributes"]["bucketwire-event-id"]


def test_the_test_event_arrives_before_any_other(
    system: System, emulator: PubsubEmulator, endpoint: HttpEndpoint
) -> None:
    topic = emulator.create_topic(push_to=endpoint.url)
    bucket = watch(system, f"arn:gcp:pubsub::{PROJECT}:{topic}")
    (event,) = endpoint.wait_for(1, PATIENCE_SECONDS)
    body = json.loads(base64.b64decode(event.decoded["message"]["data"]))
    assert (body["Event"], body["Bucket"]) == ("s3:TestEvent", bucket)


@pytest.mark.parametrize("system", ["aws"], indirect=True)
def test_a_topic_of_ours_may_lead_to_pubsub_and_be_mended_later(
    system: System, emulator: PubsubEmulator, endpoint: HttpEndpoint
) -> None:
    name = f"late-{uuid.uuid4().hex[:8]}"
    attributes = {"push-endpoint": f"pubsub://{PROJECT}/{name}", "persistent": "true"}
    arn = system.client("sns").create_topic(Name=name, Attributes=attributes)["TopicArn"]
    bucket = watch(system, arn, validated=False)
    system.client("s3").put_object(Bucket=bucket, Key="early.txt", Body=b"hello")
    parked = f'bucketwire_parked_messages{{topic="{arn}"}} 1.0'
    until(lambda: parked in system.get("/-/metrics")[1], PATIENCE_SECONDS, lambda: "nothing was parked")
    emulator.create_topic(name, push_to=endpoint.url)
    assert record_in(pushed_about(system, endpoint, "early.txt"))["s3"]["object"]["key"] == "early.txt"
