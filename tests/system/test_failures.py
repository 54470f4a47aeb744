"""Promise P1 and P3: whatever is killed, hangs or is away, nothing is lost and nobody else waits."""

import base64
import hashlib
import statistics
import time
import uuid
from collections.abc import Callable

import pytest
from botocore.exceptions import ClientError

from services.http_endpoint import HttpEndpoint, Mode
from wire import System, until

PATIENCE_SECONDS = 120


def keys_at(endpoint: HttpEndpoint) -> set[str]:
    return {event.decoded["Records"][0]["s3"]["object"]["key"] for event in endpoint.events()}


def wait_for_keys(endpoint: HttpEndpoint, keys: set[str]) -> None:
    until(
        lambda: keys <= keys_at(endpoint),
        PATIENCE_SECONDS,
        lambda: f"missing: {sorted(keys - keys_at(endpoint))[:5]}",
    )


def put(system: System, bucket: str, *keys: str) -> set[str]:
    s3 = system.client("s3")
    for key in keys:
        s3.put_object(Bucket=bucket, Key=key, Body=b"x")
    return set(keys)


def same_bytes_among_duplicates(endpoint: HttpEndpoint) -> None:
    bodies: dict[str, set[bytes]] = {}
    for event in endpoint.events():
        bodies.setdefault(event.headers["bucketwire-event-id"], set()).add(event.body)
    assert all(len(variants) == 1 for variants in bodies.values())


def test_a_pipeline_killed_between_write_and_delivery_delivers_after_its_restart(
    own_system: Callable[[], System], endpoint: HttpEndpoint
) -> None:
    system = own_system()
    system.subscribe("killed", "killed", endpoint.url)
    system.pause("pipeline")
    keys = put(system, "killed", *(f"key-{n}" for n in range(20)))
    assert endpoint.events() == []
    system.kill("pipeline")
    wait_for_keys(endpoint, keys)
    assert "pipeline stopped (killed by SIGKILL): starting it again" in system.log.read_text()
    system.wait_ready()
    same_bytes_among_duplicates(endpoint)


def test_after_kill_9_of_everything_every_acknowledged_write_is_there_and_delivered(
    own_system: Callable[[], System], endpoint: HttpEndpoint
) -> None:
    system = own_system()
    system.subscribe("power", "power", endpoint.url)
    delivered = put(system, "power", "before")
    wait_for_keys(endpoint, delivered)
    system.pause("pipeline")
    keys = put(system, "power", *(f"key-{n}" for n in range(20)))
    system.kill_everything()
    system.start()
    wait_for_keys(endpoint, keys)
    listed = system.client("s3").list_objects_v2(Bucket="power")["Contents"]
    assert {each["Key"] for each in listed} == keys | {"before"}
    same_bytes_among_duplicates(endpoint)


def test_a_gateway_that_is_killed_comes_back_with_what_it_acknowledged(
    own_system: Callable[[], System], endpoint: HttpEndpoint
) -> None:
    system = own_system()
    system.subscribe("front", "front", endpoint.url)
    keys = put(system, "front", "a", "b")
    system.kill("gateway")
    system.wait_ready()
    keys |= put(system, "front", "c")
    wait_for_keys(endpoint, keys)
    assert system.client("s3").get_object(Bucket="front", Key="a")["Body"].read() == b"x"


def test_stopping_takes_less_than_five_seconds_and_leaves_no_process(
    own_system: Callable[[], System], endpoint: HttpEndpoint
) -> None:
    system = own_system()
    system.subscribe("stop", "stop", endpoint.url)
    put(system, "stop", "a", "b", "c")
    assert system.stop() < 5  # ends by force after 3.5 s, so that a slow day does not matter
    assert "Traceback" not in system.log.read_text()
    assert "Exception" not in system.log.read_text()


def test_ready_says_so_when_the_pipeline_does_not_process(own_system: Callable[[], System]) -> None:
    system = own_system()
    system.pause("pipeline")
    until(lambda: system.get("/-/ready")[0] == 503, PATIENCE_SECONDS, lambda: "still ready")
    status, answer = system.get("/-/ready")
    assert (status, answer["ready"]) == (503, False)
    assert "pipeline" in answer["reason"]
    assert system.get("/-/live")[0] == 200
    system.resume("pipeline")
    system.wait_ready()


def test_a_topic_that_hangs_does_not_delay_another(
    system: System, endpoint: HttpEndpoint, other_endpoint: HttpEndpoint
) -> None:
    """Both topics get every write; one hangs. The median delay of the other stays under 500 ms."""
    bucket = f"neighbours-{uuid.uuid4().hex[:8]}"
    system.subscribe(bucket, f"{bucket}-hangs", endpoint.url, prefix="h")
    system.subscribe(bucket, f"{bucket}-healthy", other_endpoint.url, prefix="k")
    put(system, bucket, "h-warm", "k-warm")
    wait_for_keys(other_endpoint, {"k-warm"})
    endpoint.mode = Mode.HANG
    answered = {}
    s3 = system.client("s3")
    for number in range(40):
        s3.put_object(Bucket=bucket, Key=f"h-{number}", Body=b"x")
        s3.put_object(Bucket=bucket, Key=f"k-{number}", Body=b"x")
        answered[f"k-{number}"] = time.time_ns()
        time.sleep(0.03)
    wait_for_keys(other_endpoint, set(answered))
    delays = [
        (event.received_at_ns - answered[key]) / 1e9
        for event in other_endpoint.events()
        if (key := event.decoded["Records"][0]["s3"]["object"]["key"]) in answered
    ]
    assert statistics.median(delays) < 0.5
    endpoint.mode = Mode.OK
    wait_for_keys(endpoint, {f"h-{number}" for number in range(40)})


def test_a_topic_whose_endpoint_was_down_gets_everything_when_it_is_back(
    system: System, endpoint: HttpEndpoint
) -> None:
    bucket = f"down-{uuid.uuid4().hex[:8]}"
    arn = system.subscribe(bucket, bucket, endpoint.url)
    endpoint.mode = Mode.DOWN
    keys = put(system, bucket, *(f"key-{n}" for n in range(50)))
    until(
        lambda: f'bucketwire_parked_messages{{topic="{arn}"}} 50.0' in system.get("/-/metrics")[1],
        PATIENCE_SECONDS,
        lambda: (
            "the queue of the topic does not show in the metrics:\n" + system.get("/-/metrics")[1][-2000:]
        ),
    )
    endpoint.mode = Mode.OK
    wait_for_keys(endpoint, keys)
    same_bytes_among_duplicates(endpoint)


def test_a_broken_request_stores_nothing_and_sends_nothing(system: System, endpoint: HttpEndpoint) -> None:
    bucket = f"broken-{uuid.uuid4().hex[:8]}"
    system.subscribe(bucket, bucket, endpoint.url)
    s3 = system.client("s3")
    digest_of_other_bytes = base64.b64encode(hashlib.md5(b"y").digest()).decode()
    with pytest.raises(ClientError, match="BadDigest"):
        s3.put_object(Bucket=bucket, Key="spoilt", Body=b"x", ContentMD5=digest_of_other_bytes)
    keys = put(system, bucket, "whole")
    wait_for_keys(endpoint, keys)
    assert keys_at(endpoint) == keys
    assert s3.list_objects_v2(Bucket=bucket)["KeyCount"] == 1
