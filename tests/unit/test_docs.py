"""What is written from the code is what the code says."""

from pathlib import Path

import pytest
from docs.generate import DIALECT_PAGE, pages, with_dialect_tables

from bucketwire.event.dialect import DIALECTS

PAGES = pages()


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_a_page_that_is_written_from_the_code_is_up_to_date(path: Path) -> None:
    assert path.read_text() == PAGES[path], "run `make docs`"


def test_the_page_shows_every_value_of_every_dialect_as_it_is() -> None:
    page = DIALECT_PAGE.read_text()
    assert with_dialect_tables(page) == page, "run `make docs`"
    assert all(f"| `{name}` |" in page for name in DIALECTS)


def test_a_value_that_is_in_no_table_is_an_error_that_names_it() -> None:
    page = DIALECT_PAGE.read_text().replace(" max_rules\n", "\n")
    with pytest.raises(SystemExit, match="no table for max_rules"):
        with_dialect_tables(page)


def test_a_table_that_is_out_of_date_is_written_anew() -> None:
    page = DIALECT_PAGE.read_text()
    assert with_dialect_tables(page.replace("| `aws:s3` |", "| `other:s3` |")) == page
