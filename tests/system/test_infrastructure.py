"""Parts of the machinery that fail: a second pipeline, Spark's workers and files, the schema, the disk."""

import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from botocore.exceptions import BotoCoreError, ClientError

from bucketwire.config import CONSUMER
from bucketwire.metabase import open_metabase
from services.http_endpoint import HttpEndpoint
from wire import PROGRAM, System, children, command_line, descendants, until

PATIENCE_SECONDS = 120


def wait_for(endpoint: HttpEndpoint, keys: set[str]) -> None:
    def seen() -> set[str]:
        return {event.decoded["Records"][0]["s3"]["object"]["key"] for event in endpoint.events()}

    until(lambda: keys <= seen(), PATIENCE_SECONDS, lambda: f"missing: {sorted(keys - seen())[:5]}")


def put(system: System, bucket: str, *keys: str) -> set[str]:
    s3 = system.client("s3")
    for key in keys:
        s3.put_object(Bucket=bucket, Key=key, Body=b"x")
    return set(keys)


@contextmanager
def second_pipeline(system: System, folder: Path) -> Iterator[Path]:
    """Another pipeline on the system's metabase, started by mistake; its log."""
    metabase = f"sqlite:///{system.folder}/data/metabase.db"
    log = folder / "second.log"
    with log.open("wb") as file:
        process = subprocess.Popen(
            [PROGRAM, "pipeline", "--data", str(folder / "second"), "--metabase", metabase],
            stdout=file,
            stderr=file,
            stdin=subprocess.DEVNULL,
        )
    try:
        yield log
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def test_of_two_pipelines_one_stands_by_and_takes_over_when_the_other_dies(
    own_system: Callable[[], System], endpoint: HttpEndpoint, tmp_path: Path
) -> None:
    system = own_system()
    system.subscribe("standby", "standby", endpoint.url)
    with second_pipeline(system, tmp_path) as log:
        until(lambda: "pipeline_stands_by" in log.read_text(), PATIENCE_SECONDS, log.read_text)
        wait_for(endpoint, put(system, "standby", "by-the-first"))
        assert "pipeline_started" not in log.read_text()
        system.pause("pipeline")  # as dead as can be: its supervisor does not start another
        keys = put(system, "standby", *(f"key-{n}" for n in range(10)))
        until(lambda: "pipeline_started" in log.read_text(), PATIENCE_SECONDS, log.read_text)
        wait_for(endpoint, keys)
        system.resume("pipeline")
        wait_for(endpoint, put(system, "standby", "by-the-second"))
    wait_for(endpoint, put(system, "standby", "by-the-first-again"))


def test_with_a_standby_a_killed_pipeline_is_missed_for_seconds_only(
    tmp_path: Path, endpoint: HttpEndpoint
) -> None:
    with System(tmp_path, standby=True) as system:
        system.subscribe("warm", "warm", endpoint.url)
        for number in range(2):
            wait_for_standby(system, number + 1)
            wait_for(endpoint, put(system, "warm", f"before-{number}"))
            both, at_work = pipelines(system), lease_holder(system)
            os.kill(both[at_work], signal.SIGKILL)
            wait_for(endpoint, put(system, "warm", f"after-{number}"))
            assert {lease_holder(system)} == both.keys() - {at_work}


def wait_for_standby(system: System, number: int) -> None:
    """Wait until so many pipelines have stood by since the system was started."""
    log = system.log.read_text
    until(lambda: log().count("pipeline_stands_by") >= number, PATIENCE_SECONDS, log)


def pipelines(system: System) -> dict[str, int]:
    """The processes of the pipelines, by the names in which they take the lease."""
    found = {pid: command_line(pid).partition(" --holder ")[2] for pid in children(system.supervisor)}
    return {words.split()[0]: pid for pid, words in found.items() if words}


def lease_holder(system: System) -> str:
    """The name of the pipeline at work."""
    metabase = open_metabase(f"sqlite:///{system.folder}/data/metabase.db")
    try:
        return metabase.cursors.holder(CONSUMER) or "nobody"
    finally:
        metabase.close()


def test_a_killed_worker_and_lost_scratch_files_lose_no_event(
    own_system: Callable[[], System], endpoint: HttpEndpoint
) -> None:
    system = own_system()
    system.subscribe("worker", "worker", endpoint.url)
    wait_for(endpoint, put(system, "worker", "warm"))
    workers = [
        pid
        for pid in descendants(system.part("pipeline"))
        if "pyspark" in command_line(pid) or "daemon" in command_line(pid)
    ]
    keys = put(system, "worker", *(f"before-{n}" for n in range(20)))
    for pid in workers:
        os.kill(pid, signal.SIGKILL)
    shutil.rmtree(system.folder / "data" / "spark", ignore_errors=True)
    keys |= put(system, "worker", *(f"after-{n}" for n in range(20)))
    wait_for(endpoint, keys)


def test_writes_go_on_and_lose_nothing_while_everything_is_restarted_in_turn(
    own_system: Callable[[], System], endpoint: HttpEndpoint
) -> None:
    """A rolling upgrade on one machine: SIGTERM to each part, under load."""
    system = own_system()
    system.subscribe("rolling", "rolling", endpoint.url)
    acknowledged: set[str] = set()
    stop = threading.Event()

    def write() -> None:
        s3, number = system.client("s3"), 0
        while not stop.is_set():
            number += 1
            try:
                s3.put_object(Bucket="rolling", Key=f"key-{number}", Body=b"x")
            except (ClientError, BotoCoreError):
                time.sleep(0.05)
                continue
            acknowledged.add(f"key-{number}")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for part in ("gateway", "pipeline", "gateway"):
            doomed, before = system.part(part), len(acknowledged)
            os.kill(doomed, signal.SIGTERM)
            until(
                lambda doomed=doomed: doomed not in children(system.supervisor),
                30,
                lambda: "it does not stop",
            )
            system.wait_ready()
            until(lambda before=before: len(acknowledged) > before + 20, 30, lambda: "no writes get through")
    finally:
        stop.set()
        writer.join()
    wait_for(endpoint, acknowledged)
