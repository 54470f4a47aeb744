"""Keeps the pipeline's cursor in the metabase up to date, from a thread of its own.

The reader says how far the stream has an outcome (`advance`); the thread writes it down, so that no batch
waits for that write, and trims what is passed. It writes once a second in any case: the time of the last
write tells others that the pipeline is alive. It stops telling so when the reader has not asked for long.
"""

import time
from threading import Condition, Lock, Thread

from bucketwire.config import CONSUMER
from bucketwire.log import get_logger
from bucketwire.metabase.base import Changes, Cursors
from bucketwire.metabase.values import Offset

SAVE_EVERY_SECONDS = 0.1
BEAT_EVERY_SECONDS = 1.0
STALLED_AFTER_SECONDS = 6.0

log = get_logger("pipeline")


class CursorKeeper:
    """Saves the last offset it was given. `save` writes at once; `close` writes and ends the thread."""

    def __init__(self, cursors: Cursors, changes: Changes, holder: str = "") -> None:
        self._cursors = cursors
        self._changes = changes
        self._holder = holder
        self._saving = Lock()
        """Held while an offset is read and written: a later one is never written over by an earlier one."""
        self._changed = Condition()
        self._offset: Offset | None = None
        self._alive = False
        self._advanced_at = 0.0
        self._saved: Offset | None = None
        self._saved_at = 0.0
        self._trimmed: Offset | None = None
        self._trimmed_at = 0.0
        self._closed = False
        self.is_lost = False
        """Whether another pipeline has the cursor, or has had it since: this one must end."""
        self._thread = Thread(target=self._run, name="cursor", daemon=True)

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def advance(self, offset: Offset, *, alive: bool = True) -> None:
        """All up to `offset` has an outcome; `alive` is to be told to others. Returns at once."""
        with self._changed:
            self._alive = alive
            self._advanced_at = time.monotonic()
            if offset != self._offset:
                self._offset = offset
                self._changed.notify()

    def close(self) -> None:
        """Write the last offset and end."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join(timeout=1.0)

    def save(self) -> None:
        """Write down the offset now, and trim what it has passed if that was long ago."""
        with self._saving:
            with self._changed:
                offset, alive = self._offset, self._alive
            if offset is not None:
                self._write(offset, alive=alive)

    def _write(self, offset: Offset, *, alive: bool) -> None:
        saved = self._cursors.save(CONSUMER, offset, time.time_ns() if alive else 0, self._holder)
        self._saved, self._saved_at = offset, time.monotonic()
        if not saved:  # another pipeline has taken over, and may not have read what we would trim
            self.is_lost = True
            return
        if offset != self._trimmed and self._saved_at - self._trimmed_at >= BEAT_EVERY_SECONDS:
            self._changes.trim(offset)
            self._trimmed, self._trimmed_at = offset, time.monotonic()

    def _run(self) -> None:
        while self._wait():
            if not self._try_to_save():
                time.sleep(BEAT_EVERY_SECONDS)
        self._try_to_save()

    def _try_to_save(self) -> bool:
        try:
            self.save()
        except Exception as error:  # noqa: BLE001 - without this thread no offset is written any more
            # The batches meet the same trouble and end the query; here it is only tried again.
            log.warning("cursor_not_saved", reason=f"{type(error).__name__}: {error}")
            return False
        return True

    def _wait(self) -> bool:
        """Block until there is something to write; false when it is the last time."""
        with self._changed:
            self._changed.wait_for(self._is_urgent, self._pause_seconds())
            while self._is_stalled() and not self._is_urgent():
                self._changed.wait(BEAT_EVERY_SECONDS)
            closed = self._closed
        if not closed:
            time.sleep(max(0.0, self._saved_at + SAVE_EVERY_SECONDS - time.monotonic()))
        return not closed

    def _is_stalled(self) -> bool:
        return time.monotonic() - self._advanced_at > STALLED_AFTER_SECONDS

    def _is_urgent(self) -> bool:
        return self._closed or self._offset != self._saved

    def _pause_seconds(self) -> float:
        return max(0.0, self._saved_at + BEAT_EVERY_SECONDS - time.monotonic())
