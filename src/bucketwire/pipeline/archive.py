"""Makes the archive of loaded classes with which Java starts in half the time.

    python -m bucketwire.pipeline.archive

A short run of the real queries on a metabase of its own loads what they need; Java writes it down when it
exits. It is part of preparing an environment, once for each Java and Spark. Without it all works, but slower.
"""

import dataclasses
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from bucketwire.config import PipelineSettings
from bucketwire.event.change import Origin
from bucketwire.event.name import Operation
from bucketwire.event.rule import Rule
from bucketwire.metabase import open_metabase
from bucketwire.metabase.base import Metabase
from bucketwire.metabase.values import NewObject
from bucketwire.pipeline.job import start_queries, stop_queries
from bucketwire.pipeline.session import archive_path, close_session, start_session

WRITE_TIMEOUT_SECONDS = 120.0
RUN_TIMEOUT_SECONDS = 30.0
_STREAMS = (1, 2)
_NOWHERE = "arn:aws:sns:us-east-1:000000000000:archive"


def make_archive() -> Path:
    """The archive's path; made if it was not there."""
    archive = archive_path()
    if archive.exists():
        return archive
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bucketwire-") as folder:
        settings = PipelineSettings(
            metabase=f"sqlite:///{folder}/metabase.db", dialect="aws", scratch=Path(folder)
        )
        written = archive.with_suffix(".part")
        written.unlink(missing_ok=True)
        session = start_session(settings, f"-XX:ArchiveClassesAtExit={written}")
        try:
            _exercise(session, settings)
        finally:
            close_session(session, WRITE_TIMEOUT_SECONDS)
        written.replace(archive)
    return archive


def _exercise(session: SparkSession, settings: PipelineSettings) -> None:
    """Let one change go through: to a topic that does not exist, so that nothing is sent."""
    metabase = open_metabase(settings.metabase)
    try:
        _commit_change(metabase)
        queries = start_queries(session, dataclasses.replace(settings, master="local[2]"))
        ends = time.monotonic() + RUN_TIMEOUT_SECONDS
        while not metabase.queue.dead_letters() and time.monotonic() < ends:
            time.sleep(0.1)
        stop_queries(queries, settings)
    finally:
        metabase.close()


def _commit_change(metabase: Metabase) -> None:
    metabase.buckets.create("archive", "archive", "us-east-1")
    metabase.rules.edit("archive", lambda _: [Rule("archive", _NOWHERE, ("s3:ObjectCreated:*",))])
    empty = NewObject(key="key", size_bytes=0, etag="", owner_id="", inline=b"")
    metabase.objects.put("archive", empty, Operation.PUT, Origin("", "", "", ""))


@contextmanager
def _quietly() -> Iterator[None]:
    """Show what this process and those it starts write only if it fails.

    That nothing is sent is an error to them, and Spark's processes tell of their own end.
    """
    sys.stdout.flush()
    with tempfile.TemporaryFile() as written:
        shown = [os.dup(stream) for stream in _STREAMS]
        for stream in _STREAMS:
            os.dup2(written.fileno(), stream)
        try:
            yield
        except BaseException:
            written.seek(0)
            os.write(shown[1], written.read())
            raise
        finally:
            for stream, before in zip(_STREAMS, shown, strict=True):
                os.dup2(before, stream)
                os.close(before)


if __name__ == "__main__":
    with _quietly():
        make_archive()
