"""Notes of what was delivered: they spare repetitions, and nothing depends on them."""

import time
from pathlib import Path

import msgspec
import pytest

from bucketwire.event.message import Message
from bucketwire.pipeline import receipts as receipts_module
from bucketwire.pipeline.receipts import FILES_KEPT, Receipts
from factories import message

IDS = ("a" * 32, "b" * 32, "c" * 32)


def messages(*ids: str, committed_at_ns: int = 1) -> list[Message]:
    return [msgspec.structs.replace(message(each), committed_at_ns=committed_at_ns) for each in ids]


def opened(folder: Path) -> Receipts:
    receipts = Receipts(folder)
    receipts.read()
    return receipts


def test_what_a_worker_noted_another_that_starts_later_has(tmp_path: Path) -> None:
    Receipts(tmp_path / "receipts").note(messages(*IDS[:2]))
    later = opened(tmp_path / "receipts")
    assert [later.has(each) for each in messages(*IDS)] == [True, True, False]


def test_notes_of_several_workers_are_read_together(tmp_path: Path) -> None:
    first, second = Receipts(tmp_path), Receipts(tmp_path)
    first.note(messages(IDS[0]))
    second.note(messages(IDS[1]))
    first.note(messages(IDS[2]))
    assert all(opened(tmp_path).has(each) for each in messages(*IDS))


def test_a_worker_that_reads_again_learns_what_others_noted_since(tmp_path: Path) -> None:
    early = opened(tmp_path)
    Receipts(tmp_path).note(messages(IDS[0]))
    assert not early.has(messages(IDS[0])[0])
    early.read()
    assert early.has(messages(IDS[0])[0])


def test_what_was_read_before_a_query_was_started_anew_is_read_again(tmp_path: Path) -> None:
    early = opened(tmp_path)
    Receipts(tmp_path).note(messages(IDS[0]))
    early.outdate(0)
    assert not early.has(messages(IDS[0])[0])
    early.outdate(time.time_ns() + 10**9)
    assert early.has(messages(IDS[0])[0])


def test_a_change_that_is_newer_than_the_notes_ends_the_looking(tmp_path: Path) -> None:
    Receipts(tmp_path).note(messages(IDS[0]))
    receipts = opened(tmp_path)
    (newer,) = messages(IDS[1], committed_at_ns=time.time_ns() + 10**9)
    assert not receipts.has(newer)
    assert not receipts.has(messages(IDS[0])[0]), "its memory is given back"


def test_files_are_bounded_and_the_newest_notes_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receipts_module, "FILE_BYTES", 33 * 10)
    writer, other = Receipts(tmp_path), Receipts(tmp_path)
    ids = [f"{number:032x}" for number in range(200)]
    for first in range(0, 200, 10):
        (writer if first % 20 else other).note(messages(*ids[first : first + 10]))
    assert len(list(tmp_path.iterdir())) <= FILES_KEPT
    later = opened(tmp_path)
    assert all(later.has(each) for each in messages(*ids[-20:]))
    assert not later.has(messages(ids[0])[0])


def test_without_a_place_to_note_all_goes_on(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    receipts = opened(tmp_path / "file")
    receipts.note(messages(IDS[0]))
    assert not receipts.has(messages(IDS[0])[0])


def test_a_damaged_file_counts_for_nothing(tmp_path: Path) -> None:
    Receipts(tmp_path).note(messages(IDS[0]))
    next(tmp_path.iterdir()).write_bytes(b"\xff\xfe\x00")
    assert not opened(tmp_path).has(messages(IDS[0])[0])
