"""Removes bytes that no object uses.

dropped    the metabase has let go of them: removed in the background, a moment later
orphaned   a gateway died between writing them and committing them: removed when they are a day old
"""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

import msgspec

from bucketwire.blobs import Blobs
from bucketwire.errors import BucketwireError, ConfigError, Unavailable
from bucketwire.log import get_logger
from bucketwire.metabase.base import Objects

_BATCH = 100
_PAUSE_SECONDS = 1.0
_ORPHAN_AGE = timedelta(hours=24)
"""No request takes longer than this from its last byte to its commit."""
_SUSPICIOUS = 100
"""So many orphans, if they are more than what the metabase knows, mean that it is not the right one. So does
any orphan where it knows none of the files."""

log = get_logger("gateway")


class Swept(msgspec.Struct, frozen=True):
    """What a sweep has removed, in files."""

    dropped: int
    orphaned: int
    unfinished: int


def sweep(objects: Objects, blobs: Blobs, now: datetime) -> Swept:
    """Remove all that nothing uses. Safe to repeat, to interrupt, and beside other gateways.

    `ConfigError` when the bytes seem to be those of another metabase.
    """
    dropped = 0
    while removed := remove_dropped(objects, blobs, _BATCH):
        dropped += removed
    cutoff = now - _ORPHAN_AGE
    orphaned = _removed(blobs, _orphans(objects, blobs, cutoff))
    return Swept(dropped, len(orphaned), blobs.remove_unfinished(cutoff))


def _orphans(objects: Objects, blobs: Blobs, cutoff: datetime) -> list[str]:
    orphans: list[str] = []
    seen = 0
    for names in blobs.names_before(cutoff):
        orphans += objects.unknown_blobs(names)
        seen += len(names)
    known = seen - len(orphans)
    if orphans and (known == 0 or len(orphans) > max(_SUSPICIOUS, known)):
        raise ConfigError(
            f"{len(orphans)} of {seen} files are unknown to the metabase, and none was removed:"
            " is this the metabase of that data folder?"
        )
    return orphans


def remove_dropped(objects: Objects, blobs: Blobs, limit: int) -> int:
    """Remove up to `limit` dropped blobs, then have the metabase forget them; how many it were."""
    names = _removed(blobs, objects.dropped_blobs(limit))
    if names:
        objects.forget_blobs(names)
    return len(names)


def _removed(blobs: Blobs, names: Sequence[str]) -> list[str]:
    """Those that could be removed: one that cannot stays for another time, and keeps no other."""
    removed: list[str] = []
    for name in names:
        try:
            blobs.remove(name)
        except Unavailable as problem:
            reason = problem.message
        else:
            removed.append(name)
    if len(removed) < len(names):
        log.warning("blobs_not_removed", blobs=len(names) - len(removed), reason=reason)
    return removed


class BlobSweeper:
    """Sweeps a moment after it was woken, until nothing is left, then sleeps."""

    def __init__(self, objects: Objects, blobs: Blobs, threads: ThreadPoolExecutor) -> None:
        self._objects = objects
        self._blobs = blobs
        self._threads = threads
        self._task: asyncio.Task[None] | None = None

    def wake(self) -> None:
        """Something may have been dropped. Cheap; calling it often sweeps no more than once a second."""
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._sweep())

    async def stop(self) -> None:
        """Sweep no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        removed = _BATCH
        while removed:
            await asyncio.sleep(_PAUSE_SECONDS)
            try:
                removed = await loop.run_in_executor(
                    self._threads, remove_dropped, self._objects, self._blobs, _BATCH
                )
            except BucketwireError as problem:
                log.warning("blobs_not_removed", reason=str(problem))
                return
