"""Connections to one SQLite file: how they are set up, and how its errors become ours."""

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bucketwire.errors import ConfigError, Unavailable

Row = tuple[Any, ...]
"""The driver does not say what is in a row; the query does."""

Execute = Callable[[str, tuple[object, ...]], sqlite3.Cursor]
"""How a query is run: in a transaction, or on a thread's own read connection."""

_BUSY_SECONDS = 10.0
_PRAGMAS = (
    "PRAGMA journal_mode = WAL",
    # An acknowledged write is on the disk: safe against power loss, not only against kill -9.
    "PRAGMA synchronous = FULL",
    "PRAGMA foreign_keys = ON",
    # A larger log is checkpointed less often; a checkpoint stalls the writer.
    "PRAGMA wal_autocheckpoint = 4000",
)


def connect(path: Path) -> sqlite3.Connection:
    """A connection in autocommit mode: transactions begin where the code says BEGIN."""
    with translated():
        connection = sqlite3.connect(
            path,
            timeout=_BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
        )
        for pragma in _PRAGMAS:
            connection.execute(pragma)
        return connection


@contextmanager
def translated() -> Iterator[None]:
    """Errors of the driver become ours, here and only here."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise Unavailable(f"the metabase is not available: {error}", retry_after_seconds=1) from error
    except sqlite3.DatabaseError as error:
        raise ConfigError(f"the metabase file cannot be used: {error}") from error


class Readers:
    """One read connection a thread, closed together."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._local = threading.local()
        self._lock = threading.Lock()
        self._opened: list[sqlite3.Connection] = []

    def execute(self, sql: str, parameters: tuple[object, ...] = ()) -> sqlite3.Cursor:
        """Run a query on this thread's connection."""
        with translated():
            return self._connection().execute(sql, parameters)

    def rows(self, sql: str, parameters: tuple[object, ...] = ()) -> list[Row]:
        """All rows of a query, from one consistent snapshot."""
        with translated():
            return self._connection().execute(sql, parameters).fetchall()

    def row(self, sql: str, parameters: tuple[object, ...] = ()) -> Row | None:
        """The first row of a query, if any."""
        with translated():
            found: Row | None = self._connection().execute(sql, parameters).fetchone()
            return found

    def number(self, sql: str) -> int:
        """The one number that a query always gives."""
        (found,) = self.rows(sql)
        return int(found[0])

    def close(self) -> None:
        """Close every thread's connection."""
        with self._lock:
            for connection in self._opened:
                connection.close()
            self._opened.clear()
            self._local = threading.local()

    def _connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = connect(self._path)
            self._local.connection = connection
            with self._lock:
                self._opened.append(connection)
        return connection
