"""Object bytes that are too many for the metabase, in files of any fsspec file system.

A blob is written under a random name that nothing refers to until the metabase commits it. On local disks it
is written beside, flushed and renamed, so that a name that was given out has its bytes on the disk.
"""

import fcntl
import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import PurePosixPath
from typing import IO, Any, Protocol

import fsspec

from bucketwire.errors import Unavailable

_NAME_BYTES = 16
_COPY_BYTES = 1024 * 1024
_FOLDER_CHARACTERS = 2
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

    def open_run(self, run: Sequence[tuple[str, int]], offset: int = 0) -> "Readable":
        """A stream over several blobs, one after the other: (name, size) each; FileNotFoundError."""
        rest = list(run)
        while len(rest) > 1 and offset >= rest[0][1]:
            offset -= rest.pop(0)[1]
        return _Run(self, self.open(rest[0][0], offset), [name for name, _ in rest[1:]])

    def copy(self, name: str) -> str:
        """Another blob of the same bytes; FileNotFoundError when there is none."""
        if self._local and (linked := self._linked(name)) is not None:
            return linked
        writer = self.writer()
        try:
            with self.open(name) as stream:
                while piece := stream.read(_COPY_BYTES):
                    writer.write(piece)
            return writer.commit()
        finally:
            writer.abort()

    def remove(self, name: str) -> None:
        """Give up the blob's bytes. Calling it twice is harmless."""
        try:
            with suppress(FileNotFoundError):
                self._files.rm_file(self._path(name))
        except OSError as problem:
            raise _unavailable() from problem

    def names_before(self, cutoff: datetime) -> Iterator[list[str]]:
        """Names of the blobs that were written before then, a folder at a time.

        A file system that keeps no times shows none.
        """
        self._files.invalidate_cache()
        for folder in self._listed(self._root):
            prefix = PurePosixPath(folder["name"]).name
            if folder["type"] == "directory" and len(prefix) == _FOLDER_CHARACTERS:
                found = self._listed(self._root / prefix)
                yield [PurePosixPath(each["name"]).name for each in found if _written_before(each, cutoff)]

    def remove_unfinished(self, cutoff: datetime) -> int:
        """Remove what writers that died before then have left; how many it were."""
        left = [each["name"] for each in self._listed(self._root / _UNFINISHED) if self._local]
        return sum(_remove_unless_locked(path, cutoff.timestamp()) for path in left)

    def _listed(self, folder: PurePosixPath) -> list[dict[str, Any]]:
        try:
            listed: list[dict[str, Any]] = self._files.ls(str(folder), detail=True)
        except FileNotFoundError:
            return []
        except OSError as problem:
            raise _unavailable() from problem
        return listed

    def _linked(self, name: str) -> str | None:
        """A second name for the bytes, which are never written again; None where there are no links."""
        path, linked = self._path(name), _new_name()
        try:
            os.utime(path)  # the new name must not look old enough to be an orphan
            _make_folder(os.path.dirname(self._path(linked)))  # noqa: PTH120
            os.link(path, self._path(linked))
            _flush_folder(os.path.dirname(self._path(linked)))  # noqa: PTH120
        except FileNotFoundError:
            raise
        except OSError:
            return None
        return linked

    def _path(self, name: str) -> str:
        return str(self._root / name[:_FOLDER_CHARACTERS] / name)


class Readable(Protocol):
    """What a stream of bytes is read from."""

    def read(self, count: int) -> bytes:
        """Up to that many bytes; none at the end."""
        ...

    def close(self) -> None:
        """Give it up."""
        ...


class _Run:
    """Blobs read one after the other; each is opened when the one before it has ended."""

    def __init__(self, blobs: Blobs, stream: IO[bytes], names: list[str]) -> None:
        self._blobs = blobs
        self._stream = stream
        self._names = names

    def read(self, count: int) -> bytes:
        piece = self._stream.read(count)
        while not piece and self._names:
            self._stream.close()
            self._stream = self._next()
            piece = self._stream.read(count)
        return piece

    def close(self) -> None:
        self._stream.close()

    def _next(self) -> IO[bytes]:
        """A blob that is gone by now belongs to an object that was replaced since the first was opened."""
        try:
            return self._blobs.open(self._names.pop(0))
        except FileNotFoundError as problem:
            raise _unavailable() from problem


class _LocalWriter:
    """Writes beside, then renames."""

    def __init__(self, root: PurePosixPath, name: str) -> None:
        self._name = name
        self._folder = str(root / name[:2])
        self._beside = str(root / _UNFINISHED / name)
        os.makedirs(root / _UNFINISHED, exist_ok=True)  # noqa: PTH103 - a path of fsspec
        self._file = open(self._beside, "xb", buffering=0)  # noqa: PTH123, SIM115 - closed by commit and abort
        fcntl.flock(self._file, fcntl.LOCK_EX)  # a writer that lives, however slow, is not swept away

    def write(self, piece: bytes) -> None:
        try:
            rest = memoryview(piece)
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError as problem:
            raise _unavailable() from problem

    def commit(self) -> str:
        try:
            os.utime(self._file.fileno())
            os.fsync(self._file.fileno())
            _make_folder(self._folder)
            os.replace(self._beside, f"{self._folder}/{self._name}")  # noqa: PTH105
            self._file.close()
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


def _written_before(listed: dict[str, Any], cutoff: datetime) -> bool:
    """File systems have three names for the time of the last write, and two types."""
    when = listed.get("mtime") or listed.get("LastModified") or listed.get("created")
    if isinstance(when, datetime):
        return when < cutoff
    return isinstance(when, int | float) and when < cutoff.timestamp()


def _remove_unless_locked(path: str, cutoff: float) -> bool:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - a path of fsspec
            if os.fstat(file.fileno()).st_mtime >= cutoff:
                return False
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(path)  # noqa: PTH108
    except (BlockingIOError, FileNotFoundError):
        return False
    except OSError as problem:
        raise _unavailable() from problem
    return True


def _make_folder(path: str) -> None:
    if not os.path.isdir(path):  # noqa: PTH112 - a path of fsspec
        os.makedirs(path, exist_ok=True)  # noqa: PTH103
        _flush_folder(os.path.dirname(path))  # noqa: PTH120


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
