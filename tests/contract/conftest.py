"""Every test of a metabase contract runs on every backend listed here."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bucketwire.metabase import open_metabase
from bucketwire.metabase.base import Metabase

BACKENDS: dict[str, Callable[[Path], str]] = {
    "sqlite": lambda folder: f"sqlite:///{folder}/metabase.db",
}


@pytest.fixture(params=BACKENDS)
def metabase_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return BACKENDS[request.param](tmp_path)


@pytest.fixture
def metabase(metabase_url: str) -> Iterator[Metabase]:
    opened = open_metabase(metabase_url)
    yield opened
    opened.close()


@pytest.fixture
def bucket(metabase: Metabase) -> str:
    return metabase.buckets.create("media", "owner-1", "us-east-1").name
