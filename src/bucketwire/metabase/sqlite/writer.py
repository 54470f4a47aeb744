"""The one writer of a SQLite file: concurrent transactions share a disk flush.

    thread --job--+
    thread --job--+--> BEGIN; job; job; job; COMMIT (one flush) --> every thread gets its answer
    thread --job--+

While a group is flushed, the next one gathers. A job that raises is undone alone (a savepoint);
the others of its group commit. When the commit itself fails, all of the group raise `Unavailable`.
"""

import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from bucketwire.errors import Unavailable
from bucketwire.metabase.sqlite.connection import connect, translated

T = TypeVar("T")

_GROUP_LIMIT = 256


class Transaction:
    """What a job works with: the connection, and the clock that orders all changes."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.execute = connection.execute
        self.executemany = connection.executemany
        self._last_ns = 0
        self._read_clock = self._used_clock = False

    def stamp_ns(self) -> int:
        """A time that was never given before, also when the machine's clock jumps back."""
        if not self._read_clock:
            stored: int = self.execute("SELECT last_ns FROM clock").fetchone()[0]
            self._last_ns = max(self._last_ns, stored)
        self._read_clock = self._used_clock = True
        self._last_ns = max(time.time_ns(), self._last_ns + 1)
        return self._last_ns

    def end_group(self) -> None:
        """Store the clock, if it was used; another process may move it before the next group."""
        if self._used_clock:
            self.execute("UPDATE clock SET last_ns = max(last_ns, ?)", (self._last_ns,))
        self.forget_clock()

    def forget_clock(self) -> None:
        """What was read of the stored clock counts for one group only."""
        self._read_clock = self._used_clock = False


Job = Callable[[Transaction], T]


class Writer:
    """Runs jobs in the order in which they came, in groups."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._jobs: SimpleQueue[tuple[Job[Any], Future[Any]] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = False

    def run(self, job: Job[T]) -> T:
        """Run the job in a transaction; returns when it is durable, raises what it raised."""
        future: Future[T] = Future()
        with self._lock:
            if self._closed:
                raise Unavailable("the metabase is closed")
            self._ensure_thread()
            self._jobs.put((job, future))
        return future.result()

    def close(self) -> None:
        """Finish the jobs that were accepted, then stop. Calling it twice is harmless."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            thread = self._thread
            self._jobs.put(None)
        if thread is not None:
            thread.join()

    def _ensure_thread(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._loop, name=f"writer-{self._path.name}", daemon=True)
            self._thread.start()

    def _loop(self) -> None:
        connection: sqlite3.Connection | None = None
        transaction: Transaction | None = None
        while True:
            group, last = self._next_group()
            if group:
                try:
                    connection = connection or connect(self._path)
                    transaction = transaction or Transaction(connection)
                    with translated():
                        answers = _commit(connection, transaction, [job for job, _ in group])
                except Exception as error:  # noqa: BLE001 - whatever it is belongs to those who wait
                    _refuse(group, error)
                else:
                    _answer(group, answers)
            if last:
                break
        if connection is not None:
            connection.close()

    def _next_group(self) -> tuple[list[tuple[Job[Any], Future[Any]]], bool]:
        """The jobs that wait, at least one; and whether the writer is to stop after them."""
        group: list[tuple[Job[Any], Future[Any]]] = []
        item = self._jobs.get()
        while item is not None:
            group.append(item)
            if len(group) == _GROUP_LIMIT:
                return group, False
            try:
                item = self._jobs.get_nowait()
            except Empty:
                return group, False
        return group, True


def _commit(
    connection: sqlite3.Connection, transaction: Transaction, jobs: list[Job[Any]]
) -> list[tuple[bool, Any]]:
    """Run the jobs in one transaction: (True, result) or (False, exception) for each."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        answers = [_attempt(transaction, job) for job in jobs]
        transaction.end_group()
        connection.execute("COMMIT")
    except BaseException:
        transaction.forget_clock()
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return answers


def _attempt(transaction: Transaction, job: Job[Any]) -> tuple[bool, Any]:
    transaction.execute("SAVEPOINT job")
    try:
        result = job(transaction)
    except sqlite3.Error:
        raise  # the file is in trouble: nobody in the group can be told that all is well
    except Exception as error:  # noqa: BLE001 - it is the caller's, and is raised there
        transaction.execute("ROLLBACK TO job")
        transaction.execute("RELEASE job")
        return False, error
    transaction.execute("RELEASE job")
    return True, result


def _answer(group: list[tuple[Job[Any], Future[Any]]], answers: list[tuple[bool, Any]]) -> None:
    for (_, future), (done, answer) in zip(group, answers, strict=True):
        if done:
            future.set_result(answer)
        else:
            future.set_exception(answer)


def _refuse(group: list[tuple[Job[Any], Future[Any]]], error: Exception) -> None:
    for _, future in group:
        future.set_exception(error)
