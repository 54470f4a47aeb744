"""The page about dialects is what the code says."""

import pytest
from docs.generate import DIALECT_PAGE, with_dialect_tables

from bucketwire.event.dialect import DIALECTS


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
