"""What a dead endpoint costs: CPU while its queue waits, and the latency of a topic beside it."""

import statistics
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from bench.fill import fill
from bench.loading import busy_cores, delays_ms, load
from bench.receiver import running_receiver
from bucketwire.metabase import open_metabase
from wire import System, until

QUEUED = 20_000
RATE = 100.0
SECONDS = 15.0
IDLE_SECONDS = 40.0
QUIET_SECONDS = 30.0
"""Java compiles for so long after a start, and after much work."""
NOBODY = "http://127.0.0.1:9/"
"""Where nobody listens."""


def measure_dead(system: System) -> Iterator[tuple[str, str, str]]:
    """Without the dead topic and with it, in one run."""
    system.client("s3").create_bucket(Bucket="plain-beside")
    alone = _p99_beside_ms(system, "alone", "plain-beside")
    idle = _idle(system)
    system.subscribe("dead", "dead", NOBODY)
    _fill_queue(system)
    waiting = _idle(system)
    yield f"idle cost of {QUEUED} messages for a dead endpoint", f"{waiting - idle:.1%} of one core", "< 2 %"
    beside = _p99_beside_ms(system, "beside", "dead")
    yield f"latency p99 beside {RATE / 2:.0f} PUT/s without a rule", f"{alone:.0f} ms", ""
    yield f"latency p99 beside {RATE / 2:.0f} PUT/s for a dead topic", f"{beside:.0f} ms", ""
    yield "their ratio", f"{beside / alone:.2f}", "< 1.3"


def _p99_beside_ms(system: System, bucket: str, other: str) -> float:
    """The latency of one bucket's events while another is written to as well."""
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(load, system, other, seconds=SECONDS + 8, rate=RATE / 2, clients=2)
        found = _p99_ms(system, bucket)
        writing.result()
    return found


def _fill_queue(system: System) -> None:
    metabase = open_metabase(f"sqlite:///{system.folder}/data/metabase.db")
    try:
        fill(metabase, "dead", QUEUED)
        until(
            lambda: sum(line.entries for line in metabase.queue.stats()) >= QUEUED,
            120,
            lambda: "they were not parked",
        )
    finally:
        metabase.close()


def _idle(system: System) -> float:
    """CPU of all processes while nothing is written, in cores."""
    time.sleep(QUIET_SECONDS)
    return busy_cores(system, IDLE_SECONDS)


def _p99_ms(system: System, bucket: str) -> float:
    with running_receiver("bodies") as receiver:
        system.subscribe(bucket, f"{bucket}-healthy", receiver.url + "/")
        load(system, bucket, seconds=3, rate=RATE, clients=4)
        time.sleep(2)
        receiver.reset()
        result = load(system, bucket, seconds=SECONDS, rate=RATE, clients=4)
        receiver.wait_for(result["puts"], 30)
        return statistics.quantiles(delays_ms(result["answered_at_ns"], receiver), n=100)[98]
