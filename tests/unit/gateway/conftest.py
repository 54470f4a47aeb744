"""One application for the tests of a module."""

from collections.abc import Iterator

import pytest

from gateway.in_process import InProcess


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    app = InProcess(tmp_path_factory.mktemp("app"))
    assert app.signed("PUT", "/media").status == 200
    yield app
    app.close()
