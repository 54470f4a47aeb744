"""What the tests of most parts need."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bucketwire.metabase import open_metabase
from bucketwire.metabase.base import Metabase


@pytest.fixture
def metabase(tmp_path: Path) -> Iterator[Metabase]:
    """A new one, in the folder of the test."""
    opened = open_metabase(f"sqlite:///{tmp_path}/metabase.db")
    yield opened
    opened.close()
