"""Everything that runs: the system, its destinations, its metabase, and the proxies between them.

`World` starts all of it and leaves nothing behind, however the run ends.
"""

import shutil
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import boto3
from botocore.config import Config

from bucketwire.cli.options import metabase_url
from chaos.brokers import BROKERS, Destination, HttpDestination
from chaos.history import Edit, History, event_from_message
from chaos.plan import Kind, Rule, Schedule, Versioning
from chaos.schedule import PLACES
from services.postgres import PostgresServer
from services.proxy import Proxy
from wire import ACCESS_KEY, REGION, SECRET_KEY, START_SECONDS, System, until

HTTP_TOPICS = 6
BROKER_TOPICS = 2
ANSWER_SECONDS = 30
"""Longer than any fault, so that a request is given up only when its connection is."""
COLLECT_SECONDS = 0.1


def topic_names(brokers: Sequence[str]) -> list[str]:
    """All topics of a run with those brokers."""
    return [f"http-{number}" for number in range(HTTP_TOPICS)] + [
        f"{broker}-{number}" for broker in brokers for number in range(BROKER_TOPICS)
    ]


def possible_kinds(brokers: Sequence[str], metabase: str) -> list[Kind]:
    """The faults that can be brought about there."""
    missing = set() if brokers else {Kind.BROKER_AWAY}
    if not {"amqp", "kafka"} & set(brokers):
        missing.add(Kind.BROKER_RESTART)
    if metabase != "postgres":
        missing.add(Kind.DATABASE_RESTART)
    return [kind for kind in Kind if kind not in missing]


class World:
    """Use it as a context manager; `prepare` makes buckets, topics and rules."""

    def __init__(self, brokers: Sequence[str], metabase: str, *, standby: bool) -> None:
        self._stack = ExitStack()
        self._brokers = brokers
        self._metabase = metabase
        self._standby = standby
        self.folder = Path(tempfile.mkdtemp(prefix="bucketwire-chaos-"))
        self.postgres: PostgresServer | None = None
        self.arns: dict[str, str] = {}
        self.running = False
        """Whether the system should run: not between the kill of everything and the new start."""
        self.cold_starts: list[float] = []
        """How many seconds each new start took, after everything was killed, until the system was ready."""

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._stack.close()
        if kind is KeyboardInterrupt:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _start(self) -> None:
        topics = topic_names(self._brokers)
        self.http = HttpDestination(self._stack, topics[:HTTP_TOPICS], PLACES)
        self.brokers: list[Destination] = [
            BROKERS[name](self._stack, [topic for topic in topics if topic.startswith(name)])
            for name in self._brokers
        ]
        url = self._start_postgres() if self._metabase == "postgres" else None
        self.data = self.folder / "data"
        self.metabase_url = metabase_url(url, self.data)
        self.system = System(self.folder, metabase=url, standby=self._standby)
        self._stack.callback(self._stop_system)
        self.system.start()
        self.running = True
        if self._standby:
            self._wait_for_standby()
        self.clients = self._stack.enter_context(Proxy(self.system.port))

    def _start_postgres(self) -> str:
        self.postgres = PostgresServer.start()
        self._stack.callback(self.postgres.stop)
        return self.postgres.create_database()

    def _wait_for_standby(self) -> None:
        log = self.system.log
        until(lambda: "pipeline_stands_by" in log.read_text(), START_SECONDS, lambda: "nobody stands by")

    def kill(self) -> None:
        """Kill everything."""
        self.running = False
        self.system.kill_everything()

    def start(self) -> None:
        """Start the system again; returns when it is ready."""
        began = time.monotonic()
        self.system.launch()
        self.running = True
        self.system.wait_ready()
        self.cold_starts.append(time.monotonic() - began)

    def _stop_system(self) -> None:
        try:
            self.system.__exit__()
        except BaseException:
            self.system.kill_everything()
            raise

    def destination(self, topic: str) -> Destination:
        """Where the topic leads."""
        kind = topic.partition("-")[0]
        return self.http if kind == "http" else self.brokers[self._brokers.index(kind)]

    @property
    def destinations(self) -> list[Destination]:
        """All of them."""
        return [self.http, *self.brokers]

    @property
    def ways(self) -> list[Proxy]:
        """The proxies before all destinations."""
        return [way for destination in self.destinations for way in destination.ways]

    def client(self, service: str, *, through_proxy: bool = False) -> Any:
        """A boto3 client that tries once: what is unknown stays unknown."""
        port = self.clients.port if through_proxy else self.system.port
        return boto3.client(
            service,
            endpoint_url=f"http://127.0.0.1:{port}",
            region_name=REGION,
            aws_access_key_id=ACCESS_KEY,
            aws_secret_access_key=SECRET_KEY,
            config=Config(
                retries={"max_attempts": 0},
                s3={"addressing_style": "path"},
                connect_timeout=ANSWER_SECONDS,
                read_timeout=ANSWER_SECONDS,
            ),
        )

    def prepare(self, schedule: Schedule, history: History) -> None:
        """Make the topics and the buckets with the rules they start with."""
        s3, sns = self.client("s3"), self.client("sns")
        for topic in schedule.topics:
            attributes = {"persistent": "true", **self.destination(topic).attributes(topic)}
            self.arns[topic] = sns.create_topic(Name=topic, Attributes=attributes)["TopicArn"]
        for bucket in schedule.buckets:
            s3.create_bucket(Bucket=bucket.name)
            for status in _STATUSES[bucket.versioning]:
                s3.put_bucket_versioning(Bucket=bucket.name, VersioningConfiguration={"Status": status})
            self.store_rules(s3, bucket.name, bucket.rules)
            history.edits.append(Edit(bucket.name, bucket.rules, 0.0, 0.0))

    def store_rules(self, s3: Any, bucket: str, rules: Sequence[Rule]) -> None:
        """Put the rules in the place of those the bucket has."""
        s3.put_bucket_notification_configuration(
            Bucket=bucket,
            NotificationConfiguration={"TopicConfigurations": [self._configuration(rule) for rule in rules]},
            SkipDestinationValidation=True,
        )

    def _configuration(self, rule: Rule) -> dict[str, Any]:
        ends = {"prefix": rule.prefix, "suffix": rule.suffix}
        filters = [{"Name": name, "Value": value} for name, value in ends.items() if value]
        written = {"Id": rule.id, "TopicArn": self.arns[rule.topic], "Events": list(rule.events)}
        return written | ({"Filter": {"Key": {"FilterRules": filters}}} if filters else {})

    def collect(self, history: History, stop: threading.Event) -> None:
        """Bring what destinations take into the history, until told to stop."""
        while not stop.wait(COLLECT_SECONDS):
            for destination in self.destinations:
                for topic, event_id, body, received_at in destination.take():
                    try:
                        history.events.append(event_from_message(topic, event_id, body, received_at))
                    except ValueError:
                        history.strange.append(f"{topic}: {body[:200]!r}")

    def gauge(self, name: str) -> float | None:
        """The sum over all labels of what the gateway's metrics page says; None when it is away."""
        status, page = self.system.get("/-/metrics")
        if status != 200:
            return None
        lines = [line for line in page.splitlines() if line.startswith((f"{name} ", f"{name}{{"))]
        return sum(float(line.rpartition(" ")[2]) for line in lines)


_STATUSES = {
    Versioning.NONE: (),
    Versioning.ENABLED: ("Enabled",),
    Versioning.SUSPENDED: ("Enabled", "Suspended"),
}
