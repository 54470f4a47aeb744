"""The contract of `Changes`: no holes, exact repeats, and nothing behind the head."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bucketwire.errors import ChangesTrimmed
from bucketwire.event.change import decode_change
from bucketwire.event.name import Operation
from bucketwire.metabase import open_metabase
from bucketwire.metabase.base import Metabase
from bucketwire.metabase.values import Offset, Slice
from factories import new_object, origin, rule

ALL = 1_000_000
HOUR_NS = 3_600_000_000_000


@pytest.fixture
def watched(metabase: Metabase, bucket: str) -> str:
    """A bucket whose every write is a change."""
    metabase.rules.edit(bucket, lambda _: [rule()])
    return bucket


def write(metabase: Metabase, bucket: str, *keys: str) -> None:
    for key in keys:
        metabase.objects.put(bucket, new_object(key), Operation.PUT, origin())


def keys_of(metabase: Metabase, start: Offset, end: Offset) -> list[str]:
    return [decode_change(row).key for row in metabase.changes.read(Slice(start, end))]


def test_the_head_stays_where_nothing_happened(metabase: Metabase) -> None:
    start = metabase.changes.start()
    assert metabase.changes.head(start, ALL) == start
    assert metabase.changes.wait(start, ALL, timeout_seconds=0.01) == start


def test_a_slice_reads_the_same_twice_in_commit_order(metabase: Metabase, watched: str) -> None:
    start = metabase.changes.start()
    write(metabase, watched, "a", "c", "b")
    end = metabase.changes.head(start, ALL)
    assert keys_of(metabase, start, end) == ["a", "c", "b"]
    assert keys_of(metabase, start, end) == ["a", "c", "b"]


def test_the_head_admits_about_as_many_as_it_is_asked_for(metabase: Metabase, watched: str) -> None:
    start = metabase.changes.start()
    write(metabase, watched, *"abcdefgh")
    middle = metabase.changes.head(start, 3)
    assert 3 <= len(keys_of(metabase, start, middle)) < 8
    end = metabase.changes.head(middle, ALL)
    assert keys_of(metabase, start, middle) + keys_of(metabase, middle, end) == list("abcdefgh")


def test_waiting_ends_when_a_change_commits(metabase: Metabase, watched: str) -> None:
    start = metabase.changes.start()
    timer = threading.Timer(0.05, write, (metabase, watched, "late"))
    timer.start()
    head = metabase.changes.wait(start, ALL, timeout_seconds=30)
    timer.join()
    assert keys_of(metabase, start, head) == ["late"]


def test_trimmed_changes_are_missed_loudly(metabase: Metabase, watched: str) -> None:
    start = metabase.changes.start()
    write(metabase, watched, "a", "b")
    middle = metabase.changes.head(start, ALL)
    write(metabase, watched, "c")
    metabase.changes.trim(middle)
    metabase.changes.trim(middle)
    assert metabase.changes.start() == middle
    assert keys_of(metabase, middle, metabase.changes.head(middle, ALL)) == ["c"]
    with pytest.raises(ChangesTrimmed):
        metabase.changes.head(start, ALL)
    with pytest.raises(ChangesTrimmed):
        keys_of(metabase, start, middle)


def test_changes_committed_before_a_time_are_trimmed(metabase: Metabase, watched: str) -> None:
    def left(before_ns: int) -> list[str]:
        start = metabase.changes.trim_before(before_ns)
        assert start == metabase.changes.start()
        return keys_of(metabase, start, metabase.changes.head(start, ALL))

    assert left(time.time_ns()) == []
    write(metabase, watched, *"abc")
    second_ns, third_ns = (metabase.objects.get(watched, key).created_at_ns for key in "bc")
    assert left(second_ns) == ["b", "c"]
    assert left(second_ns) == ["b", "c"]
    assert left(third_ns + 1) == []
    write(metabase, watched, "d")
    assert left(third_ns + 1) == ["d"]


def test_a_trimmed_stream_goes_on_where_it_was(metabase: Metabase, metabase_url: str, watched: str) -> None:
    write(metabase, watched, "a")
    end = metabase.changes.head(metabase.changes.start(), ALL)
    metabase.changes.trim(end)
    again = open_metabase(metabase_url)
    try:
        assert again.changes.head(end, ALL) == end
        write(again, watched, "b")
        assert keys_of(again, end, again.changes.head(end, ALL)) == ["b"]
    finally:
        again.close()


@settings(max_examples=25)
@given(count=st.integers(0, 30), slices=st.integers(1, 40))
def test_the_stream_read_in_any_slices_is_the_stream(
    metabase: Metabase, watched: str, count: int, slices: int
) -> None:
    start = metabase.changes.head(metabase.changes.start(), ALL)
    write(metabase, watched, *(f"key-{number}" for number in range(count)))
    end = metabase.changes.head(start, ALL)
    parts = metabase.changes.split(start, end, slices)
    assert len(parts) <= slices
    pieces = [keys_of(metabase, part.start, part.end) for part in parts]
    assert [key for piece in pieces for key in piece] == [f"key-{number}" for number in range(count)]


def test_a_reader_beside_many_writers_misses_nothing_and_sees_time_grow(
    metabase: Metabase, metabase_url: str, watched: str
) -> None:
    reader = open_metabase(metabase_url)
    position = reader.changes.start()
    seen = []
    with ThreadPoolExecutor(8) as writers:
        jobs = [
            writers.submit(write, metabase, watched, *(f"{writer}-{n}" for n in range(25)))
            for writer in range(8)
        ]
        while len(seen) < 200:
            head = reader.changes.wait(position, 7, timeout_seconds=30)
            assert head != position, f"only {len(seen)} of 200 changes came"
            seen += [decode_change(row) for row in reader.changes.read(Slice(position, head))]
            position = head
        for job in jobs:
            job.result()
    reader.close()
    assert {change.key for change in seen} == {f"{writer}-{n}" for writer in range(8) for n in range(25)}
    times = [change.committed_at_ns for change in seen]
    assert times == sorted(set(times))


def set_ahead(monkeypatch: pytest.MonkeyPatch, ahead_ns: int) -> None:
    """The clock of this process; that of a server goes on as it was."""
    real = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: real() + ahead_ns)


def test_age_is_not_measured_by_the_clock_of_a_process_that_is_ahead(
    metabase: Metabase, metabase_url: str, watched: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(metabase, watched, "a")
    written_ns, before_ns = time.time_ns(), time.time_ns() - HOUR_NS
    set_ahead(monkeypatch, 8 * 24 * HOUR_NS)
    ahead = open_metabase(metabase_url)
    try:
        assert before_ns < ahead.changes.clock_ns() < written_ns + HOUR_NS
    finally:
        ahead.close()


def test_age_is_not_measured_by_a_clock_that_jumps_ahead_even_when_changes_are_committed_then(
    metabase: Metabase, watched: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(metabase, watched, "before")
    now_ns = time.time_ns()
    with monkeypatch.context() as jump:
        set_ahead(jump, 365 * 24 * HOUR_NS)
        write(metabase, watched, "during")
        assert metabase.changes.clock_ns() < now_ns + HOUR_NS
    write(metabase, watched, "after")
    assert metabase.changes.clock_ns() < now_ns + HOUR_NS


def test_age_is_measured_by_the_time_that_has_passed(metabase: Metabase, watched: str) -> None:
    write(metabase, watched, "a")
    first_ns = metabase.changes.clock_ns()
    time.sleep(0.01)
    write(metabase, watched, "b")
    assert metabase.changes.clock_ns() > first_ns


@pytest.mark.parametrize("trimmed", [3, 5], ids=["some", "all"])
def test_changes_that_are_trimmed_while_they_are_read_are_not_passed_over(
    metabase: Metabase, watched: str, monkeypatch: pytest.MonkeyPatch, trimmed: int
) -> None:
    for backend in ("sqlite", "postgres"):
        monkeypatch.setattr(f"bucketwire.metabase.{backend}.changes._READ_ROWS", 2)
    start = metabase.changes.start()
    write(metabase, watched, *"abcde")
    reading = metabase.changes.read(Slice(start, metabase.changes.head(start, ALL)))
    assert [decode_change(next(reading)).key for _ in range(2)] == ["a", "b"]
    metabase.changes.trim(metabase.changes.head(start, trimmed))
    with pytest.raises(ChangesTrimmed):
        next(reading)
