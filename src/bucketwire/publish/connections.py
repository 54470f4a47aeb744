"""The connections of one process, by destination: topics that lead to one broker share them.

    with connections.shared(key, open) as client:     a client that many threads may use at once
    with connections.alone(key, open) as client:      one that serves one thread at a time

What nobody has used for a while is closed by `close_idle`; what fails while it is used alone is closed at
once. A process that was forked starts with none: it must not speak over the connections of its parent.
"""

import os
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Protocol, TypeVar

IDLE_SECONDS = 60.0


class Closable(Protocol):
    """Anything that holds connections."""

    def close(self) -> None:
        """Give them up; calling it twice is harmless."""
        ...


C = TypeVar("C", bound=Closable)


@dataclass(slots=True)
class _Kept:
    client: Closable
    users: int
    used_at: float


class Connections:
    """Opens, lends and closes. Threads may call at once."""

    def __init__(
        self, idle_seconds: float = IDLE_SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._idle_seconds = idle_seconds
        self._clock = clock
        self._lock = Lock()
        self._process = os.getpid()
        self._kept: dict[Hashable, list[_Kept]] = {}

    @contextmanager
    def shared(self, key: Hashable, open_client: Callable[[], C]) -> Iterator[C]:
        """The one client for `key`. `open_client` must not block: others wait for it."""
        with self._lock:
            self._check_process()
            entries = self._kept.setdefault(key, [])
            if not entries:
                entries.append(_Kept(open_client(), 0, self._clock()))
            kept = entries[0]
            kept.users += 1
        try:
            yield kept.client  # type: ignore[misc]  # what was opened under this key
        finally:
            self._give_back(kept)

    @contextmanager
    def alone(self, key: Hashable, open_client: Callable[[], C]) -> Iterator[C]:
        """A client for `key` that nobody else uses now; one that an exception leaves is closed."""
        kept = self._idle(key) or self._add(key, open_client())
        try:
            yield kept.client  # type: ignore[misc]
        except BaseException:
            self._drop(key, kept)
            raise
        finally:
            self._give_back(kept)

    def close_idle(self) -> None:
        """Close what nobody uses and has used for a while."""
        now = self._clock()
        with self._lock:
            self._check_process()
            idle = [
                (key, kept)
                for key, entries in self._kept.items()
                for kept in entries
                if kept.users == 0 and now - kept.used_at >= self._idle_seconds
            ]
        for key, kept in idle:
            if self._claim(kept):
                self._drop(key, kept)

    def close(self) -> None:
        """Close everything. Calling it twice is harmless."""
        with self._lock:
            self._check_process()
            entries = [kept for each in self._kept.values() for kept in each]
            self._kept = {}
        for kept in entries:
            kept.client.close()

    def __len__(self) -> int:
        """How many are open."""
        with self._lock:
            self._check_process()
            return sum(len(entries) for entries in self._kept.values())

    def _check_process(self) -> None:
        if self._process != os.getpid():
            self._process = os.getpid()
            self._kept = {}  # not closed: the parent still uses them

    def _idle(self, key: Hashable) -> _Kept | None:
        with self._lock:
            self._check_process()
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

    def _claim(self, kept: _Kept) -> bool:
        with self._lock:
            if kept.users:
                return False
            kept.users = 1
            return True

    def _drop(self, key: Hashable, kept: _Kept) -> None:
        with self._lock:
            entries = self._kept.get(key, [])
            if kept in entries:
                entries.remove(kept)
            if not entries:
                self._kept.pop(key, None)
        kept.client.close()

    def _give_back(self, kept: _Kept) -> None:
        with self._lock:
            kept.users -= 1
            kept.used_at = self._clock()
