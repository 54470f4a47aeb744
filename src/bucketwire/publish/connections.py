"""The connections of one process, by destination: topics that lead to one broker share them.

    with connections.shared(key, open) as client:     a client that many threads may use at once
    with connections.alone(key, open) as client:      one that serves one thread at a time

A key says everything that makes a connection what it is, and is used in one of the two ways only. What nobody
has used for a while is closed by `close_idle`, in a thread apart, as some take seconds to say goodbye; what
fails while it is used alone is closed at once. Nothing is closed while somebody uses it. A process that was
forked starts with none: it must not speak over the connections of its parent, nor say goodbye on them, so it
keeps them untouched. Such a process should end with `os._exit`, as the workers of Spark and of
multiprocessing do.
"""

import os
import time
import weakref
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock, Thread, current_thread
from typing import Protocol, TypeVar

IDLE_SECONDS = 60.0


class Closable(Protocol):
    """Anything that holds connections."""

    def close(self) -> None:
        """Give them up, without raising; calling it twice is harmless."""
        ...


C = TypeVar("C", bound=Closable)


@dataclass(slots=True, eq=False)
class _Kept:
    client: Closable
    users: int
    used_at: float
    leaving: bool = False
    """Whether it is closed, rather than kept, once nobody uses it."""


class Connections:
    """Opens, lends and closes. Threads may call at once."""

    def __init__(
        self,
        idle_seconds: float = IDLE_SECONDS,
        clock: Callable[[], float] = time.monotonic,
        *,
        private_allowed: bool = True,
    ) -> None:
        self.private_allowed = private_allowed
        """Whether publishers of this process may reach private networks; see `publish.guard`."""
        self._idle_seconds = idle_seconds
        self._clock = clock
        self._lock = Lock()
        self._kept: dict[Hashable, list[_Kept]] = {}
        self._closing: dict[Thread, list[_Kept]] = {}
        """What is idle and not closed yet, by the thread that closes it."""
        self._of_parents: list[object] = []
        start_anew = weakref.WeakMethod(self._start_anew)
        os.register_at_fork(after_in_child=lambda: (method := start_anew()) and method())

    @contextmanager
    def shared(self, key: Hashable, open_client: Callable[[], C]) -> Iterator[C]:
        """The one client for `key`. `open_client` must not block: others wait for it."""
        kept = self._join(key, open_client)
        try:
            yield kept.client  # type: ignore[misc]  # what was opened under this key
        finally:
            self._give_back(kept)

    @contextmanager
    def alone(self, key: Hashable, open_client: Callable[[], C]) -> Iterator[C]:
        """A client for `key` that nobody else uses now; one that an exception leaves is closed."""
        kept = self._take_idle(key) or self._add(key, open_client())
        try:
            yield kept.client  # type: ignore[misc]
        except BaseException:
            self._forget(key, kept)
            raise
        finally:
            self._give_back(kept)

    def close_idle(self) -> None:
        """Close what nobody uses and has used for a while, without waiting for it."""
        before = self._clock() - self._idle_seconds
        idle = self._remove(lambda kept: kept.users == 0 and kept.used_at <= before)
        if not idle:
            return
        closing = Thread(target=self._close_apart, args=[idle], name="close-idle", daemon=True)
        with self._lock:
            closing.start()
            self._closing[closing] = idle

    def close(self) -> None:
        """Close everything, what is lent as soon as it is given back. Calling it twice is harmless."""
        _close(self._remove(lambda _: True))
        with self._lock:
            closing = list(self._closing)
        for each in closing:
            each.join()

    def __len__(self) -> int:
        """How many are open and will be lent again."""
        with self._lock:
            return sum(len(entries) for entries in self._kept.values())

    def _start_anew(self) -> None:
        """In a forked process. The lock may have been held by a thread that does not exist here."""
        self._lock = Lock()
        # dropping them could close what the parent still uses
        self._of_parents += [self._kept, self._closing]
        self._kept, self._closing = {}, {}

    def _join(self, key: Hashable, open_client: Callable[[], Closable]) -> _Kept:
        with self._lock:
            entries = self._kept.get(key)
            if not entries:
                entries = self._kept[key] = [_Kept(open_client(), 0, self._clock())]
            entries[0].users += 1
            return entries[0]

    def _take_idle(self, key: Hashable) -> _Kept | None:
        with self._lock:
            for kept in self._kept.get(key, ()):
                if kept.users == 0:
                    kept.users = 1
                    return kept
        return None

    def _add(self, key: Hashable, client: Closable) -> _Kept:
        kept = _Kept(client, 1, self._clock())
        with self._lock:
            self._kept.setdefault(key, []).append(kept)
        return kept

    def _forget(self, key: Hashable, kept: _Kept) -> None:
        with self._lock:
            kept.leaving = True
            entries = self._kept.get(key, [])
            if kept in entries:
                entries.remove(kept)
            if not entries:
                self._kept.pop(key, None)

    def _remove(self, unwanted: Callable[[_Kept], bool]) -> list[_Kept]:
        """Lend these no more; those that nobody uses, for the caller to close."""
        with self._lock:
            removed = [kept for entries in self._kept.values() for kept in entries if unwanted(kept)]
            for kept in removed:
                kept.leaving = True
            staying = {
                key: [kept for kept in entries if not kept.leaving] for key, entries in self._kept.items()
            }
            self._kept = {key: entries for key, entries in staying.items() if entries}
            return [kept for kept in removed if kept.users == 0]

    def _close_apart(self, idle: list[_Kept]) -> None:
        _close(idle)
        with self._lock:
            del self._closing[current_thread()]

    def _give_back(self, kept: _Kept) -> None:
        with self._lock:
            kept.users -= 1
            kept.used_at = self._clock()
            is_last = kept.leaving and kept.users == 0
        if is_last:
            kept.client.close()


def _close(unused: list[_Kept]) -> None:
    for kept in unused:
        kept.client.close()
