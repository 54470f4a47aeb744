"""Connections to the server: a pool of them, transactions, and how the driver's errors become ours.

    run(job):   BEGIN; what the job reads; ...; what the job wrote; COMMIT

A transaction is a pipeline: only a result that is looked at costs a round trip. Writes are sent at the end,
with the commit, so that a transaction has no id before it has its locks and its stamp (see `rows`).

A transaction under way holds back the stream for all. So one whose process hangs, or whose machine is gone,
is ended by the server after some seconds.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.errors import (
    CheckViolation,
    DatatypeMismatch,
    DeadlockDetected,
    FeatureNotSupported,
    IdleInTransactionSessionTimeout,
    SerializationFailure,
)
from psycopg_pool import ConnectionPool

from bucketwire.errors import ConfigError, InvalidRequest, ServerReplaced, Unavailable

Row = tuple[Any, ...]
"""The driver does not say what is in a row; the query does."""

Parameters = Sequence[object] | Mapping[str, object]

T = TypeVar("T")

_POOL_SIZE = 20
_POOL_WAIT_SECONDS = 10.0
_RECONNECT_SECONDS = 5.0
_ATTEMPTS = 4
_UNDONE = (
    DeadlockDetected,
    SerializationFailure,
    CheckViolation,  # no partition for a change: the next attempt makes it
    DatatypeMismatch,  # a migration has added a column while a statement waited for it,
    FeatureNotSupported,  # or since it was prepared
    IdleInTransactionSessionTimeout,
)
"""Nothing has happened, and another attempt may do better."""
_CONNECT = {
    "autocommit": True,
    "client_encoding": "UTF8",
    "connect_timeout": 5,
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 25_000,
}
_SETTINGS = """
SET default_transaction_isolation = 'read committed';
SET lock_timeout = '10s';
SET statement_timeout = 0;
SET idle_in_transaction_session_timeout = '10s';
SET tcp_keepalives_idle = 10;
SET tcp_keepalives_interval = 5;
SET tcp_keepalives_count = 3;
SET tcp_user_timeout = '25s';
SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off';
"""
"""A statement sees what was committed while it waited for a lock. A call that returned is durable; a stricter
setting of the server stays. Nobody waits long for one that is gone."""
_STAMP = "SELECT stamp_ns(%s)"
STAMPS_RESERVED = 10_000
"""Nanoseconds: more than the mutations of one transaction, less than lies between two transactions."""


class _LostEarly(Exception):
    """The connection broke before the commit was sent: nothing has happened."""


class Transaction:
    """What a job works with. `attempt` counts from 0: a job may be run again when nothing was committed."""

    def __init__(self, connection: psycopg.Connection[Row], pipeline: psycopg.Pipeline, attempt: int) -> None:
        self._connection = connection
        self._pipeline = pipeline
        self.attempt = attempt
        self._writes: list[tuple[str, Parameters]] = []
        self._stamps: Iterator[int] = iter(())

    def ask(self, sql: str, parameters: Parameters = ()) -> psycopg.Cursor[Row]:
        """Send a query now, to be looked at later."""
        return self._connection.execute(sql, parameters, binary=True)

    def rows(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        """All rows of a query.

        `sync` makes it our turn: a server that awaits more of a pipeline does not measure how long we idle.
        """
        answer = self.ask(sql, parameters)
        self._pipeline.sync()
        return answer.fetchall()

    def row(self, sql: str, parameters: Parameters = ()) -> Row | None:
        """The first row of a query, if any."""
        found = self.rows(sql, parameters)
        return found[0] if found else None

    def write(self, sql: str, parameters: Parameters = ()) -> None:
        """Send a statement with the commit, behind those written before."""
        self._writes.append((sql, parameters))

    def lock(self, *names: str) -> None:
        """Wait for all others that lock one of these names; until the end of the transaction."""
        for number in sorted(lock_number(name) for name in names):
            self.ask("SELECT pg_advisory_xact_lock(%s)", (number,))

    def give_stamps(self, first: int) -> None:
        """`STAMPS_RESERVED` stamps that a query has taken, when all locks were held."""
        self._stamps = iter(range(first, first + STAMPS_RESERVED))

    def stamp_ns(self) -> int:
        """A time that was never given before, on the clock of all gateways."""
        stamp = next(self._stamps, None)
        if stamp is None:
            ((first,),) = self.rows(_STAMP, (STAMPS_RESERVED,))
            self.give_stamps(first)
            stamp = next(self._stamps)
        return stamp

    def send_writes(self) -> None:
        """Send what was written."""
        for sql, parameters in self._writes:
            self.ask(sql, parameters)


Job = Callable[[Transaction], T]


TIMELINE = "substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)"
"""Changes when a replica takes over, which may not have the last transactions, and gives their ids again."""


class Database:
    """The pool, and the two ways to use it: `rows` for one query, `run` for a transaction."""

    def __init__(self, url: str) -> None:
        self.timeline = ""
        """That of the server when a cursor was last loaded: offsets that were found since are of it."""
        self._pool = ConnectionPool(
            check_url(url),
            kwargs=_CONNECT,
            configure=_configure,
            min_size=0,
            max_size=_POOL_SIZE,
            timeout=_POOL_WAIT_SECONDS,
            reconnect_timeout=_RECONNECT_SECONDS,
            name="metabase",
            open=True,
        )

    def rows(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        """All rows of a query, from one consistent snapshot."""
        return self._again(lambda _: self._query(sql, parameters))

    def row(self, sql: str, parameters: Parameters = ()) -> Row | None:
        """The first row of a query, if any."""
        found = self.rows(sql, parameters)
        return found[0] if found else None

    def number(self, sql: str) -> int:
        """The one number that a query always gives."""
        return int(self.rows(sql)[0][0])

    def run(self, job: Job[T]) -> T:
        """Run the job in a transaction; returns when it is durable, raises what it raised."""
        return self._again(lambda attempt: self._transact(job, attempt))

    def check_timeline(self, found: str) -> None:
        """Raise `ServerReplaced` if offsets are of another."""
        if self.timeline not in ("", found):
            raise ServerReplaced

    def close(self) -> None:
        """Give up the connections. Calling it twice is harmless."""
        self._pool.close()

    def _again(self, work: Callable[[int], T]) -> T:
        """Do the work again on a new connection, or when the server has chosen it to give way."""
        with translated():
            for attempt in range(_ATTEMPTS - 1):
                try:
                    return work(attempt)
                except _LostEarly:
                    self._pool.check()
                except _UNDONE:
                    continue
            try:
                return work(_ATTEMPTS - 1)
            except _LostEarly as lost:
                raise Unavailable("the connection to the metabase was lost", retry_after_seconds=1) from lost

    def _query(self, sql: str, parameters: Parameters) -> list[Row]:
        with self._pool.connection() as connection:
            try:
                return connection.execute(sql, parameters, binary=True).fetchall()
            except psycopg.OperationalError as error:
                if connection.broken:
                    raise _LostEarly from error
                raise

    def _transact(self, job: Job[T], attempt: int) -> T:
        with self._pool.connection() as connection:
            ended = False
            try:
                with connection.pipeline() as pipeline, connection.transaction():
                    transaction = Transaction(connection, pipeline, attempt)
                    answer = job(transaction)
                    ended = True
                    transaction.send_writes()
            except psycopg.Error as error:
                lost = connection.broken
                connection.close()  # it may hold the lock of `stamp_ns`, which is the session's
                if lost and not ended:
                    raise _LostEarly from error
                raise
            return answer


def check_url(url: str) -> str:
    """The URL, if the driver can read it; an error that shows nothing of it otherwise."""
    try:
        host = conninfo_to_dict(url).get("host") or ""
    except psycopg.ProgrammingError:
        host = "@"
    if "@" in str(host):
        raise ConfigError(
            "the URL of the metabase cannot be read: it is postgresql://user:password@host:port/database, "
            "with special characters of the password percent-encoded"
        ) from None
    return url


@contextmanager
def translated() -> Iterator[None]:
    """Errors of the driver become ours, here and only here."""
    try:
        yield
    except (psycopg.OperationalError, psycopg.InternalError, psycopg.InterfaceError) as error:
        raise Unavailable(f"the metabase is not available: {_words(error)}", retry_after_seconds=1) from error
    except psycopg.DataError as error:
        raise InvalidRequest("the metabase cannot store such a value", code="InvalidArgument") from error
    except psycopg.Error as error:
        raise ConfigError(f"the metabase cannot be used: {_words(error)}") from error


def _words(error: psycopg.Error) -> str:
    return error.diag.message_primary or str(error).partition("\n")[0]


def _configure(connection: psycopg.Connection[Row]) -> None:
    connection.execute(_SETTINGS)


def lock_number(name: str) -> int:
    """The number of an advisory lock."""
    digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)
