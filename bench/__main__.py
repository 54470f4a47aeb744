"""`make bench`: start, idle cost, PUT/s, latency end to end, drain rate, and the floor beside it."""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from bench.amqp import measure_amqp
from bench.compose import measured as composing
from bench.dead import measure_dead
from bench.fill import fill
from bench.http_publisher import measure_http
from bench.kafka import measure_kafka
from bench.loading import busy_cores, delays_ms, load
from bench.pubsub import measure_pubsub
from bench.receiver import running_receiver
from bucketwire.event.dialect import AWS
from bucketwire.event.installation import Installation
from bucketwire.metabase import open_metabase
from bucketwire.metabase.base import Metabase
from bucketwire.metabase.values import Slice
from bucketwire.metainfo.routing import Router
from bucketwire.publish import open_publisher
from bucketwire.publish.base import Delivered
from bucketwire.publish.connections import Connections
from services.postgres import PostgresServer
from wire import System

QUEUED = 20_000
LATENCY_RATE = 100.0
LATENCY_SECONDS = 20.0
PUT_SECONDS = 5.0
PUT_ROUNDS = 5
IDLE_SECONDS = 10.0
CHUNK = 1_000


def main() -> None:
    """Measure everything (or what the arguments name), in one run, on one system."""
    chosen = sys.argv[1:] or list(MEASURES)
    print(f"{os.cpu_count()} cores, Python {sys.version.split()[0]}\n", flush=True)
    print(f"| {'measure':48} | {'value':32} | target |\n|{'-' * 50}|{'-' * 34}|--------|")
    with tempfile.TemporaryDirectory(prefix="bucketwire-bench-") as folder:
        system = System(Path(folder)).start()
        try:
            for name in chosen:
                for measure, value, target in MEASURES[name](system):
                    print(f"| {measure:48} | {value:32} | {target} |", flush=True)
        finally:
            system.stop()


def start(system: System) -> Iterator[tuple[str, str, str]]:
    """The second start: the first one fills the machine's file cache."""
    system.stop()
    began = time.monotonic()
    system.start()
    yield "ready after a warm start", f"{time.monotonic() - began:.1f} s", "< 20 s"


def idle(system: System) -> Iterator[tuple[str, str, str]]:
    """CPU of all processes while nothing happens."""
    time.sleep(5)
    yield "idle cost", f"{busy_cores(system, IDLE_SECONDS):.1%} of one core", "< 8 %"


def puts(system: System) -> Iterator[tuple[str, str, str]]:
    """PUT/s without and with a matching rule, in turns, so that noise falls on both."""
    system.client("s3").create_bucket(Bucket="plain")
    with running_receiver("counts") as receiver:
        system.subscribe("watched", "watched", receiver.url + "/")
        load(system, "watched", seconds=3)
        rates: dict[str, list[float]] = {"plain": [], "watched": []}
        sent = 0
        for _ in range(PUT_ROUNDS):
            for bucket, found in rates.items():
                result = load(system, bucket, seconds=PUT_SECONDS)
                assert result["errors"] == 0, result
                found.append(result["puts"] / result["seconds"])
                sent += result["puts"] if bucket == "watched" else 0
                receiver.wait_for(sent, 60)
    plain, watched = (statistics.median(rates[name]) for name in ("plain", "watched"))
    costs = [1 - with_rule / without for without, with_rule in zip(*rates.values(), strict=True)]
    yield "PUT/s, 16 clients, 1 KiB, no rule", f"{plain:.0f} /s  {_rounded(rates['plain'])}", "> 800 /s"
    yield "PUT/s with a matching rule", f"{watched:.0f} /s  {_rounded(rates['watched'])}", "> 800 /s"
    told = ", ".join(f"{cost:.0%}" for cost in costs)
    yield "cost of a matching rule, median of rounds", f"{statistics.median(costs):.1%}  [{told}]", "< 10 %"


def latency(system: System) -> Iterator[tuple[str, str, str]]:
    """From the PUT's response to the receipt, at a steady rate."""
    with running_receiver("bodies") as receiver:
        system.subscribe("latency", "latency", receiver.url + "/")
        load(system, "latency", seconds=5, rate=LATENCY_RATE, clients=4)
        time.sleep(2)
        receiver.reset()
        result = load(system, "latency", seconds=LATENCY_SECONDS, rate=LATENCY_RATE, clients=4)
        receiver.wait_for(result["puts"], 30)
        delays = delays_ms(result["answered_at_ns"], receiver)
    assert len(delays) == result["puts"], f"{len(delays)} of {result['puts']} events came"
    percentiles = statistics.quantiles(delays, n=100)
    for name, value, target in (
        ("p50", percentiles[49], "< 60 ms"),
        ("p95", percentiles[94], ""),
        ("p99", percentiles[98], "< 200 ms"),
    ):
        yield f"latency {name}, {LATENCY_RATE:.0f} PUT/s", f"{value:.0f} ms", target


def drain(system: System) -> Iterator[tuple[str, str, str]]:
    """A queue of changes to a local receiver: the plain loop first, then Spark, on the same rows."""
    with running_receiver("times") as receiver, _metabase(system) as metabase:
        system.subscribe("drain", "drain", receiver.url + "/")
        fill(metabase, "drain", 2_000)
        receiver.wait_for(2_000, 60)
        time.sleep(2)
        receiver.reset()
        system.pause("pipeline")
        first = metabase.changes.head(metabase.changes.start(), 10**9)
        fill(metabase, "drain", QUEUED)
        floor = _floor(metabase, first)
        receiver.reset()
        began = time.monotonic()
        system.resume("pipeline")
        count = receiver.wait_for(QUEUED, 120)
        seconds = time.monotonic() - began
    assert count >= QUEUED, f"{count} of {QUEUED} events came"
    yield f"drain of {QUEUED} queued events", f"{QUEUED / seconds:.0f} /s", "> 10000 /s"
    yield "floor: a plain Python loop over the same rows", f"{floor:.0f} /s", ""
    yield "drain beside the floor", f"{QUEUED / seconds / floor:.2f}", ""


def large(system: System) -> Iterator[tuple[str, str, str]]:
    """One large object down, and many up at once: speed, and the memory of the gateway."""
    system.client("s3").create_bucket(Bucket="large")
    before = _resident_bytes(system)
    _transfer(system, "up", 1, 1024)
    down = statistics.median(_transfer(system, "down", 1, 1024) for _ in range(3))
    yield "GET of one 1 GiB object", f"{down:.0f} MB/s", "> 300 MB/s"
    up = _transfer(system, "up", 16, 256)
    grown = (_resident_bytes(system) - before) / 1e6
    yield "16 parallel PUTs of 256 MiB", f"{up:.0f} MB/s", ""
    yield (
        "gateway's memory at its peak during them",
        f"{_resident_bytes(system) / 1e6:.0f} MB (+{grown:.0f})",
        "< 300 MB",
    )


def postgres(_: System) -> Iterator[tuple[str, str, str]]:
    """PUT/s on a PostgreSQL metabase that flushes each commit."""
    server = PostgresServer.start(durable=True)
    try:
        with (
            tempfile.TemporaryDirectory(prefix="bucketwire-bench-") as folder,
            System(Path(folder), metabase=server.create_database()) as system,
        ):
            system.client("s3").create_bucket(Bucket="plain")
            load(system, "plain", seconds=2)
            results = [load(system, "plain", seconds=PUT_SECONDS) for _ in range(3)]
    finally:
        server.stop()
    assert not any(result["errors"] for result in results), results
    rates = [result["puts"] / result["seconds"] for result in results]
    yield "PUT/s on PostgreSQL", f"{statistics.median(rates):.0f} /s  {_rounded(rates)}", "> 600 /s"


MEASURES = {
    "start": start,
    "idle": idle,
    "latency": latency,
    "compose": lambda _: composing(),
    "drain": drain,
    "dead": measure_dead,
    "puts": puts,
    "large": large,
    "postgres": postgres,
    "http": lambda _: measure_http(),
    "amqp": lambda _: measure_amqp(),
    "kafka": measure_kafka,
    "pubsub": lambda _: measure_pubsub(),
}


def _transfer(system: System, direction: str, clients: int, megabytes: int) -> float:
    """Megabytes a second, over all clients."""
    command = [sys.executable, "-m", "bench.transfer", direction, "--port", str(system.port)]
    command += ["--clients", str(clients), "--megabytes", str(megabytes)]
    return float(subprocess.run(command, check=True, capture_output=True).stdout)


def _resident_bytes(system: System) -> int:
    """The most memory that the gateway has had."""
    status = Path(f"/proc/{system.part('gateway')}/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024


def _floor(metabase: Metabase, first: str) -> float:
    """Events a second of one loop that reads, routes, composes and posts."""
    began = time.monotonic()
    router = Router(metabase, Installation(AWS))
    rows = metabase.changes.read(Slice(first, metabase.changes.head(first, 10**9)))
    messages = [message for row in rows for _, message in router.route(row)]
    topic = router.topic(messages[0].topic_arn)
    assert topic is not None
    with closing(open_publisher(topic, Connections())) as publisher:
        for start in range(0, len(messages), CHUNK):
            outcomes = publisher.publish(messages[start : start + CHUNK], 30)
            assert all(isinstance(outcome, Delivered) for outcome in outcomes)
    return len(messages) / (time.monotonic() - began)


@contextmanager
def _metabase(system: System) -> Iterator[Metabase]:
    metabase = open_metabase(f"sqlite:///{system.folder}/data/metabase.db")
    yield metabase
    metabase.close()


def _rounded(rates: list[float]) -> str:
    return "[" + ", ".join(f"{rate:.0f}" for rate in rates) + "]"


if __name__ == "__main__":
    main()
