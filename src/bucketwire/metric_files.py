"""The files in which processes count together: no more of them than processes, and safe on a full disk.

The client library makes files for each process and leaves them there when it ends, and Spark ends and starts
processes all day. Here a process goes on counting in the files that a dead one has left. Counters and
histograms are sums, so it does not matter who counted; nothing is moved, so nothing is lost or counted twice.
A process has the lock of each of its files. The system frees a lock when its process is gone, however it
went, and all that it has forked and that have not counted themselves.

A gauge is not a sum: its files are as the library has them, one a process, and stay.

The client library maps a file that is one large hole. When the disk is full, the first write into the hole
ends the process with SIGBUS. Here a file has its blocks before it is mapped; where there are none to be had,
the process counts in its own memory and goes on, and its counts are missing from the page.
"""

import fcntl
import mmap
import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import IO

from prometheus_client import values
from prometheus_client.mmap_dict import MmapedDict

_FIRST_BYTES = 1 << 16
_HEAD = (8).to_bytes(4, sys.byteorder)
"""How much of the file is used: the head and its padding."""
_ENTRY_BYTES = 32
"""What an entry takes beside its name, at most."""


def reserve_metric_files() -> None:
    """Make the client library use these files. To be called before the first metric is made."""
    vars(values)["MmapedDict"] = ReservedFile


class ReservedFile(MmapedDict):
    """Counts by name, in a file that is this process's alone and has its blocks, or in memory."""

    def __init__(self, filename: str, read_mode: bool = False) -> None:  # noqa: FBT001, FBT002 - theirs
        self._lock = None if read_mode else _take(Path(filename))
        if self._lock is not None:
            filename = str(Path(self._lock.name).with_suffix(".db"))
        if read_mode or (self._lock is not None and _make(Path(filename))):
            super().__init__(filename, read_mode)  # type: ignore[no-untyped-call]
            return
        self._fname = filename
        self._used, self._positions = len(_HEAD) * 2, dict[str, int]()
        self._move_to_memory(_HEAD, _FIRST_BYTES)

    def close(self) -> None:
        """Leave the file to another process. In a fork, the parent keeps it."""
        super().close()  # type: ignore[no-untyped-call]
        if self._lock is not None:
            self._lock.close()

    def _init_value(self, key: str) -> None:
        while self._used + len(key.encode()) + _ENTRY_BYTES > self._capacity:
            self._grow()
        super()._init_value(key)  # type: ignore[no-untyped-call]

    def _grow(self) -> None:
        if self._f is not None and _reserve(Path(self._fname), 2 * self._capacity):
            self._capacity *= 2
            self._m = mmap.mmap(self._f.fileno(), self._capacity)
            return
        if self._f is not None:
            self._f.close()
        self._move_to_memory(self._m[: self._used], 2 * self._capacity)

    def _move_to_memory(self, content: bytes, capacity: int) -> None:
        self._f, self._capacity = None, capacity  # type: ignore[assignment]
        self._m = mmap.mmap(-1, capacity)
        self._m[: len(content)] = content


def _take(path: Path) -> IO[bytes] | None:
    """The lock of the first file of that kind that no living process has; None when there is no room."""
    with suppress(OSError):
        for name in _names(path):
            if (lock := _locked(path.with_name(f"{name}.lock"))) is not None:
                return lock
    return None


def _names(path: Path) -> Iterable[str]:
    kind = path.name.partition("_")[0]
    return [path.stem] if kind == "gauge" else (f"{kind}_{number}" for number in count())


def _locked(path: Path) -> IO[bytes] | None:
    lock = path.open("ab")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        lock.close()
        if isinstance(error, BlockingIOError):
            return None
        raise
    return lock


def _make(path: Path) -> bool:
    """Whether the file is there. It has its blocks before its name: an empty one could not be read."""
    if path.exists():
        return True
    new = path.with_suffix(".new")
    with suppress(OSError):
        if _reserve(new, _FIRST_BYTES):
            new.rename(path)
            return True
        new.unlink()
    return False


def _reserve(path: Path, size_bytes: int) -> bool:
    """Whether the disk has room for the file at that size; then it has the room."""
    try:
        with path.open("ab") as file:
            os.posix_fallocate(file.fileno(), 0, size_bytes)
    except OSError:
        return False
    return True
