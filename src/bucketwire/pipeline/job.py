"""The pipeline, top to bottom: a session, two queries, the lease, wait.

    changes -> deliver       every change of the stream, at once
    due     -> redeliver     what was parked, when its time has come

The queries run before the lease is theirs, with nothing to do: a pipeline that stands by is as warm as the
one at work. A query that dies is started anew, and goes on at the cursor; when one dies again soon, or has
lost its folder, the pipeline ends with an error, and whoever started it starts it anew.
"""

import dataclasses
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from pathlib import Path
from threading import Event

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource
from pyspark.sql.streaming.query import StreamingQuery

from bucketwire.config import CONSUMER, PipelineSettings
from bucketwire.errors import ChangesTrimmed, Unavailable
from bucketwire.log import get_logger, logs_json
from bucketwire.metabase import open_metabase
from bucketwire.metabase.base import Metabase
from bucketwire.metainfo.place import place
from bucketwire.pipeline.clock import ClockWatch
from bucketwire.pipeline.deliver import SUMMARY, delivering
from bucketwire.pipeline.lease import Lease, new_holder
from bucketwire.pipeline.patience import patiently
from bucketwire.pipeline.priority import giving_way, take_part
from bucketwire.pipeline.redeliver import DueSource, redelivering
from bucketwire.pipeline.scratch import claim_scratch, spark_files
from bucketwire.pipeline.session import end_session, open_session
from bucketwire.pipeline.source import ChangesSource, reader_options
from bucketwire.pipeline.stopping import ask_stop

LOOK_EVERY_SECONDS = 0.25
STEADY_SECONDS = 10.0
"""A query that has run for so long may be started anew; one that dies sooner would only do so again."""
FINISH_WITHIN_SECONDS = 1.5

log = get_logger("pipeline")


def run(settings: PipelineSettings) -> None:
    """Run until SIGTERM or SIGINT; raises when a query dies."""
    stopping = _stop_on_signals()
    scratch, lock = claim_scratch(settings.scratch)
    settings = dataclasses.replace(
        settings,
        holder=settings.holder or new_holder(),
        receipts=str(settings.scratch.absolute() / "receipts"),
        scratch=scratch,
    )
    metabase = open_metabase(settings.metabase)
    _check_cursor(metabase)
    lease, clock = Lease(metabase.cursors, settings.holder), ClockWatch(metabase.queue)
    with giving_way(lease.is_held):
        session, queries = _open(settings)
    try:
        look = partial(_check, queries, settings, clock)
        if lease.wait(stopping, look):
            take_part()
            clock.compare(patiently(lambda: metabase.cursors.last_alive_at_ns(CONSUMER)))
            log.info("pipeline_started", master=settings.master)
            _watch(stopping, lease, look)
            finish_batches(queries, settings)
    finally:
        end_session(session)
        lease.release()
        metabase.close()
        lock.close()
    log.info("pipeline_stopped")


def _open(settings: PipelineSettings) -> tuple[SparkSession, "list[Query]"]:
    """A session and its queries, or neither."""
    session = open_session(settings)
    try:
        return session, start_queries(session, settings)
    except BaseException:
        end_session(session)
        raise


def _check_cursor(metabase: Metabase) -> None:
    """Raise `ChangesTrimmed` before Spark is started: the source would raise it too, in many more lines."""
    _, lost = place(metabase)
    if lost:
        raise ChangesTrimmed(metabase.changes.start())


@dataclass(slots=True)
class Query:
    """A query, and how to start it anew."""

    start: Callable[[], StreamingQuery]
    running: StreamingQuery
    started_at: float = -inf
    """When it was last started anew."""

    def cause_of_death(self) -> str | None:
        """None while it lives."""
        error = self.running.exception()
        if error is not None:  # a query whose thread dies in its own cleaning up stays active for ever
            return str(error).splitlines()[0]
        return None if self.running.isActive else "without an error"

    def revive(self) -> None:
        """Start it anew if it has died; raises `Unavailable` when that has not helped for long."""
        if (cause := self.cause_of_death()) is None:
            return
        if time.monotonic() - self.started_at < STEADY_SECONDS:
            raise Unavailable(f"the query {self.running.name} has ended: {cause}")
        log.warning("query_started_anew", query=self.running.name, reason=cause)
        self.started_at = time.monotonic()
        self.running = self.start()


def start_queries(session: SparkSession, settings: PipelineSettings) -> list[Query]:
    """Start both queries, with fresh checkpoints: the cursor in the metabase says where to begin."""

    def deliver() -> StreamingQuery:
        changes = _read(session, ChangesSource, settings)
        return _start(changes.mapInArrow(delivering(settings), SUMMARY), "deliver", settings)

    def redeliver() -> StreamingQuery:
        due = _read(session, DueSource, settings)
        return _start(due.mapInArrow(redelivering(settings), SUMMARY), "redeliver", settings)

    return [Query(start, start()) for start in (deliver, redeliver)]


def stop_queries(queries: Sequence[Query], settings: PipelineSettings) -> None:
    """Let the batches under way end, then stop, and leave the session as it was."""
    finish_batches(queries, settings)
    for query in queries:
        query.running.stop()


def finish_batches(queries: Sequence[Query], settings: PipelineSettings) -> None:
    """Ask for no more batches, and wait a while for those under way."""
    ask_stop(settings)
    ends = time.monotonic() + FINISH_WITHIN_SECONDS
    while any(_is_busy(query.running) for query in queries) and time.monotonic() < ends:
        time.sleep(0.05)


def _read(session: SparkSession, source: type[DataSource], settings: PipelineSettings) -> DataFrame:
    session.dataSource.register(source)
    options = reader_options(settings, json_logs=logs_json())
    return session.readStream.format(source.name()).options(**options).load()


def _start(frame: DataFrame, name: str, settings: PipelineSettings) -> StreamingQuery:
    folder = checkpoint(settings, name)
    return (
        frame.writeStream.format("noop")
        # Never a name twice: a query that was stopped while its source answered keeps its name taken.
        .queryName(folder.name)
        .option("checkpointLocation", str(folder))
        .option("asyncProgressTrackingEnabled", "true")
        .trigger(processingTime="0 seconds")
        .start()
    )


def checkpoint(settings: PipelineSettings, name: str) -> Path:
    """A folder for the query's checkpoint that was never used before."""
    return spark_files(settings) / f"{name}-{time.time_ns()}"


def _watch(stopping: Event, lease: Lease, look: Callable[[], None]) -> None:
    while not stopping.wait(LOOK_EVERY_SECONDS):
        if lease.is_lost():
            raise Unavailable("another pipeline has taken over")
        look()


def _check(queries: Sequence[Query], settings: PipelineSettings, clock: ClockWatch) -> None:
    """Raise `Unavailable` if one of them has ended and cannot be started anew."""
    clock.look()
    if not spark_files(settings).is_dir():  # no query lives long without it
        raise Unavailable("the folder for Spark's files is gone")
    for query in queries:
        query.revive()


def _is_busy(query: StreamingQuery) -> bool:
    return bool(query.isActive and query.status["isDataAvailable"])


def _stop_on_signals() -> Event:
    stopping = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    return stopping
