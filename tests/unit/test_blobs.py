"""Blobs, on a local disk and on another file system."""

import errno
import os
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bucketwire.blobs import Blobs
from bucketwire.errors import Unavailable


@pytest.fixture(params=["file", "memory"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> Blobs:
    return Blobs(f"file://{tmp_path}/objects" if request.param == "file" else f"memory://{uuid.uuid4().hex}")


def before() -> datetime:
    return datetime.now(UTC) - timedelta(hours=1)


def after() -> datetime:
    return datetime.now(UTC) + timedelta(hours=1)


def write(blobs: Blobs, *pieces: bytes) -> str:
    writer = blobs.writer()
    for piece in pieces:
        writer.write(piece)
    return writer.commit()


def test_what_was_committed_is_read_back_from_any_offset(blobs: Blobs) -> None:
    name = write(blobs, b"hello ", b"world")
    with blobs.open(name) as stream:
        assert stream.read() == b"hello world"
    with blobs.open(name, 6) as stream:
        assert stream.read(3) == b"wor"


def test_an_empty_blob_is_one_too(blobs: Blobs) -> None:
    with blobs.open(write(blobs)) as stream:
        assert stream.read() == b""


def test_names_differ_and_spread_over_folders(blobs: Blobs) -> None:
    names = {write(blobs) for _ in range(20)}
    assert len(names) == 20
    assert len({name[:2] for name in names}) > 1


def test_blobs_are_listed_once_they_were_written_before_a_time(blobs: Blobs) -> None:
    names = sorted(write(blobs, b"x") for _ in range(5))
    assert [name for found in blobs.names_before(before()) for name in found] == []
    assert sorted(name for found in blobs.names_before(after()) for name in found) == names


def test_what_a_dead_writer_left_is_removed_and_a_living_one_is_left_alone(tmp_path: Path) -> None:
    blobs = Blobs(f"file://{tmp_path}/objects")
    assert blobs.remove_unfinished(after()) == 0
    dead, living = blobs.writer(), blobs.writer()
    living.write(b"slow")
    dead._file.close()  # type: ignore[attr-defined]
    assert blobs.remove_unfinished(before()) == 0
    assert blobs.remove_unfinished(after()) == 1
    with blobs.open(living.commit()) as stream:
        assert stream.read() == b"slow"


def test_a_removed_blob_is_gone_and_removing_it_again_is_harmless(blobs: Blobs) -> None:
    name = write(blobs, b"x")
    blobs.remove(name)
    blobs.remove(name)
    with pytest.raises(FileNotFoundError):
        blobs.open(name)


def test_abort_leaves_nothing_and_does_not_undo_a_commit(tmp_path: Path) -> None:
    blobs = Blobs(f"file://{tmp_path}/objects")
    writer = blobs.writer()
    writer.write(b"x")
    writer.abort()
    writer.abort()
    assert not any(path.is_file() for path in tmp_path.rglob("*"))
    kept = blobs.writer()
    name = kept.commit()
    kept.abort()
    with blobs.open(name) as stream:
        assert stream.read() == b""


def test_abort_on_another_file_system_leaves_nothing() -> None:
    blobs = Blobs(f"memory://{uuid.uuid4().hex}")
    writer = blobs.writer()
    writer.write(b"x")
    writer.abort()
    assert not blobs._files.find(str(blobs._root))


def test_file_and_folder_are_flushed_before_commit_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[str] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        flushed.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    name = write(Blobs(f"file://{tmp_path}/objects"), b"x")
    assert flushed == [
        f"{tmp_path}/objects/unfinished/{name}",
        f"{tmp_path}/objects",
        f"{tmp_path}/objects/{name[:2]}",
    ]


def test_a_full_disk_is_unavailable_and_names_no_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(tmp_path))

    writer = Blobs(f"file://{tmp_path}/objects").writer()
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(Unavailable) as raised:
        writer.commit()
    assert str(tmp_path) not in str(raised.value)
    writer.abort()


@pytest.mark.parametrize("scheme", ["file", "memory"])
def test_a_copy_outlives_the_blob_it_was_made_of(tmp_path: Path, scheme: str) -> None:
    blobs = Blobs(f"{scheme}://{tmp_path}/objects")
    name = write(blobs, b"hello")
    copied = blobs.copy(name)
    blobs.remove(name)
    with blobs.open(copied) as stream:
        assert stream.read() == b"hello"
    with pytest.raises(FileNotFoundError):
        blobs.copy(name)


def test_a_run_of_blobs_reads_as_one_from_any_offset(blobs: Blobs) -> None:
    run = [(write(blobs, b"hello "), 6), (write(blobs), 0), (write(blobs, b"world"), 5)]
    for offset in range(11):
        stream = blobs.open_run(run, offset)
        content = b"".join(iter(lambda stream=stream: stream.read(4), b""))
        stream.close()
        assert content == b"hello world"[offset:]


def test_a_later_blob_that_is_gone_is_unavailable(blobs: Blobs) -> None:
    run = [(write(blobs, b"hello "), 6), (write(blobs, b"world"), 5)]
    stream = blobs.open_run(run)
    blobs.remove(run[1][0])
    assert stream.read(6) == b"hello "
    with pytest.raises(Unavailable):
        stream.read(1)
    stream.close()
