"""The sweep: what nothing uses goes, everything else stays."""

import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bucketwire.blobs import Blobs
from bucketwire.errors import ConfigError, Unavailable
from bucketwire.event.name import Operation
from bucketwire.gateway.housekeeping import housekeeping
from bucketwire.gateway.sweep import Swept, sweep
from bucketwire.metabase.base import Metabase
from bucketwire.metabase.values import Part, Upload
from factories import new_object, origin
from wire import until


@pytest.fixture
def metabase(metabase: Metabase) -> Metabase:
    metabase.buckets.create("media", "owner-1", "us-east-1")
    return metabase


@pytest.fixture
def blobs(tmp_path: Path) -> Blobs:
    return Blobs(f"file://{tmp_path}/objects")


def write(blobs: Blobs) -> str:
    writer = blobs.writer()
    writer.write(b"hello")
    return writer.commit()


def exists(blobs: Blobs, name: str) -> bool:
    try:
        blobs.open(name).close()
    except FileNotFoundError:
        return False
    return True


def tomorrow(hours: int = 25) -> datetime:
    return datetime.now(UTC) + timedelta(hours=hours)


@pytest.mark.parametrize("count", [3, 250])
def test_what_cannot_be_removed_keeps_nothing_else(
    metabase: Metabase, blobs: Blobs, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    names = [write(blobs) for _ in range(count)]
    for name in names:
        metabase.objects.put("media", new_object("a", blob=name), Operation.PUT, origin())
    metabase.objects.delete("media", "a", origin(), missing_transmits=False)
    stuck, orphan = metabase.objects.dropped_blobs(count)[0], write(blobs)
    metabase.objects.put("media", new_object("kept", blob=write(blobs)), Operation.PUT, origin())
    remove = blobs.remove

    def refuse(name: str) -> None:
        if name == stuck:
            raise Unavailable("the bytes of objects cannot be reached")
        remove(name)

    monkeypatch.setattr(blobs, "remove", refuse)
    assert sweep(metabase.objects, blobs, tomorrow()) == Swept(count - 1, 1, 0)
    assert metabase.objects.dropped_blobs(count) == [stuck]
    assert not exists(blobs, orphan)
    monkeypatch.undo()
    assert sweep(metabase.objects, blobs, tomorrow()) == Swept(1, 0, 0)


def test_objects_and_parts_keep_their_bytes_and_orphans_go_after_a_day(
    metabase: Metabase, blobs: Blobs
) -> None:
    of_object, of_part, orphan = (write(blobs) for _ in range(3))
    metabase.objects.put("media", new_object("a", blob=of_object), Operation.PUT, origin())
    upload = metabase.uploads.create("media", Upload("u", "b", "owner-1", 0))
    metabase.uploads.put_part("media", "b", upload.id, Part(1, 5, "etag", of_part))
    assert sweep(metabase.objects, blobs, tomorrow(23)) == Swept(0, 0, 0)
    assert sweep(metabase.objects, blobs, tomorrow()) == Swept(0, 1, 0)
    assert [exists(blobs, name) for name in (of_object, of_part, orphan)] == [True, True, False]
    assert sweep(metabase.objects, blobs, tomorrow()) == Swept(0, 0, 0)


def test_dropped_bytes_go_at_once_and_an_upload_under_way_goes_on(metabase: Metabase, blobs: Blobs) -> None:
    metabase.objects.put("media", new_object("a", blob=write(blobs)), Operation.PUT, origin())
    metabase.objects.delete("media", "a", origin(), missing_transmits=False)
    slow = blobs.writer()
    slow.write(b"hello")
    assert sweep(metabase.objects, blobs, tomorrow()) == Swept(1, 0, 0)
    assert exists(blobs, slow.commit())


def test_bytes_that_seem_to_be_of_another_metabase_are_left_alone(metabase: Metabase, blobs: Blobs) -> None:
    names = [write(blobs) for _ in range(101)]
    with pytest.raises(ConfigError, match="101 of 101"):
        sweep(metabase.objects, blobs, tomorrow())
    assert all(exists(blobs, name) for name in names)


def test_the_clock_sweeps_and_ends_with_its_gateway(metabase: Metabase, blobs: Blobs) -> None:
    name = write(blobs)
    metabase.objects.put("media", new_object("a", blob=name), Operation.PUT, origin())
    metabase.objects.delete("media", "a", origin(), missing_transmits=False)
    with housekeeping(metabase, blobs, 0.01, 168):
        until(lambda: not exists(blobs, name), 10, lambda: "not swept")
    assert "housekeeping" not in [thread.name for thread in threading.enumerate()]
