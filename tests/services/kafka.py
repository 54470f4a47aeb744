"""A real Kafka broker for tests, alone in KRaft mode, with a listener for each way to connect.

    server = kafka_server()                # started once a process, stopped at its end; skips when it cannot
    name = server.create_topic()
    ... kafka://127.0.0.1:server.proxy.port ...      plain text, through a proxy that can be made to fail
    server.received(name)

`make services` fetches the jars from Maven Central. The ports of the other listeners are in `ports`, by name:
DIRECT (plain text), SSL, MTLS (asks for a client's certificate), SASL (in plain text) and SASLSSL.
"""

import atexit
import os
import shutil
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    OffsetSpec,
    ResourcePatternType,
    ResourceType,
)

from bucketwire.pipeline.java import find_java
from services.certificates import Certificates, make_certificates
from services.ports import lasting_port
from services.proxy import Proxy

HOW_TO_GET_IT = "there is no Kafka broker here: `make services` fetches it, with Maven"
USER, PASSWORD = "alice", "pass: 100%/word"
LISTENERS = {
    "CONTROLLER": "PLAINTEXT",
    "DIRECT": "PLAINTEXT",
    "PROXIED": "PLAINTEXT",
    "SSL": "SSL",
    "MTLS": "SSL",
    "SASL": "SASL_PLAINTEXT",
    "SASLSSL": "SASL_SSL",
}
_POM = Path(__file__).parent / "kafka" / "pom.xml"
_START_SECONDS = 90.0
_WAIT_SECONDS = 30.0
_ASK_SECONDS = 5.0
_JAVA_OPTIONS = (
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
)
_SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")
_SECURITY = "org.apache.kafka.common.security"
_SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "DIRECT",
    "auto.create.topics.enable": "false",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "log.cleaner.dedupe.buffer.size": "2097152",
    "initial.broker.registration.timeout.ms": "60000",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "super.users": "User:ANONYMOUS",
}


def kafka_server() -> "KafkaServer":
    """The one of this process."""
    if not jars_folder().is_dir():
        if os.environ.get("CI") == "true":
            pytest.fail(HOW_TO_GET_IT)
        pytest.skip(HOW_TO_GET_IT)
    return _running_server()


@cache
def _running_server() -> "KafkaServer":
    server = KafkaServer.start()
    atexit.register(server.stop)
    return server


def jars_folder() -> Path:
    """Where `make services` puts the jars of the version that the pom names."""
    version = ET.parse(_POM).findtext(".//{*}kafka.version")
    cache_folder = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache_folder) / "bucketwire" / f"kafka-{version}"


@dataclass
class KafkaServer:
    folder: Path
    ports: dict[str, int]
    proxy: Proxy
    certificates: Certificates
    process: subprocess.Popen[bytes] | None = None
    _clients: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def start(cls) -> "KafkaServer":
        """Format a folder and start a broker on it; raises with the broker's log when it does not come up."""
        folder = Path(tempfile.mkdtemp(prefix="bucketwire-kafka-"))
        ports = {name: lasting_port() for name in LISTENERS}
        server = cls(
            folder, ports, Proxy(ports["PROXIED"]).start(), make_certificates(folder / "certificates")
        )
        try:
            server._start()
        except BaseException:
            server.stop()
            raise
        return server

    @property
    def admin(self) -> AdminClient:
        if "admin" not in self._clients:
            self._clients["admin"] = AdminClient(_client_settings(self.ports["DIRECT"]))
        return self._clients["admin"]

    def create_topic(self, name: str = "", partitions: int = 1, **settings: str) -> str:
        """Make a topic, with a fresh name if none is given; it is ready when this returns."""
        name = name or f"topic-{uuid.uuid4().hex}"
        self.create_topics([name], partitions, **settings)
        return name

    def create_topics(self, names: Sequence[str], partitions: int = 1, **settings: str) -> None:
        """Make many at once."""
        dotted = {key.replace("_", "."): value for key, value in settings.items()}
        topics = [NewTopic(name, partitions, 1, config=dotted) for name in names]
        for made in self.admin.create_topics(topics).values():
            made.result(_WAIT_SECONDS)
        self._wait_for_leaders(
            [TopicPartition(name, number) for name in names for number in range(partitions)]
        )

    def limit_topic(self, name: str, size_bytes: int) -> None:
        """Refuse larger batches from now on. Messages without headers are sent until one is refused."""
        limit = ConfigEntry("max.message.bytes", str(size_bytes), incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=[limit])
        for changed in self.admin.incremental_alter_configs([resource]).values():
            changed.result(_WAIT_SECONDS)
        until = time.monotonic() + _WAIT_SECONDS
        while not self._refuses(name, b"x" * (size_bytes + 1)):
            assert time.monotonic() < until, f"{name} takes everything:\n{self.log()}"

    def size_bytes(self, name: str) -> int:
        """What the first partition of the topic takes on disk."""
        return sum(file.stat().st_size for file in (self.folder / "log" / f"{name}-0").glob("*.log"))

    def allow_only(self, name: str, principal: str) -> None:
        """Nobody else may write to the topic, and everybody may see it."""
        allowed = [(principal, AclOperation.WRITE), ("User:*", AclOperation.DESCRIBE)]
        entries = [
            AclBinding(
                ResourceType.TOPIC, name, ResourcePatternType.LITERAL, who, "*", what, AclPermissionType.ALLOW
            )
            for who, what in allowed
        ]
        for made in self.admin.create_acls(entries).values():
            made.result(_WAIT_SECONDS)

    def received(self, name: str) -> list[Message]:
        """All messages that the topic holds now, partition by partition."""
        return read_topic(self.ports["DIRECT"], name)

    def stop(self) -> None:
        """End it and forget what it held."""
        self.proxy.stop()
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def log(self) -> str:
        """The end of what the broker has said."""
        return (self.folder / "broker.log").read_text(errors="replace")[-4000:]

    def _refuses(self, name: str, body: bytes) -> bool:
        producer = Producer(_client_settings(self.ports["DIRECT"]))
        errors: list[KafkaError | None] = []
        producer.produce(name, body, on_delivery=lambda error, _: errors.append(error))
        producer.flush(_WAIT_SECONDS)
        return bool(errors) and errors[0] is not None

    def _wait_for_leaders(self, places: Sequence[TopicPartition]) -> None:
        """Until each partition answers: without acknowledgements, what comes earlier is lost."""
        until = time.monotonic() + _WAIT_SECONDS
        waiting = set(places)
        while waiting:
            assert time.monotonic() < until, f"no leader for {waiting}:\n{self.log()}"
            for name in {place.topic for place in waiting}:
                self.admin.list_topics(name, _WAIT_SECONDS)  # or it would ask whom it took for the leader
            asked = self.admin.list_offsets(
                {place: OffsetSpec.latest() for place in waiting}, request_timeout=_ASK_SECONDS
            )
            waiting = {place for place, answer in asked.items() if answer.exception(_WAIT_SECONDS)}

    def _start(self) -> None:
        settings = self.folder / "server.properties"
        settings.write_text("".join(f"{key}={value}\n" for key, value in self._settings().items()))
        scram = [f"--add-scram={each}=[name={USER},password={PASSWORD}]" for each in _SCRAM]
        cluster = "Mk3OEYBSRtadGUnGJqNsAA"
        with (self.folder / "broker.log").open("wb") as log:
            format_it = self._java(
                "kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(settings), *scram
            )
            done = subprocess.run(format_it, stdout=log, stderr=log, timeout=_START_SECONDS, check=False)
            if done.returncode:
                raise RuntimeError(f"the broker's folder could not be formatted:\n{self.log()}")
            self.process = subprocess.Popen(self._java("kafka.Kafka", str(settings)), stdout=log, stderr=log)
        self._wait_until_up()

    def _wait_until_up(self) -> None:
        assert self.process is not None
        until = time.monotonic() + _START_SECONDS
        while time.monotonic() < until and self.process.poll() is None:
            try:
                self.admin.list_topics(timeout=1)
            except KafkaException:
                continue
            return
        raise RuntimeError(f"the Kafka broker did not start:\n{self.log()}")

    def _java(self, *arguments: str) -> list[str]:
        return [str(find_java(os.environ)), *_JAVA_OPTIONS, "-cp", f"{jars_folder()}/*", *arguments]

    def _settings(self) -> dict[str, str]:
        reached = {**self.ports, "PROXIED": self.proxy.port}
        return {
            **_SETTINGS,
            "log.dirs": str(self.folder / "log"),
            "controller.quorum.voters": f"1@127.0.0.1:{self.ports['CONTROLLER']}",
            "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in self.ports.items()),
            "advertised.listeners": ",".join(
                f"{name}://127.0.0.1:{port}" for name, port in reached.items() if name != "CONTROLLER"
            ),
            "listener.security.protocol.map": ",".join(f"{name}:{kind}" for name, kind in LISTENERS.items()),
            **self._tls_settings(),
            **_sasl_settings("sasl"),
            **_sasl_settings("saslssl"),
        }

    def _tls_settings(self) -> dict[str, str]:
        pem = self.folder / "certificates" / "server-with-key.pem"
        pem.write_bytes(
            self.certificates.server_key.read_bytes() + self.certificates.server_cert.read_bytes()
        )
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(pem),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.certificates.ca),
            "listener.name.mtls.ssl.client.auth": "required",
        }


def read_topic(port: int, name: str) -> list[Message]:
    """All messages that a topic of the broker at that port holds now, partition by partition."""
    consumer = Consumer({**_client_settings(port), "group.id": "tests", "enable.auto.commit": False})
    try:
        partitions = consumer.list_topics(name, _WAIT_SECONDS).topics[name].partitions
        return [each for number in partitions for each in _read(consumer, name, number)]
    finally:
        consumer.close()


def _client_settings(port: int) -> dict[str, Any]:
    return {"bootstrap.servers": f"127.0.0.1:{port}", "log_level": 0}


def _sasl_settings(listener: str) -> dict[str, str]:
    quoted = PASSWORD.replace('"', '\\"')
    logins = {
        "plain": f'{_SECURITY}.plain.PlainLoginModule required user_{USER}="{quoted}";',
        "scram-sha-256": f"{_SECURITY}.scram.ScramLoginModule required;",
        "scram-sha-512": f"{_SECURITY}.scram.ScramLoginModule required;",
        "oauthbearer": (
            f'{_SECURITY}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";'
        ),
    }
    prefix = f"listener.name.{listener}"
    mechanisms = ",".join(name.upper() for name in logins)
    return {
        f"{prefix}.sasl.enabled.mechanisms": mechanisms,
        **{f"{prefix}.{name}.sasl.jaas.config": login for name, login in logins.items()},
    }


def _read(consumer: Consumer, name: str, partition: int) -> Iterator[Message]:
    place = TopicPartition(name, partition)
    first, end = consumer.get_watermark_offsets(place, _WAIT_SECONDS)
    if first == end:
        return
    consumer.assign([TopicPartition(name, partition, first)])
    until = time.monotonic() + _WAIT_SECONDS
    while first < end:
        assert time.monotonic() < until, f"{name} has more than could be read"
        each = consumer.poll(1.0)
        if each is None:
            continue
        if (error := each.error()) is not None:
            raise KafkaException(error)
        first = (each.offset() or 0) + 1
        yield each
