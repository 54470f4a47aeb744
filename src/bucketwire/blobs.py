"""Object bytes that are too many for the metabase, in files of any fsspec file system.

A blob is written under a random name that nothing refers to until the metabase commits it. On local disks it
is written beside, flushed and renamed, so that a name that was given out has its bytes on the disk.
"""

import os
import secrets
from contextlib import suppress
from pathlib import PurePosixPath
from typing import IO, Any, Protocol

import fsspec

from bucketwire.errors import Unavailable

_NAME_BYTES = 16
_LOCAL = "file://"
_UNFINISHED = "unfinished"


class BlobWriter(Protocol):
    """A blob being written. It ends with `commit` or `abort`."""

    def write(self, piece: bytes) -> None:
        """Add the next bytes."""
        ...

    def commit(self) -> str:
        """Make the bytes durable; the name to find them by."""
        ...

    def abort(self) -> None:
        """Forget the bytes. Harmless after `commit`, and when called twice."""
        ...


class Blobs:
    """Blobs below a URL such as `file:///var/lib/bucketwire/objects`. All calls block."""

    def __init__(self, root_url: str) -> None:
        if root_url.startswith(_LOCAL):  # as it is: fsspec would read `::` and the like in a folder's name
            self._files, root = fsspec.filesystem("file"), root_url.removeprefix(_LOCAL)
        else:
            self._files, root = fsspec.core.url_to_fs(root_url)
        self._root = PurePosixPath(root)
        self._local = "file" in _protocols(self._files)

    def writer(self) -> BlobWriter:
        """A new blob."""
        name = _new_name()
        try:
            return (
                _LocalWriter(self._root, name)
                if self._local
                else _PlainWriter(self._files, self._path(name), name)
            )
        except OSError as problem:
            raise _unavailable() from problem

    def open(self, name: str, offset: int = 0) -> IO[bytes]:
        """A stream of the blob's bytes from `offset` on; FileNotFoundError when there is none."""
        try:
            stream: IO[bytes] = self._files.open(self._path(name), "rb")
            stream.seek(offset)
        except FileNotFoundError:
            raise
        except OSError as problem:
            raise _unavailable() from problem
        return stream

    def remove(self, name: str) -> None:
        """Give up the blob's bytes. Calling it twice is harmless."""
        try:
            with suppress(FileNotFoundError):
                self._files.rm_file(self._path(name))
        except OSError as problem:
            raise _unavailable() from problem

    def _path(self, name: str) -> str:
        return str(self._root / name[:2] / name)


class _LocalWriter:
    """Writes beside, then renames."""

    def __init__(self, root: PurePosixPath, name: str) -> None:
        self._name = name
        self._folder = str(root / name[:2])
        self._beside = str(root / _UNFINISHED / name)
        os.makedirs(root / _UNFINISHED, exist_ok=True)  # noqa: PTH103 - a path of fsspec
        self._file = open(self._beside, "xb", buffering=0)  # noqa: PTH123, SIM115 - closed by commit and abort

    def write(self, piece: bytes) -> None:
        try:
            rest = memoryview(piece)
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError as problem:
            raise _unavailable() from problem

    def commit(self) -> str:
        try:
            os.fsync(self._file.fileno())
            self._file.close()
            if not os.path.isdir(self._folder):  # noqa: PTH112
                os.makedirs(self._folder, exist_ok=True)  # noqa: PTH103
                _flush_folder(os.path.dirname(self._folder))  # noqa: PTH120
            os.replace(self._beside, f"{self._folder}/{self._name}")  # noqa: PTH105
            _flush_folder(self._folder)
        except OSError as problem:
            raise _unavailable() from problem
        return self._name

    def abort(self) -> None:
        self._file.close()
        with suppress(FileNotFoundError):
            os.unlink(self._beside)  # noqa: PTH108


class _PlainWriter:
    """Writes to a store whose files appear when they are closed."""

    def __init__(self, files: Any, path: str, name: str) -> None:
        self._files = files
        self._path = path
        self._name = name
        self._committed = False
        files.makedirs(str(PurePosixPath(path).parent), exist_ok=True)
        self._file = files.open(path, "wb")

    def write(self, piece: bytes) -> None:
        try:
            self._file.write(piece)
        except OSError as problem:
            raise _unavailable() from problem

    def commit(self) -> str:
        try:
            self._file.close()
        except OSError as problem:
            raise _unavailable() from problem
        self._committed = True
        return self._name

    def abort(self) -> None:
        if self._committed:
            return
        with suppress(OSError):
            self._file.close()
            self._files.rm_file(self._path)


def _flush_folder(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _new_name() -> str:
    return secrets.token_hex(_NAME_BYTES)


def _protocols(files: Any) -> tuple[str, ...]:
    protocol = files.protocol
    return (protocol,) if isinstance(protocol, str) else tuple(protocol)


def _unavailable() -> Unavailable:
    return Unavailable("The storage of objects is not available. Please try again.")
