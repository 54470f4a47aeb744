"""Removes the bytes of blobs that the metabase has dropped: in the background, a bounded number at a time."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from bucketwire.blobs import Blobs
from bucketwire.errors import BucketwireError
from bucketwire.log import get_logger
from bucketwire.metabase.base import Objects

_BATCH = 100
_PAUSE_SECONDS = 1.0


def remove_dropped(objects: Objects, blobs: Blobs, limit: int) -> int:
    """Remove up to `limit` dropped blobs, then have the metabase forget them; how many it were."""
    names = objects.dropped_blobs(limit)
    for name in names:
        blobs.remove(name)
    if names:
        objects.forget_blobs(names)
    return len(names)


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
        while removed == _BATCH:
            await asyncio.sleep(_PAUSE_SECONDS)
            try:
                removed = await loop.run_in_executor(
                    self._threads, remove_dropped, self._objects, self._blobs, _BATCH
                )
            except BucketwireError as problem:
                get_logger("gateway").warning("blobs_not_removed", reason=str(problem))
                return
