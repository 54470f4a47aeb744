"""The whole system as users run it: `bucketwire up` on free ports and a folder of its own.

with System(folder) as system:
    s3 = system.client("s3")
    system.pause("pipeline"); ...; system.kill("pipeline")
"""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Self

import boto3
from botocore.config import Config

from services.ports import lasting_port

ACCESS_KEY = "system-tests"
SECRET_KEY = "not a real secret"
REGION = "us-east-1"
START_SECONDS = 120.0
"""Far above what a start takes: a slow day is no failure."""
PROGRAM = Path(sys.executable).with_name("bucketwire")


class System:
    """A running `bucketwire up`."""

    def __init__(
        self,
        folder: Path,
        dialect: str = "aws",
        port: int | None = None,
        metabase: str | None = None,
        *,
        standby: bool = False,
    ) -> None:
        self.folder = folder
        self.port = port or lasting_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._dialect = dialect
        self._more = {"BUCKETWIRE_METABASE": metabase} if metabase else {}
        if standby:
            self._more["BUCKETWIRE_STANDBY"] = "true"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> Self:
        """Start, and wait until it is ready."""
        self.launch()
        self.wait_ready()
        return self

    def launch(self) -> None:
        """Start, and do not wait."""
        environment = {
            **os.environ,
            "BUCKETWIRE_PORT": str(self.port),
            "BUCKETWIRE_DATA": str(self.folder / "data"),
            "BUCKETWIRE_DIALECT": self._dialect,
            "BUCKETWIRE_REGION": REGION,
            "BUCKETWIRE_ROOT_ACCESS_KEY": ACCESS_KEY,
            "BUCKETWIRE_ROOT_SECRET_KEY": SECRET_KEY,
            **self._more,
        }
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [PROGRAM, "up"],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def log(self) -> Path:
        """What the system has said."""
        return self.folder / "up.log"

    @property
    def supervisor(self) -> int:
        """The process that `bucketwire up` is."""
        assert self._process is not None
        return self._process.pid

    def wait_ready(self) -> None:
        """Wait until writes are accepted and the pipeline is processing."""
        until(
            lambda: self.get("/-/ready")[0] == 200,
            START_SECONDS,
            lambda: f"not ready: {self.get('/-/ready')}\n{self.log.read_text()[-4000:]}",
        )

    def get(self, path: str) -> tuple[int, Any]:
        """Status and JSON (or text) of one of the gateway's own pages; (0, reason) when it is away."""
        try:
            with urllib.request.urlopen(self.url + path, timeout=10) as answer:
                return answer.status, _decoded(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, _decoded(error.read())
        except OSError as error:
            return 0, str(error)

    def client(self, service: str) -> Any:
        """A boto3 client."""
        return boto3.client(
            service,
            endpoint_url=self.url,
            region_name=REGION,
            aws_access_key_id=ACCESS_KEY,
            aws_secret_access_key=SECRET_KEY,
            config=Config(retries={"max_attempts": 0}, s3={"addressing_style": "path"}),
        )

    def environment(self) -> dict[str, str]:
        """The environment for AWS command line tools."""
        return {
            **os.environ,
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_ENDPOINT_URL": self.url,
            "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}",
        }

    def subscribe(
        self, bucket: str, topic: str, endpoint: str, *, prefix: str = "", events: str = "s3:ObjectCreated:*"
    ) -> str:
        """Make the bucket (if need be) and a topic, and add a rule from one to the other; the topic's ARN."""
        s3, sns = self.client("s3"), self.client("sns")
        if bucket not in [each["Name"] for each in s3.list_buckets()["Buckets"]]:
            s3.create_bucket(Bucket=bucket)
        arn: str = sns.create_topic(Name=topic, Attributes={"push-endpoint": endpoint})["TopicArn"]
        present = s3.get_bucket_notification_configuration(Bucket=bucket).get("TopicConfigurations", [])
        rule: dict[str, Any] = {"Id": topic, "TopicArn": arn, "Events": [events]}
        if prefix:
            rule["Filter"] = {"Key": {"FilterRules": [{"Name": "prefix", "Value": prefix}]}}
        s3.put_bucket_notification_configuration(
            Bucket=bucket,
            NotificationConfiguration={"TopicConfigurations": [*present, rule]},
            SkipDestinationValidation=True,
        )
        return arn

    def part(self, name: str) -> int:
        """The process of a part, waiting for it if it is being restarted."""
        found: list[int] = []

        def look() -> bool:
            found[:] = [
                pid for pid in children(self.supervisor) if f"bucketwire {name} " in command_line(pid)
            ]
            return bool(found)

        until(look, START_SECONDS, lambda: f"no process for {name}")
        return found[0]

    def pause(self, name: str) -> None:
        """Stop a part, with all its children, in the middle of whatever it does but for a write.

        In the middle of one it would keep the lock of SQLite, and nobody could write any more.
        """
        self._stop(name)
        while not all(map(_is_unlocked, (self.folder / "data").glob("*.db"))):
            self.resume(name)
            self._stop(name)

    def resume(self, name: str) -> None:
        """Let a paused part go on."""
        part = self.part(name)
        signal_all([part, *descendants(part)], signal.SIGCONT)

    def kill(self, name: str) -> None:
        """Kill -9 of one part's main process; its children, if they were paused, go on and find it gone."""
        doomed = self.part(name)
        orphans = descendants(doomed)
        os.kill(doomed, signal.SIGKILL)
        signal_all(orphans, signal.SIGCONT)

    def kill_everything(self) -> None:
        """Kill -9 of every process, as when the machine loses power, but for the disk's cache."""
        doomed = [self.supervisor, *descendants(self.supervisor)]
        for number in (signal.SIGSTOP, signal.SIGKILL):
            signal_all(doomed, number)
        self._reap()

    def stop(self) -> float:
        """Ctrl-C; the seconds it took. Whatever is left behind is an error."""
        assert self._process is not None
        all_of_it = [self.supervisor, *descendants(self.supervisor)]
        began = time.monotonic()
        self._process.send_signal(signal.SIGINT)
        self._reap()
        took = time.monotonic() - began
        until(
            lambda: not any(alive(pid) for pid in all_of_it),
            2,
            lambda: f"left behind: {[command_line(pid) for pid in all_of_it if alive(pid)]}",
        )
        return took

    def _stop(self, name: str) -> None:
        part, stopped = self.part(name), set[int]()
        while running := {part, *descendants(part)} - stopped:  # one of them may have forked meanwhile
            signal_all(running, signal.SIGSTOP)
            stopped |= running

    def _reap(self) -> int:
        assert self._process is not None
        code = self._process.wait(60)
        self._process = None
        return code

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self.stop()


def until(condition: Callable[[], bool], timeout_seconds: float, why: Callable[[], str]) -> None:
    """Wait for the condition; `AssertionError` with the reason if it does not come true."""
    ends = time.monotonic() + timeout_seconds
    while not condition():
        assert time.monotonic() < ends, why()
        time.sleep(0.05)


def _is_unlocked(database: Path) -> bool:
    with closing(sqlite3.connect(database, timeout=2, isolation_level=None)) as connection:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return False
        connection.execute("ROLLBACK")
        return True


def children(parent: int) -> list[int]:
    return [pid for pid, parent_of_pid in _processes() if parent_of_pid == parent]


def descendants(parent: int) -> list[int]:
    found = children(parent)
    return found + [pid for child in found for pid in descendants(child)]


def signal_all(pids: Iterable[int], number: signal.Signals) -> None:
    """Those that have ended meanwhile need none."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def alive(pid: int) -> bool:
    return any(pid == each for each, _ in _processes())


def command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _processes() -> Iterator[tuple[int, int]]:
    """(process, parent) of all that run; those that have ended and wait to be reaped do not count."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                state, parent, *_ = (entry / "stat").read_text().rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if state != "Z":
                yield int(entry.name), int(parent)


def _decoded(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return body.decode()
