"""A clock in the gateway: now and then it trims old changes, applies the lifecycle rules and sweeps.

A first run comes soon after the start, so that a gateway that is restarted often has its turn too. Several
gateways may do it at once. What goes wrong is logged, holds up nothing else, and is tried again at the next
turn.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial

import msgspec

from bucketwire.blobs import Blobs
from bucketwire.gateway.retention import enforce_retention
from bucketwire.gateway.sweep import sweep
from bucketwire.log import get_logger
from bucketwire.metabase.base import Metabase
from bucketwire.metabase.steady import SteadyClock
from bucketwire.metainfo.expire import run_lifecycle

log = get_logger("gateway")

_FIRST_SECONDS = 10.0
_STOP_SECONDS = 2.0


@contextmanager
def housekeeping(
    metabase: Metabase, blobs: Blobs, every_seconds: float, retention_hours: int
) -> Iterator[None]:
    """Keep house in a thread until the end of the block."""
    stop = threading.Event()
    thread = threading.Thread(
        target=_keep_house,
        args=(metabase, blobs, every_seconds, retention_hours, stop),
        name="housekeeping",
        daemon=True,
    )
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(_STOP_SECONDS)


def _keep_house(
    metabase: Metabase, blobs: Blobs, every_seconds: float, retention_hours: int, stop: threading.Event
) -> None:
    clock = SteadyClock()  # what a clock that jumps ahead has expired is gone for good
    jobs = {
        "retention": partial(enforce_retention, metabase, retention_hours),
        "lifecycle": partial(_apply_lifecycle, metabase, clock),
        "sweep": partial(_sweep, metabase, blobs, clock),  # the last: it finds what the lifecycle has dropped
    }
    wait_seconds = min(_FIRST_SECONDS, every_seconds)
    while not stop.wait(wait_seconds):
        wait_seconds = every_seconds
        for name, job in jobs.items():
            if not stop.is_set():
                _try(name, job, stop)


def _try(name: str, job: Callable[[], None], stop: threading.Event) -> None:
    try:
        job()
    except Exception as problem:  # noqa: BLE001 - whatever it is, the others and the next turn must come
        if not stop.is_set():
            log.warning("housekeeping_failed", job=name, reason=str(problem), error=type(problem).__name__)


def _apply_lifecycle(metabase: Metabase, clock: SteadyClock) -> None:
    counts = run_lifecycle(metabase, clock.now_ns())
    say = log.warning if counts.failed else log.info
    say("lifecycle_applied", **msgspec.to_builtins(counts))


def _sweep(metabase: Metabase, blobs: Blobs, clock: SteadyClock) -> None:
    now = datetime.fromtimestamp(clock.now_ns() / 1e9, UTC)
    log.info("bytes_swept", **msgspec.to_builtins(sweep(metabase.objects, blobs, now)))
