"""What must hold of the change stream when writers race, and when one of them is slow to commit."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import pytest

from bucketwire.errors import Conflict, InvalidRequest, NotFound
from bucketwire.event.change import ObjectChange, Versioning, decode_change
from bucketwire.event.name import Operation
from bucketwire.metabase import open_metabase
from bucketwire.metabase.base import Metabase
from bucketwire.metabase.values import Condition, Offset, Slice
from factories import new_object, origin, rule

ALL = 1_000_000
WRITERS = 8


@pytest.fixture
def watched(metabase: Metabase, bucket: str) -> str:
    metabase.rules.edit(bucket, lambda _: [rule()])
    return bucket


def read(metabase: Metabase, start: Offset, end: Offset) -> list[ObjectChange]:
    return [decode_change(row) for row in metabase.changes.read(Slice(start, end))]


def put(metabase: Metabase, bucket: str, key: str, content: bytes = b"x") -> None:
    metabase.objects.put(bucket, new_object(key, content=content), Operation.PUT, origin())


def test_a_write_that_commits_late_is_not_skipped(
    metabase: Metabase, watched: str, hold_write: Callable[[str, str], Any]
) -> None:
    start = metabase.changes.start()
    with ThreadPoolExecutor(3) as others, hold_write(watched, "slow"):
        jobs = [others.submit(put, metabase, watched, f"quick-{n}") for n in range(3)]
        passed = metabase.changes.wait(start, ALL, timeout_seconds=0.2)
        before = read(metabase, start, passed)
    for job in jobs:
        job.result()
    after = read(metabase, passed, metabase.changes.head(passed, ALL))
    assert sorted(each.key for each in before + after) == ["quick-0", "quick-1", "quick-2", "slow"]


def test_a_trim_passes_no_write_that_commits_late(
    metabase: Metabase, watched: str, hold_write: Callable[[str, str], Any]
) -> None:
    put(metabase, watched, "first")
    with hold_write(watched, "slow"):
        passed = metabase.changes.head(metabase.changes.start(), ALL)
        other = threading.Thread(target=put, args=(metabase, watched, "quick"))
        other.start()
        seen = metabase.changes.wait(passed, ALL, timeout_seconds=0.1)
    other.join()
    metabase.changes.trim(seen)
    rest = read(metabase, seen, metabase.changes.head(seen, ALL))
    assert "slow" in {each.key for each in rest}


@pytest.mark.parametrize("versioning", Versioning)
def test_writers_that_race_on_one_key_are_in_commit_order(
    metabase: Metabase, metabase_url: str, watched: str, versioning: Versioning
) -> None:
    if versioning is not Versioning.UNVERSIONED:
        metabase.buckets.set_versioning(watched, versioning)
    other = open_metabase(metabase_url)

    def race(writer: int) -> None:
        gateway = (metabase, other)[writer % 2]
        for turn in range(8):
            put(gateway, watched, "contended", f"{writer}-{turn}".encode())
            if (writer + turn) % 3 == 0:
                gateway.objects.delete(watched, "contended", origin(), missing_transmits=True)

    with ThreadPoolExecutor(WRITERS) as writers:
        list(writers.map(race, range(WRITERS)))
    put(other, watched, "contended", b"last")
    other.close()
    start = metabase.changes.start()
    changes = read(metabase, start, metabase.changes.head(start, ALL))
    times = [each.committed_at_ns for each in changes]
    assert times == sorted(set(times))
    assert sum(each.operation is Operation.PUT for each in changes) == WRITERS * 8 + 1
    current = metabase.objects.get(watched, "contended")
    assert (current.inline, current.created_at_ns) == (b"last", changes[-1].committed_at_ns)
    assert follows_from_one_another(changes, versioning)


def follows_from_one_another(changes: list[ObjectChange], versioning: Versioning) -> bool:
    """Whether each change took away just what the one before had put there."""
    if versioning is Versioning.ENABLED:
        return all(each.old is None for each in changes)
    return all(later.old == earlier.new for earlier, later in pairwise(changes))


def test_of_many_conditional_writes_at_once_one_wins(metabase: Metabase, watched: str) -> None:
    def create(writer: int) -> bool:
        try:
            metabase.objects.put(
                watched,
                new_object("once", content=str(writer).encode()),
                Operation.PUT,
                origin(),
                Condition(if_none_match="*"),
            )
        except InvalidRequest:
            return False
        return True

    with ThreadPoolExecutor(WRITERS) as writers:
        assert sum(writers.map(create, range(WRITERS))) == 1
    start = metabase.changes.start()
    assert len(read(metabase, start, metabase.changes.head(start, ALL))) == 1


def test_moves_in_both_directions_at_once_lose_nothing(metabase: Metabase, watched: str) -> None:
    metabase.buckets.create("archive", "owner-1", "us-east-1")
    places = [(watched, "a"), ("archive", "b")]
    put(metabase, watched, "a")

    def swing(writer: int) -> None:
        (bucket, key), (to_bucket, to_key) = places if writer % 2 else places[::-1]
        for _ in range(6):
            try:
                metabase.objects.move(bucket, key, to_bucket, to_key, origin())
            except NotFound:
                continue

    with ThreadPoolExecutor(4) as writers:
        list(writers.map(swing, range(4)))
    left = [
        listed.key
        for bucket, _ in places
        for listed in metabase.objects.page(bucket, prefix="", delimiter="", after="", limit=9).objects
    ]
    assert len(left) == 1
    start = metabase.changes.start()
    times = [each.committed_at_ns for each in read(metabase, start, metabase.changes.head(start, ALL))]
    assert times == sorted(set(times))


def test_rules_that_change_while_others_write_hold_for_each_write_as_a_whole(
    metabase: Metabase, metabase_url: str, watched: str
) -> None:
    other = open_metabase(metabase_url)
    bucket_id = metabase.buckets.get(watched).id

    def edit() -> None:
        for turn in range(15):
            metabase.rules.edit(watched, lambda _, turn=turn: [rule(id=f"r{turn}")])

    def write(writer: int) -> None:
        for turn in range(15):
            put(other, watched, f"{writer}-{turn}")

    with ThreadPoolExecutor(4) as workers:
        jobs = [workers.submit(edit), *(workers.submit(write, writer) for writer in range(3))]
        for job in jobs:
            job.result()
    other.close()
    start = metabase.changes.start()
    changes = read(metabase, start, metabase.changes.head(start, ALL))
    assert len(changes) == 45
    for each in changes:
        by_time = metabase.rules.at(bucket_id, each.committed_at_ns)
        assert each.revision is not None
        assert metabase.rules.at(bucket_id, each.revision) == by_time


def test_a_bucket_that_is_deleted_while_others_write_keeps_no_object(metabase: Metabase) -> None:
    def write(turn: int) -> bool:
        try:
            put(metabase, f"short-{turn}", "key")
        except NotFound:
            return False
        return metabase.objects.get(f"short-{turn}", "key").key == "key"

    def delete(turn: int) -> bool:
        try:
            metabase.buckets.delete(f"short-{turn}")
        except Conflict:
            return False
        return True

    with ThreadPoolExecutor(4) as workers:
        for turn in range(10):
            metabase.buckets.create(f"short-{turn}", "owner-1", "us-east-1")
            written, deleted = workers.submit(write, turn), workers.submit(delete, turn)
            assert written.result() is not deleted.result()
