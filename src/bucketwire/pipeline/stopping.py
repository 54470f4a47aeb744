"""How the driver asks the sources, which live in other processes, for no more batches: by a file in scratch.

A query that is stopped outright loses the batch under way, and repeats it at the next start. One that was
asked first finishes it, and saves the cursor.
"""

from pathlib import Path

from bucketwire.config import PipelineSettings
from bucketwire.pipeline.scratch import spark_files


def ask_stop(settings: PipelineSettings) -> None:
    """From now on the sources give no new batch. Lasts until the next session is opened."""
    _flag(settings).touch()


def stop_asked(settings: PipelineSettings) -> bool:
    """Whether the driver wants to stop."""
    return _flag(settings).exists()


def _flag(settings: PipelineSettings) -> Path:
    return spark_files(settings) / "stopping"
