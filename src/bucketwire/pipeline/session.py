"""A Spark session tuned for latency: a micro-batch of one change should take tens of milliseconds.

What each setting is for stands beside it. Nothing in the scratch folder matters after a stop.
"""

import logging
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

from bucketwire.config import PipelineSettings
from bucketwire.pipeline.java import find_java, java_version
from bucketwire.pipeline.jvm import STOP_TIMEOUT_SECONDS, Jvm, start_jvm
from bucketwire.pipeline.scratch import spark_files

ROWS_AT_ONCE = 4
"""Rows, of many changes each, that go to a worker at a time."""


def open_session(settings: PipelineSettings) -> SparkSession:
    """Start Java and a session in it. `close_session` ends both."""
    return start_session(settings, *_archive_options())


def start_session(settings: PipelineSettings, *java_options: str) -> SparkSession:
    """`open_session`, with options for Java."""
    scratch = fresh_scratch(settings)
    jvm = start_jvm(find_java(os.environ), _conf(settings, scratch), os.environ, *java_options)
    with _gateway_named(jvm):
        session = SparkSession.builder.getOrCreate()
    session.sparkContext._gateway.proc = jvm  # type: ignore[union-attr]  # noqa: SLF001
    return session


def close_session(session: SparkSession, timeout_seconds: float = STOP_TIMEOUT_SECONDS) -> None:
    """End the session and its Java process: by force when that takes longer."""
    gateway = session.sparkContext._gateway  # noqa: SLF001
    session.stop()
    gateway.shutdown()  # type: ignore[union-attr]
    gateway.proc.stop(timeout_seconds)  # type: ignore[union-attr]
    pyspark.SparkContext._gateway = None  # noqa: SLF001
    pyspark.SparkContext._jvm = None  # noqa: SLF001


def end_session(session: SparkSession) -> None:
    """End the Java process at once. What matters is in the metabase, so there is nothing to wind down."""
    context = session.sparkContext
    # They would take the end of Java for an error, and print it: a thread of pyspark, and any call of py4j
    # that is under way, such as one that tells Java of an object nobody needs any more.
    context._accumulatorServer.shutdown()  # noqa: SLF001
    logging.getLogger().addFilter(lambda _: False)  # py4j logs that, and nothing else, with the root logger
    context._gateway.proc.kill()  # type: ignore[union-attr]  # noqa: SLF001


def archive_path() -> Path:
    """Where the archive of loaded classes for this Java and this Spark is looked for, in the environment."""
    java = find_java(os.environ)
    name = f"spark-{pyspark.__version__}-java-{java_version(java)}.jsa"
    return Path(sys.prefix) / "share" / "bucketwire" / name


def fresh_scratch(settings: PipelineSettings) -> Path:
    """An empty folder for Spark's files: what a former run left there is removed."""
    scratch = spark_files(settings)
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    return scratch


def _archive_options() -> list[str]:
    archive = archive_path()
    return [f"-XX:SharedArchiveFile={archive}"] if archive.exists() else []


@contextmanager
def _gateway_named(jvm: Jvm) -> Iterator[None]:
    """Tell pyspark of the JVM that runs, in the way it asks for: by its environment, for this moment only."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_GATEWAY_PORT"] = str(jvm.port)
    os.environ["PYSPARK_GATEWAY_SECRET"] = jvm.secret
    try:
        yield
    except BaseException:
        jvm.stop()
        raise
    finally:
        del os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"]


def _conf(settings: PipelineSettings, scratch: Path) -> dict[str, str]:
    return {
        "spark.app.name": "bucketwire",
        "spark.master": settings.master,
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **_near(settings),
        # A hop to a Python worker costs 40 ms less.
        "spark.python.unix.domain.socket.enabled": "true",
        # Workers are forked from a process that has imported everything already.
        "spark.python.daemon.module": "bucketwire.pipeline.daemon",
        # Checkpoints: the default forks a process for each file.
        "spark.sql.streaming.checkpointFileManagerClass": (
            "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
        ),
        "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
        "spark.sql.streaming.minBatchesToRetain": "2",
        # Planning: there is nothing to adapt in a pipeline without a shuffle.
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(ROWS_AT_ONCE),
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        "spark.sql.streaming.numRecentProgressUpdates": "2",
        "spark.sql.streaming.stopTimeout": "3s",
        # What the workers wait for at most when there is nothing to do.
        "spark.cleaner.periodicGC.interval": "10min",
        "spark.locality.wait": "0",
    }


def _near(settings: PipelineSettings) -> dict[str, str]:
    """On one machine nothing listens beyond the loopback interface."""
    if not settings.master.startswith("local"):
        return {}
    return {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
