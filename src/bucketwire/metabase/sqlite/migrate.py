"""Schema migrations: numbered SQL files, applied once each, in order, one transaction a file.

`PRAGMA user_version` holds the number of the last one. Two processes that start at once are told
apart by SQLite's write lock: the second finds the work done.
"""

import sqlite3
from contextlib import closing, suppress
from importlib.resources import files
from pathlib import Path

from bucketwire.errors import ConfigError
from bucketwire.metabase.sqlite.connection import connect, translated


def migrate(path: Path, schema: str) -> tuple[int, int]:
    """Bring the file at `path` to the newest version of `schema` (a folder of migrations).

    The version that it had, 0 for a new file, and the one it has.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    _create_private(path)
    migrations = load_migrations(schema)
    with closing(connect(path)) as connection, translated():
        known = _version(connection)
        if known > len(migrations):
            raise ConfigError(
                f"{path.name} was written by a newer Bucketwire (schema {known}, this one knows "
                f"{len(migrations)}): upgrade, or use another data folder"
            )
        if known < len(migrations):
            _apply(connection, migrations)
    return known, len(migrations)


def load_migrations(schema: str) -> list[str]:
    """The SQL of each migration, in order."""
    folder = files("bucketwire.metabase.sqlite") / "migrations" / schema
    return [entry.read_text() for entry in sorted(folder.iterdir(), key=lambda entry: entry.name)]


def _create_private(path: Path) -> None:
    """Users' secrets are in the file: it is made for its owner alone, and what SQLite puts beside it too."""
    if not path.exists():
        with suppress(OSError):  # opening it says what is wrong
            path.touch(mode=0o600)


def _apply(connection: sqlite3.Connection, migrations: list[str]) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        for number in range(_version(connection), len(migrations)):
            for statement in _statements(migrations[number]):
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(migrations)}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _statements(script: str) -> list[str]:
    """The statements of a script; `executescript` would commit behind our back."""
    statements, pending = [], ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            statements.append(pending)
            pending = ""
    return statements


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])
