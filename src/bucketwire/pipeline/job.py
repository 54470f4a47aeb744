"""The pipeline, top to bottom: a session, two queries, the lease, wait.

    changes -> deliver       every change of the stream, at once
    due     -> redeliver     what was parked, when its time has come

The queries run before the lease is theirs, with nothing to do: a pipeline that stands by is as warm as the
one at work. It ends with an error when a query dies: whoever started it starts it anew, and it goes on at the
cursor.
"""

import dataclasses
import os
import signal
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from threading import Event

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource
from pyspark.sql.streaming.query import StreamingQuery

from bucketwire.config import CONSUMER, PipelineSettings
from bucketwire.errors import Unavailable
from bucketwire.log import get_logger, logs_json
from bucketwire.metabase import open_metabase
from bucketwire.metabase.base import Metabase
from bucketwire.pipeline.deliver import SUMMARY, delivering
from bucketwire.pipeline.lease import Lease, new_holder
from bucketwire.pipeline.redeliver import DueSource, redelivering
from bucketwire.pipeline.scratch import claim_scratch
from bucketwire.pipeline.session import end_session, open_session
from bucketwire.pipeline.source import ChangesSource, reader_options
from bucketwire.pipeline.stopping import ask_stop

LOOK_EVERY_SECONDS = 0.25
FINISH_WITHIN_SECONDS = 1.5

log = get_logger("pipeline")


def run(settings: PipelineSettings) -> None:
    """Run until SIGTERM or SIGINT, or until the parent process is gone; raises when a query dies."""
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
    lease = Lease(metabase.cursors, settings.holder)
    session = open_session(settings)
    try:
        queries = start_queries(session, settings)
        if lease.wait(stopping, partial(_check, queries)):
            log.info("pipeline_started", master=settings.master)
            _watch(queries, stopping, lease)
            finish_batches(queries, settings)
    finally:
        end_session(session)
        lease.release()
        metabase.close()
        lock.close()
    log.info("pipeline_stopped")


def _check_cursor(metabase: Metabase) -> None:
    """Raise `ChangesTrimmed` before Spark is started: the source would raise it too, in many more lines."""
    if (cursor := metabase.cursors.load(CONSUMER)) is not None:
        metabase.changes.head(cursor, 1)


def start_queries(session: SparkSession, settings: PipelineSettings) -> list[StreamingQuery]:
    """Start both queries, with fresh checkpoints: the cursor in the metabase says where to begin."""
    changes = _read(session, ChangesSource, settings).mapInArrow(delivering(settings), SUMMARY)
    due = _read(session, DueSource, settings).mapInArrow(redelivering(settings), SUMMARY)
    return [_start(changes, "deliver", settings), _start(due, "redeliver", settings)]


def stop_queries(queries: Sequence[StreamingQuery], settings: PipelineSettings) -> None:
    """Let the batches under way end, then stop, and leave the session as it was."""
    finish_batches(queries, settings)
    for query in queries:
        query.stop()


def finish_batches(queries: Sequence[StreamingQuery], settings: PipelineSettings) -> None:
    """Ask for no more batches, and wait a while for those under way."""
    ask_stop(settings)
    ends = time.monotonic() + FINISH_WITHIN_SECONDS
    while any(_is_busy(query) for query in queries) and time.monotonic() < ends:
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
    return settings.scratch.absolute() / "spark" / f"{name}-{time.time_ns()}"


def _watch(queries: Sequence[StreamingQuery], stopping: Event, lease: Lease) -> None:
    parent = os.getppid()
    while not stopping.wait(LOOK_EVERY_SECONDS) and os.getppid() == parent:
        if lease.is_lost():
            raise Unavailable("another pipeline has taken over")
        _check(queries)


def _check(queries: Sequence[StreamingQuery]) -> None:
    """Raise `Unavailable` if one of them has ended."""
    for query in queries:
        # A query whose thread dies in its own cleaning up stays active for ever.
        if not query.isActive or query.exception() is not None:
            raise Unavailable(f"the query {query.name} has ended: {_cause(query)}")


def _cause(query: StreamingQuery) -> str:
    error = query.exception()
    return "without an error" if error is None else str(error).splitlines()[0]


def _is_busy(query: StreamingQuery) -> bool:
    return bool(query.isActive and query.status["isDataAvailable"])


def _stop_on_signals() -> Event:
    stopping = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    return stopping
