"""The change stream as a Spark source: `bucketwire_changes`, one binary column `changes`, one change a line.

    latestOffset   the batch before is done: its end is the cursor; wait a little for new changes
    partitions     the batch's slices; a small batch is one slice, so that one task carries it
    read           a slice's changes, as Arrow batches

A row holds many changes, as Java's work is by the row: to copy a change from one Python process to another
would cost more than to deliver it.

The cursor in the metabase is the only truth about the position: Spark's checkpoint is made anew at each
start. A reader carries nothing but settings to the workers.

A new process is slow at first: Java compiles what it has run often enough, workers have to be forked. So,
after a start, as long as there is nothing to do, the source offers empty batches; when it has seen enough of
them it tells that the pipeline is alive. A change that comes meanwhile is in the very next batch.

A pipeline that stands by does all this too, and then waits, warm, for its turn. It begins where the cursor is
at that moment, which no offset of Spark's can say beforehand: until then its offset is `NOT_BEGUN`.
"""

import dataclasses
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows

from bucketwire.config import CONSUMER, PipelineSettings
from bucketwire.errors import Unavailable
from bucketwire.event.change import decode_change
from bucketwire.event.topic import Topic
from bucketwire.log import configure_logging, get_logger
from bucketwire.metabase import open_metabase
from bucketwire.metabase.base import Changes, Metabase, Topics
from bucketwire.metabase.values import Offset, Slice
from bucketwire.metainfo.all_topics import ChosenTopics
from bucketwire.pipeline.cursor import CursorKeeper
from bucketwire.pipeline.patience import patiently, pause_after
from bucketwire.pipeline.stopping import stop_asked
from bucketwire.pipeline.turn import Turn
from bucketwire.pipeline.worker import open_worker

WAIT_SECONDS = 0.5
BUSY_ROWS = 32
GATHER_SECONDS = 0.04
"""When more than `BUSY_ROWS` wait already, a little time for others to join them: a batch costs the same for
one change as for hundreds, and under load that cost is taken from those who write."""
WARM = 60
"""Batches after which a new pipeline is about as fast as it gets within its first minute."""
ALL_ROWS = 1_000_000_000
NOT_BEGUN: Offset = ""
LINES_A_ROW = 500
SCHEMA = pa.schema([("changes", pa.binary())])

log = get_logger("pipeline")


@dataclass(frozen=True)
class ReaderSettings:
    """What a reader carries to another process."""

    pipeline: PipelineSettings
    json_logs: bool


class ChangesSource(DataSource):
    """Registered with the session; its options are those of `reader_options`."""

    @classmethod
    def name(cls) -> str:
        """As in `spark.readStream.format(...)`."""
        return "bucketwire_changes"

    def schema(self) -> str:
        """Encoded changes."""
        return "changes binary"

    def streamReader(self, schema: Any) -> "ChangesReader":  # noqa: ARG002, N802  # Spark's names
        """The reader; its connections open where it runs."""
        return ChangesReader(settings_from_options(self.options))


class SlicePartition(InputPartition):
    """One slice, for one task."""

    def __init__(self, part: Slice) -> None:
        super().__init__(part)


class ChangesReader(DataSourceStreamReader):
    """Plans in one process near the driver, reads in the workers."""

    def __init__(self, settings: ReaderSettings) -> None:
        self._settings = settings
        self._planner: Planner | None = None

    def initialOffset(self) -> dict[str, str]:  # noqa: N802
        """Where the last run came to, to be found out when it is our turn."""
        return {"offset": NOT_BEGUN, "warmth": "0"}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """The most that one batch may hold."""
        return ReadMaxRows(self._settings.pipeline.batch_rows)

    def latestOffset(self, start: dict[str, str], limit: ReadLimit) -> dict[str, str]:  # noqa: N802
        """The end of the next batch; `start` when there is nothing new."""
        rows = limit.max_rows if isinstance(limit, ReadMaxRows) else ALL_ROWS
        warmth = int(start["warmth"])
        try:
            end = self._plan().next_offset(start["offset"], rows, cold=warmth < WARM)
        except Unavailable as error:
            pause_after(error)
            return start
        return {"offset": end, "warmth": str(min(warmth + 1, WARM))}

    def partitions(self, start: dict[str, str], end: dict[str, str]) -> Sequence[InputPartition]:
        """The slices of a batch."""
        parts = patiently(lambda: self._plan().slices(start["offset"], end["offset"]))
        return [SlicePartition(part) for part in parts]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The changes of a slice. Repeats exactly."""
        if partition.value.start == partition.value.end:
            return
        try:
            worker = open_worker(self._settings.pipeline, json_logs=self._settings.json_logs)
            changes = worker.metabase.changes.read(partition.value)
            while lines := list(islice(changes, LINES_A_ROW)):
                yield pa.record_batch([pa.array([b"\n".join(lines)], pa.binary())], schema=SCHEMA)
        except Unavailable as error:
            pause_after(error)
            raise

    def stop(self) -> None:
        """Save the cursor a last time."""
        if self._planner is not None:
            self._planner.close()
            self._planner = None

    def _plan(self) -> "Planner":
        if self._planner is None:
            configure_logging(json=self._settings.json_logs)
            pipeline = self._settings.pipeline
            self._planner = Planner(pipeline, open_metabase(pipeline.metabase))
        return self._planner


class Planner:
    """Decides what the next batch holds, and keeps the cursor."""

    def __init__(self, settings: PipelineSettings, metabase: Metabase) -> None:
        self._settings = settings
        self._metabase = metabase
        self._cursor = CursorKeeper(metabase.cursors, metabase.changes, settings.holder)
        self._cursor.start()
        self._ordered = OrderedTopics(metabase.topics, metabase.changes)
        self._turn = Turn(metabase.cursors, settings.holder)
        self._begun_at: Offset = NOT_BEGUN
        self._planned: tuple[Offset, int] = ("", 1)
        """The end of the next batch, and into how many slices it goes."""

    def _first_offset(self) -> Offset:
        """The cursor, or the start of the stream for a new consumer.

        Raises `ChangesTrimmed` when changes were trimmed before they were read: that is for the operator to
        accept, never passed over in silence.
        """
        saved = self._metabase.cursors.load(CONSUMER)
        if saved is None:
            return self._metabase.changes.start()
        self._metabase.changes.head(saved, 1)
        return saved

    def next_offset(self, done: Offset, rows: int, *, cold: bool = False) -> Offset:
        """Everything up to `done` has its outcome: note it, then wait a little for what comes next."""
        if done == NOT_BEGUN:
            if not self._turn.wait(0 if cold else WAIT_SECONDS):
                return NOT_BEGUN
            done = self._begun_at = self._first_offset()
        self._cursor.advance(done, alive=not cold)
        if self._cursor.is_lost:
            time.sleep(WAIT_SECONDS)
            return done
        if stop_asked(self._settings):
            self._cursor.save()
            return done
        changes, slice_rows = self._metabase.changes, min(rows, self._settings.slice_rows)
        first = changes.wait(done, slice_rows, 0 if cold else WAIT_SECONDS)
        end = changes.head(done, rows)
        if changes.head(done, BUSY_ROWS) != first and changes.head(end, 1) == end:
            time.sleep(GATHER_SECONDS)
            first = changes.head(done, slice_rows)
            end = changes.head(done, rows)
        # The stream may grow between two looks. Only a full slice ends at the same offset in both.
        fits = end == first or changes.head(done, slice_rows) != first
        self._planned = (end, 1 if fits else -(-rows // slice_rows))
        return end

    def slices(self, start: Offset, end: Offset) -> list[Slice]:
        """The batch in slices of at most about `slice_rows`; an empty batch is one empty slice."""
        start = self._begun_at if start == NOT_BEGUN else start
        if start == end:
            return [Slice(start, end)]
        planned_end, count = self._planned
        one = planned_end != end or self._ordered.any(start)
        return self._metabase.changes.split(start, end, 1 if one else count)

    def close(self) -> None:
        """Save, and give up the connection."""
        self._cursor.close()
        self._metabase.close()


class OrderedTopics:
    """Knows whether any topic wants its messages in order: then a batch is one slice, as two go at once.

    Over HTTP messages overtake each other within a slice too, so that a topic there changes nothing.
    A deleted topic still gets what was committed before. It counts until the stream has passed its end; of
    all that were deleted only the last end is kept.
    """

    def __init__(self, topics: Topics, changes: Changes) -> None:
        self._living = ChosenTopics(topics, self._lives)
        self._changes = changes
        self._last_end_ns = 0
        self._passed_ns = 0

    def any(self, start: Offset) -> bool:
        """Whether there is one for what lies behind `start`, where something does."""
        if self._living.look():
            return True
        if self._last_end_ns > self._passed_ns:
            self._passed_ns = self._committed_ns(start)
        return self._last_end_ns > self._passed_ns

    def _lives(self, topic: Topic) -> bool:
        """Whether the topic wants order for what comes; the end of one that did is noted."""
        wants_order = topic.ordered and not topic.endpoint.startswith("http")
        if wants_order and topic.deleted_at_ns is not None:
            self._last_end_ns = max(self._last_end_ns, topic.deleted_at_ns)
        return wants_order and topic.deleted_at_ns is None

    def _committed_ns(self, start: Offset) -> int:
        """When the first change behind `start` was committed: none behind it is older."""
        first = next(self._changes.read(Slice(start, self._changes.head(start, 1))))
        return decode_change(first).committed_at_ns


def reader_options(settings: PipelineSettings, *, json_logs: bool) -> dict[str, str]:
    """The settings as options of a Spark source."""
    pipeline = {**dataclasses.asdict(settings), "scratch": str(settings.scratch)}
    return {"pipeline": json.dumps(pipeline), "json_logs": str(json_logs)}


def settings_from_options(options: Mapping[str, str]) -> ReaderSettings:
    """The settings that `reader_options` wrote."""
    pipeline = json.loads(options["pipeline"])
    return ReaderSettings(
        PipelineSettings(**{**pipeline, "scratch": Path(pipeline["scratch"])}),
        json_logs=options["json_logs"] == "True",
    )
