"""Promise P1 through an upgrade: schema and processes change under load, and no acknowledged write is lost.

The version that is installed is the old one. The new one is a copy of it that knows one more migration,
which adds a column to every table.
"""

import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import pytest
from botocore.exceptions import BotoCoreError, ClientError

import bucketwire
from bucketwire.access.credentials import root_credentials
from services.http_endpoint import HttpEndpoint
from services.postgres import PostgresServer
from wire import ACCESS_KEY, REGION, SECRET_KEY, System, until

PATIENCE_SECONDS = 120
BUCKET = "upgraded"
TABLES = {
    "metabase": ("buckets", "objects", "uploads", "parts", "users", "keys", "rules", "topics", "changes"),
    "queue": ("cursors", "parked", "health", "dead_letters", "counts", "leases"),
}


def added_columns(tables: Sequence[str]) -> str:
    return "".join(f"ALTER TABLE {table} ADD COLUMN next text NOT NULL DEFAULT 'new';\n" for table in tables)


@pytest.fixture
def new_version(tmp_path: Path) -> dict[str, str]:
    """The environment in which `bucketwire` is the new version."""
    folder = tmp_path / "new"
    package = folder / "bucketwire"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(bucketwire.__file__).parent, package, ignore=ignored)
    for schema, tables in TABLES.items():
        added = package / "metabase/sqlite/migrations" / schema / "9999_next.sql"
        added.write_text(added_columns(tables))
    every_table = itertools.chain(*TABLES.values())
    (package / "metabase/postgres/migrations/9999_next.sql").write_text(added_columns(list(every_table)))
    return {"PYTHONPATH": str(folder)}


def migrate(metabase: str, version: Mapping[str, str]) -> dict[str, dict[str, int]]:
    """`bucketwire migrate` of a version: from which schema to which."""
    command = [sys.executable, "-m", "bucketwire", "migrate", "--json", "--metabase", metabase]
    done = subprocess.run(command, env={**os.environ, **version}, check=True, capture_output=True)
    found: dict[str, dict[str, int]] = json.loads(done.stdout)
    return found


@dataclass
class Part:
    """A gateway or a pipeline that runs by itself, in one version or the other."""

    folder: Path
    arguments: Sequence[str]
    process: subprocess.Popen[bytes] | None = None

    def start(self, version: Mapping[str, str]) -> None:
        command = [sys.executable, "-m", "bucketwire", *self.arguments, "--data", str(self.folder / "data")]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command,
                env={**os.environ, **version},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def end(self, number: signal.Signals = signal.SIGTERM) -> None:
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait(60)
            with suppress(ProcessLookupError):  # all of its children have ended with it
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process = None

    @property
    def log(self) -> Path:
        return self.folder / f"{self.arguments[0]}.log"


@dataclass
class Writers:
    """Threads that write all the time, each to the first gateway that takes it; what was acknowledged."""

    gateways: Sequence[System]
    acknowledged: set[str] = field(default_factory=set)
    refused: list[str] = field(default_factory=list)
    _ended: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def __enter__(self) -> Self:
        self._threads = [threading.Thread(target=self._write, args=(each,)) for each in range(3)]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join(PATIENCE_SECONDS)

    def go_on(self, count: int = 30) -> None:
        """Wait until so many more writes are acknowledged."""
        wanted = len(self.acknowledged) + count
        until(
            lambda: len(self.acknowledged) >= wanted,
            PATIENCE_SECONDS,
            lambda: f"writes are not accepted any more: {self.refused[-3:]}",
        )

    def _write(self, number: int) -> None:
        clients = [gateway.client("s3") for gateway in self.gateways]
        clients = clients[number % len(clients) :] + clients[: number % len(clients)]
        for count in itertools.count():
            key = f"{number}-{count}"
            for client in itertools.cycle(clients):
                if self._ended.wait(0.01):
                    return
                try:
                    client.put_object(Bucket=BUCKET, Key=key, Body=key.encode())
                except (BotoCoreError, ClientError) as error:
                    self.refused.append(str(error))
                    continue
                self.acknowledged.add(key)
                break


def each_arrives_with_the_same_bytes(endpoint: HttpEndpoint, keys: set[str]) -> None:
    def arrived() -> set[str]:
        return {event.decoded["Records"][0]["s3"]["object"]["key"] for event in endpoint.events()}

    until(lambda: keys <= arrived(), PATIENCE_SECONDS, lambda: f"lost: {sorted(keys - arrived())[:5]}")
    bodies: dict[str, set[bytes]] = {}
    for event in endpoint.events():
        bodies.setdefault(event.headers["bucketwire-event-id"], set()).add(event.body)
    assert all(len(variants) == 1 for variants in bodies.values())


@pytest.fixture
def part(tmp_path: Path) -> Iterator[Callable[..., Part]]:
    """Makes parts; those that still run at the end are ended."""
    made: list[Part] = []

    def make(*arguments: str) -> Part:
        made.append(Part(tmp_path, arguments))
        return made[-1]

    yield make
    for each in made:
        each.end()


def wait_live(gateway: System) -> None:
    log = gateway.folder / "gateway.log"
    until(
        lambda: gateway.get("/-/live")[0] == 200,
        PATIENCE_SECONDS,
        lambda: f"the gateway does not start: {log.read_text()[-2000:]}",
    )


def test_gateways_and_pipeline_are_upgraded_one_after_the_other_while_writes_go_on(
    tmp_path: Path,
    postgres_server: PostgresServer,
    new_version: dict[str, str],
    part: Callable[..., Part],
    endpoint: HttpEndpoint,
) -> None:
    url, old_version = postgres_server.create_database(), dict[str, str]()
    (tmp_path / "data").mkdir()
    root_credentials(tmp_path / "data", ACCESS_KEY, SECRET_KEY)
    systems = [System(tmp_path), System(tmp_path)]
    where = ("--metabase", url)
    gateways = [part("gateway", "--port", str(each.port), "--region", REGION, *where) for each in systems]
    pipeline = part("pipeline", *where)
    for each in (*gateways, pipeline):
        each.start(old_version)
    for each in systems:
        wait_live(each)
    systems[0].wait_ready()
    systems[0].subscribe(BUCKET, BUCKET, endpoint.url)
    with Writers(systems) as writers:
        writers.go_on()
        migrated = migrate(url, new_version)["metabase"]
        assert migrated["to"] == migrated["from"] + 1
        writers.go_on()
        assert writers.refused == [], "a migration makes no write fail"
        # what dies in the middle of an upgrade is started again in the old version
        for system, gateway, version in (
            (systems[1], gateways[1], old_version),
            (systems[1], gateways[1], new_version),
            (systems[0], gateways[0], new_version),
        ):
            gateway.end(signal.SIGTERM if version else signal.SIGKILL)
            writers.go_on()
            gateway.start(version)
            wait_live(system)
            writers.go_on()
        pipeline.end()
        pipeline.start(new_version)
        writers.go_on()
    each_arrives_with_the_same_bytes(endpoint, writers.acknowledged)
    systems[0].wait_ready()


def test_one_machine_is_upgraded_while_writes_go_on(
    tmp_path: Path,
    own_system: Callable[[], System],
    new_version: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    endpoint: HttpEndpoint,
) -> None:
    system = own_system()
    system.subscribe(BUCKET, BUCKET, endpoint.url)
    with Writers([system]) as writers:
        writers.go_on()
        migrated = migrate(f"sqlite:///{tmp_path}/data/metabase.db", new_version)
        assert {each["to"] - each["from"] for each in migrated.values()} == {1}
        writers.go_on()
        assert writers.refused == [], "a migration makes no write fail"
        system.kill("gateway")  # the old version starts on the new schema
        system.kill("pipeline")
        writers.go_on()
        each_arrives_with_the_same_bytes(endpoint, set(writers.acknowledged))
        system.stop()
        monkeypatch.setenv("PYTHONPATH", new_version["PYTHONPATH"])
        system.start()
        writers.go_on()
    each_arrives_with_the_same_bytes(endpoint, writers.acknowledged)
