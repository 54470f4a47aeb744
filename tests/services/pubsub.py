"""Google's own emulator of Pub/Sub for tests, on a free loopback port, with a gate before it.

    emulator = pubsub_emulator()             the one of this test session; skips the test where there is none
    topic = emulator.create_topic()          a fresh topic with a subscription, which `pull` empties
    emulator.pull(topic)

    with PubsubGate(emulator.port) as gate:  a gRPC server that passes requests to publish on
        gate.refuses = lambda request: Refusal(StatusCode.PERMISSION_DENIED)

The emulator never lacks permission or quota; the gate gives the statuses that it cannot.
"""

import atexit
import functools
import itertools
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn, Self

import grpc
import pytest
from google.pubsub_v1.services.publisher.transports import PublisherGrpcTransport
from google.pubsub_v1.services.subscriber.transports import SubscriberGrpcTransport
from google.pubsub_v1.types import AcknowledgeRequest as Acknowledge
from google.pubsub_v1.types import PublishRequest, PubsubMessage, PullRequest, PushConfig, Subscription, Topic

from services.ports import lasting_port

HOW_TO_GET_IT = (
    "there is no Pub/Sub emulator here: `make services` or `gcloud components install pubsub-emulator`"
)
PROJECT = "bucketwire-tests"
START_SECONDS = 90.0
CALL_SECONDS = 30.0
PUBLISH = "/google.pubsub.v1.Publisher/Publish"
_UNLIMITED = [
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
    ("grpc.enable_http_proxy", 0),
]


@functools.cache
def pubsub_emulator() -> "PubsubEmulator":
    """The emulator of this test session, started on first use."""
    program = find_program()
    if program is None:
        if os.environ.get("CI") == "true":
            pytest.fail(HOW_TO_GET_IT)
        pytest.skip(HOW_TO_GET_IT)
    emulator = PubsubEmulator.start(program)
    atexit.register(emulator.stop)
    return emulator


@functools.cache
def find_program() -> Path | None:
    """The emulator, where gcloud keeps its components."""
    gcloud = shutil.which("gcloud")
    if gcloud is None:
        return None
    question = [gcloud, "info", "--format=value(installation.sdk_root)"]
    asked = subprocess.run(question, capture_output=True, text=True, timeout=60, check=False)
    program = Path(asked.stdout.strip()) / "platform/pubsub-emulator/bin/cloud-pubsub-emulator"
    return program if program.exists() else None


@dataclass
class PubsubEmulator:
    process: subprocess.Popen[bytes]
    folder: Path
    port: int
    numbers: Any = field(default_factory=lambda: itertools.count(1))

    @classmethod
    def start(cls, program: Path) -> "PubsubEmulator":
        """Start it and wait until it answers."""
        folder, port = Path(tempfile.mkdtemp(prefix="bucketwire-pubsub-")), lasting_port()
        with (folder / "emulator.log").open("wb") as log:
            process = subprocess.Popen(
                [str(program), "--host=127.0.0.1", f"--port={port}"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**os.environ, "JAVA_OPTS": "-Xmx512m -XX:+UseSerialGC"},
            )
        emulator = cls(process, folder, port)
        emulator._wait_ready()
        return emulator

    @property
    def host(self) -> str:
        """What PUBSUB_EMULATOR_HOST would say."""
        return f"127.0.0.1:{self.port}"

    @functools.cached_property
    def channel(self) -> Any:
        return grpc.insecure_channel(self.host, _UNLIMITED)

    @functools.cached_property
    def topics(self) -> Any:
        return PublisherGrpcTransport(channel=self.channel)

    @functools.cached_property
    def subscriptions(self) -> Any:
        return SubscriberGrpcTransport(channel=self.channel)

    def create_topic(self, name: str = "", *, ordered: bool = False, push_to: str = "") -> str:
        """The name of a new topic, with a subscription that is pulled, or pushed to a URL."""
        name = name or f"topic-{next(self.numbers)}"
        path = f"projects/{PROJECT}/topics/{name}"
        self.topics.create_topic(Topic(name=path), timeout=CALL_SECONDS)
        subscription = Subscription(
            name=_subscription(name),
            topic=path,
            ack_deadline_seconds=600,
            enable_message_ordering=ordered,
            push_config=PushConfig(push_endpoint=push_to),
        )
        self.subscriptions.create_subscription(subscription, timeout=CALL_SECONDS)
        return name

    def pull(self, topic: str) -> list[PubsubMessage]:
        """What has come since the last time, in order of arrival."""
        found: list[PubsubMessage] = []
        while pulled := self._pull_some(topic):
            found += pulled
        return found

    def stop(self) -> None:
        """End it, with the Java that its script has become."""
        self.channel.close()
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(30)
        shutil.rmtree(self.folder)

    def _pull_some(self, topic: str) -> list[PubsubMessage]:
        subscription = _subscription(topic)
        wanted = PullRequest.pb()(subscription=subscription, max_messages=1000, return_immediately=True)
        received = self.subscriptions.pull(wanted, timeout=CALL_SECONDS).received_messages
        if received:
            ids = [each.ack_id for each in received]
            self.subscriptions.acknowledge(
                Acknowledge(subscription=subscription, ack_ids=ids), timeout=CALL_SECONDS
            )
        return [each.message for each in received]

    def _wait_ready(self) -> None:
        ready, ends = grpc.channel_ready_future(self.channel), time.monotonic() + START_SECONDS
        while self.process.poll() is None and time.monotonic() < ends:
            with suppress(grpc.FutureTimeoutError):
                return ready.result(1)
        log = (self.folder / "emulator.log").read_text()[-4000:]
        self.stop()
        pytest.fail(f"the Pub/Sub emulator does not start:\n{log}")


def _subscription(topic: str) -> str:
    return f"projects/{PROJECT}/subscriptions/{topic}"


@dataclass(frozen=True, slots=True)
class Refusal:
    """A status to answer with, and what goes with it."""

    code: grpc.StatusCode
    details: str = "refused by the gate"
    trailing_metadata: tuple[tuple[str, bytes], ...] = ()


class PubsubGate:
    """Passes requests to publish on to the emulator, but for those that `refuses` has a refusal for."""

    def __init__(self, target_port: int, credentials: Any = None) -> None:
        self.refuses: Callable[[Any], Refusal | None] = lambda _: None
        self.requests: list[Any] = []
        """All that came, in order of arrival."""
        self.metadata: list[dict[str, Any]] = []
        self._emulator = grpc.insecure_channel(f"127.0.0.1:{target_port}", _UNLIMITED)
        self._forward = self._emulator.unary_unary(PUBLISH)
        self._server = grpc.server(ThreadPoolExecutor(16), options=_UNLIMITED)
        self._server.add_generic_rpc_handlers(
            (
                grpc.method_handlers_generic_handler(
                    "google.pubsub.v1.Publisher",
                    {"Publish": grpc.unary_unary_rpc_method_handler(self._publish)},
                ),
            )
        )
        if credentials is None:
            self.port: int = self._server.add_insecure_port("127.0.0.1:0")
        else:
            self.port = self._server.add_secure_port("127.0.0.1:0", credentials)

    def start(self) -> Self:
        self._server.start()
        return self

    def stop(self) -> None:
        self._server.stop(grace=None).wait(CALL_SECONDS)
        self._emulator.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _publish(self, body: bytes, context: Any) -> bytes:
        request = PublishRequest.pb().FromString(body)
        self.requests.append(request)
        self.metadata.append(dict(context.invocation_metadata()))
        refusal = self.refuses(request)
        if refusal is not None:
            context.set_trailing_metadata(refusal.trailing_metadata)
            context.abort(refusal.code, refusal.details)
        try:
            answer: bytes = self._forward(body, timeout=CALL_SECONDS)
        except grpc.RpcError as error:
            _pass_on(error, context)
        return answer


def _pass_on(error: Any, context: Any) -> NoReturn:
    context.abort(error.code(), error.details())
    raise AssertionError("abort raises")
