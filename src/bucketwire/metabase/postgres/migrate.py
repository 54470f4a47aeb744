"""Schema migrations: numbered SQL files, applied once each, in order, all in one transaction.

`schema_version` holds the number of the last one. Gateways that start at once wait for each other on a
lock; the second finds the work done.
"""

from importlib.resources import files

import psycopg

from bucketwire.errors import ConfigError
from bucketwire.metabase.postgres.connection import Row, check_url, translated

_LOCK = "SELECT pg_advisory_xact_lock(4850155862713170)"
_TABLE = "CREATE TABLE IF NOT EXISTS schema_version (version integer NOT NULL)"
_OLDEST_SERVER = 140_000


def migrate(url: str) -> tuple[int, int]:
    """Bring the database to the newest version of the schema: the version that it had, and the one it has."""
    migrations = load_migrations()
    with translated(), psycopg.connect(check_url(url), connect_timeout=5) as connection:
        _check_server(connection)
        known = _version(connection)
        if known > len(migrations):
            raise ConfigError(
                f"the database was written by a newer Bucketwire (schema {known}, this one knows "
                f"{len(migrations)}): upgrade, or use another database"
            )
        if known < len(migrations):
            _apply(connection, migrations)
    return known, len(migrations)


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


def _apply(connection: psycopg.Connection[Row], migrations: list[str]) -> None:
    connection.execute(_LOCK)
    connection.execute(_TABLE)
    for script in migrations[_version(connection) :]:
        connection.execute(script.encode())
    connection.execute("DELETE FROM schema_version")
    connection.execute("INSERT INTO schema_version (version) VALUES (%s)", (len(migrations),))


def _version(connection: psycopg.Connection[Row]) -> int:
    exists = connection.execute("SELECT to_regclass('schema_version') IS NOT NULL").fetchone()
    if not exists or not exists[0]:
        return 0
    row = connection.execute("SELECT max(version) FROM schema_version").fetchone()
    return int(row[0] or 0) if row else 0
