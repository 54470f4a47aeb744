"""One running system for all tests that do not break it, and a maker of others for those that do."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from services.http_endpoint import HttpEndpoint
from wire import System


@pytest.fixture(scope="session")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    with System(tmp_path_factory.mktemp("system")) as running:
        yield running


@pytest.fixture
def own_system(tmp_path: Path) -> Iterator[Callable[[], System]]:
    """A system that the test may break."""
    made: list[System] = []

    def make() -> System:
        made.append(System(tmp_path).start())
        return made[-1]

    yield make
    for each in made:
        each.__exit__()


@pytest.fixture
def endpoint() -> Iterator[HttpEndpoint]:
    with HttpEndpoint() as listening:
        yield listening


@pytest.fixture
def other_endpoint() -> Iterator[HttpEndpoint]:
    with HttpEndpoint() as listening:
        yield listening
