"""A folder for Spark's working files that no other pipeline has, of this program or another.

Folders are numbered; the first one whose lock is free is taken. What a pipeline that is gone left in it is
removed when the session opens.
"""

import fcntl
from itertools import count
from pathlib import Path
from typing import IO

from bucketwire.config import PipelineSettings


def claim_scratch(base: Path) -> tuple[Path, IO[str]]:
    """The folder, and its lock: it is held until the file is closed."""
    for number in count(1):
        folder = base.absolute() / str(number)
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / "lock").open("a")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            continue
        return folder, lock
    raise AssertionError  # numbers do not end


def spark_files(settings: PipelineSettings) -> Path:
    """The part of the folder that is made anew with each session."""
    return settings.scratch.absolute() / "spark"
