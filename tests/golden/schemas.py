"""The schema files that a reviewer reads: the sum of all migrations, written by `make golden`."""

import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

from bucketwire.metabase.sqlite.migrate import migrate

SCHEMAS = ("metabase", "queue")
_FOLDER = Path(__file__).parents[2] / "src/bucketwire/metabase/sqlite"
_TABLES = "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY name"


def written(schema: str) -> str:
    """What the migrations make of an empty file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fresh.db"
        migrate(path, schema)
        with closing(sqlite3.connect(path)) as connection:
            return "\n\n".join(row[0] + ";" for row in connection.execute(_TABLES)) + "\n"


def path(schema: str) -> Path:
    return _FOLDER / f"{schema}.schema.sql"


if __name__ == "__main__":
    for each in SCHEMAS:
        path(each).write_text(written(each))
