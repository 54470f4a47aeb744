"""The files in which processes count together, safe on a full disk.

The client library maps a file that is one large hole. When the disk is full, the first write into the hole
ends the process with SIGBUS. Here a file has its blocks before it is mapped; where there are none to be had,
the process counts in its own memory and goes on, and its counts are missing from the page.
"""

import mmap
import os
import sys
from contextlib import suppress
from pathlib import Path

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
    """Counts by name, in a file whose blocks are reserved, or in memory."""

    def __init__(self, filename: str, read_mode: bool = False) -> None:  # noqa: FBT001, FBT002 - theirs
        if read_mode or _reserve(Path(filename), _FIRST_BYTES):
            super().__init__(filename, read_mode)  # type: ignore[no-untyped-call]
            return
        with suppress(OSError):  # an empty one would be taken for a damaged one
            Path(filename).unlink()
        self._fname = filename
        self._used, self._positions = len(_HEAD) * 2, dict[str, int]()
        self._move_to_memory(_HEAD, _FIRST_BYTES)

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


def _reserve(path: Path, size_bytes: int) -> bool:
    """Whether the disk has room for the file at that size; then it has the room."""
    try:
        with path.open("ab") as file:
            os.posix_fallocate(file.fileno(), 0, size_bytes)
    except OSError:
        return False
    return True
