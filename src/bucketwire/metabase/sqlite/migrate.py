"""Schema migrations: numbered SQL files, applied once each, in order, all in one transaction.

`PRAGMA user_version` holds the number of the last one. Two processes that start at once are told
apart by SQLite's write lock: the second finds the work done.

Processes of the version before go on working after a migration. So it only adds: tables, columns that have a
default, indexes. One that older processes could not work with sets `oldest_schema` to its own number, and
they refuse the file.
"""

import sqlite3
from contextlib import closing, suppress
from importlib.resources import files
from pathlib import Path

from bucketwire.errors import ConfigError
from bucketwire.metabase.sqlite.connection import connect, translated


def migrate(path: Path, schema: str) -> tuple[int, int]:
    """Bring the file at `path` to the newest version of `schema` (a folder of migrations).

    The version that it had, 0 for a new file, and the one it has. A file that a newer Bucketwire has written
    stays as it is, and is refused only if that says so.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    _create_private(path)
    migrations = load_migrations(schema)
    with closing(connect(path)) as connection, translated():
        known = _version(connection)
        if known > len(migrations) and _oldest(connection) > len(migrations):
            raise ConfigError(
                f"{path.name} was written by a newer Bucketwire (schema {known}, this one knows "
                f"{len(migrations)}): upgrade, or use another data folder"
            )
        if known < len(migrations):
            _apply(connection, migrations)
    return known, max(known, len(migrations))


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
        version = _version(connection)
        for script in migrations[version:]:
            for statement in _statements(script):
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {max(version, len(migrations))}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # a full disk has ended it already
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


def _oldest(connection: sqlite3.Connection) -> int:
    """The oldest schema whose processes can work with the file."""
    return int(connection.execute("SELECT version FROM oldest_schema").fetchone()[0])


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])
