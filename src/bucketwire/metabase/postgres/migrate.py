"""Schema migrations: numbered SQL files, applied once each, in order, all in one transaction.

`schema_version` holds the number of the last one. Gateways that start at once wait for each other on a
lock; the second finds the work done.

Processes of the version before go on working while a migration runs and after it. So a migration only adds:
tables, columns that have a default, functions. It never adds an index to a table that may be large: writers
would wait until it is built, and CONCURRENTLY, which spares them that, is refused in a transaction. One that
older processes could not work with sets `oldest_schema` to its own number, and they refuse the database.
"""

import time
from importlib.resources import files

import psycopg
from psycopg import IsolationLevel
from psycopg.errors import DeadlockDetected, LockNotAvailable

from bucketwire.errors import ConfigError, Unavailable
from bucketwire.metabase.postgres.connection import Row, check_url, translated

_LOCK = "SELECT pg_advisory_xact_lock(4850155862713170)"
_TABLE = "CREATE TABLE IF NOT EXISTS schema_version (version integer NOT NULL)"
_SHORT_WAITS = "SET LOCAL lock_timeout = '300ms'"
"""Whoever wants a table that a migration waits for waits behind it."""
_PAUSE_SECONDS = 0.5
PATIENCE_SECONDS = 30.0
_OLDEST_SERVER = 140_000


def migrate(url: str) -> tuple[int, int]:
    """Bring the database to the newest version of the schema: the version that it had, and the one it has.

    One that a newer Bucketwire has written stays as it is, and is refused only if that says so.
    """
    migrations = load_migrations()
    with translated(), psycopg.connect(check_url(url), connect_timeout=5, autocommit=True) as connection:
        connection.isolation_level = IsolationLevel.READ_COMMITTED  # who waited sees what was done
        _check_server(connection)
        known = _version(connection)
        if known > len(migrations):
            _check_newer(connection, known, len(migrations))
        elif known < len(migrations):
            _apply_patiently(connection, migrations)
    return known, max(known, len(migrations))


def load_migrations() -> list[str]:
    """The SQL of each migration, in order."""
    folder = files("bucketwire.metabase.postgres") / "migrations"
    return [entry.read_text() for entry in sorted(folder.iterdir(), key=lambda entry: entry.name)]


def _check_server(connection: psycopg.Connection[Row]) -> None:
    if connection.info.server_version < _OLDEST_SERVER:
        raise ConfigError("the metabase needs PostgreSQL 14 or newer")
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise ConfigError(f"the database is in {encoding}: create it with ENCODING 'UTF8'")


def _check_newer(connection: psycopg.Connection[Row], version: int, ours: int) -> None:
    row = connection.execute("SELECT version FROM oldest_schema").fetchone()
    if row is None or row[0] > ours:
        raise ConfigError(
            f"the database was written by a newer Bucketwire (schema {version}, this one knows {ours}): "
            "upgrade, or use another database"
        )


def _apply_patiently(connection: psycopg.Connection[Row], migrations: list[str]) -> None:
    """Step back from a lock that is not free at once, and try again: writers must not queue up behind it."""
    ends = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return _apply(connection, migrations)
        except (LockNotAvailable, DeadlockDetected) as error:
            if time.monotonic() > ends:
                raise Unavailable(
                    "the schema cannot be brought up to date while a long transaction, such as a backup, "
                    "holds its tables: try again when that is done"
                ) from error
        time.sleep(_PAUSE_SECONDS)


def _apply(connection: psycopg.Connection[Row], migrations: list[str]) -> None:
    with connection.transaction():
        connection.execute(_LOCK)
        connection.execute(_TABLE)
        version = _version(connection)
        if version >= len(migrations):
            return
        connection.execute(_SHORT_WAITS)
        for script in migrations[version:]:
            connection.execute(script.encode())
        connection.execute("DELETE FROM schema_version")
        connection.execute("INSERT INTO schema_version (version) VALUES (%s)", (len(migrations),))


def _version(connection: psycopg.Connection[Row]) -> int:
    exists = connection.execute("SELECT to_regclass('schema_version') IS NOT NULL").fetchone()
    if not exists or not exists[0]:
        return 0
    row = connection.execute("SELECT max(version) FROM schema_version").fetchone()
    return int(row[0] or 0) if row else 0
