"""Every test of a metabase contract runs on every backend listed here.

A backend is a way to get the URL of an empty metabase, and a way to hold a write open in it: `HeldWrite`
commits nothing before `release` is set, whatever others do meanwhile.
"""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pytest

from bucketwire.event.name import Operation
from bucketwire.metabase import mutations, open_metabase
from bucketwire.metabase.base import Metabase
from bucketwire.metabase.postgres.rows import Partitions, PostgresRows
from bucketwire.metabase.sqlite.objects import SqliteRows
from factories import new_object, origin


@dataclass(frozen=True)
class Backend:
    url: Callable[[pytest.FixtureRequest, Path], str]
    held: Callable[[Any, Callable[[mutations.Rows], None]], None]
    """Runs the callable in a transaction, which commits when it returns."""


def sqlite_url(_: pytest.FixtureRequest, folder: Path) -> str:
    return f"sqlite:///{folder}/metabase.db"


def postgres_url(request: pytest.FixtureRequest, _: Path) -> str:
    return str(request.getfixturevalue("postgres_server").create_database())


def run_in_sqlite(metabase: Any, job: Callable[[mutations.Rows], None]) -> None:
    metabase._writers[0].run(lambda work: job(SqliteRows(work, metabase.rules)))


def run_in_postgres(metabase: Any, job: Callable[[mutations.Rows], None]) -> None:
    metabase._database.run(lambda work: job(PostgresRows(work, metabase.rules, Partitions())))


BACKENDS = {
    "sqlite": Backend(sqlite_url, run_in_sqlite),
    "postgresql": Backend(postgres_url, run_in_postgres),
}


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> Backend:
    return BACKENDS[request.param]


@pytest.fixture
def metabase_url(backend: Backend, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return backend.url(request, tmp_path)


@pytest.fixture
def metabase(metabase_url: str) -> Iterator[Metabase]:
    opened = open_metabase(metabase_url)
    yield opened
    opened.close()


@pytest.fixture
def bucket(metabase: Metabase) -> str:
    return metabase.buckets.create("media", "owner-1", "us-east-1").name


class HeldWrite:
    """A put that has its stamp, and commits when `release` is set."""

    def __init__(
        self, run: Callable[[Callable[[mutations.Rows], None]], None], bucket: str, key: str
    ) -> None:
        self.stamped, self.release = threading.Event(), threading.Event()
        self._put = (bucket, new_object(key), Operation.PUT, origin())
        self._thread = threading.Thread(target=run, args=(self._job,))

    def __enter__(self) -> Self:
        self._thread.start()
        assert self.stamped.wait(30)
        return self

    def __exit__(self, *_: object) -> None:
        self.release.set()
        self._thread.join(30)

    def _job(self, rows: mutations.Rows) -> None:
        mutations.put(rows, *self._put)
        self.stamped.set()
        assert self.release.wait(30)


@pytest.fixture
def hold_write(backend: Backend, metabase: Metabase) -> Callable[[str, str], HeldWrite]:
    """(bucket, key) -> a write that is under way."""
    return lambda bucket, key: HeldWrite(lambda job: backend.held(metabase, job), bucket, key)
