"""One pipeline at a time: the one that has the lease on the cursor. Others stand by.

    wait      until nobody else has it; a standby is ready to run, so that it takes over within seconds
    keep      in a thread, again and again
    is_lost   somebody else has it, or has had it since: this pipeline must end

A pipeline that was paused, or cut off from the metabase, may find its lease lost when it goes on. What it did
before it noticed may be done twice; its cursor is not saved any more. If nobody has taken it, it is kept.
"""

import secrets
import socket
from collections.abc import Callable
from threading import Event, Thread

from bucketwire.config import CONSUMER
from bucketwire.errors import Unavailable
from bucketwire.log import get_logger
from bucketwire.metabase.base import Cursors

SECONDS = 5.0
KEEP_EVERY_SECONDS = 1.0
LOOK_EVERY_SECONDS = 0.2

log = get_logger("pipeline")


def new_holder() -> str:
    """A name for this pipeline that no other has."""
    return f"{socket.gethostname()}-{secrets.token_hex(8)}"


class Lease:
    """The lease of one pipeline."""

    def __init__(self, cursors: Cursors, holder: str) -> None:
        self._cursors = cursors
        self._holder = holder
        self._lost = False
        self._released = Event()
        self._thread = Thread(target=self._keep, name="lease", daemon=True)

    def wait(self, stopping: Event, look: Callable[[], None] = lambda: None) -> bool:
        """Block until the lease is ours; false when the wait was ended by `stopping`.

        `look` is called now and then; what it raises ends the wait.
        """
        told = False
        while not self._took():
            if not told:
                log.info("pipeline_stands_by")
                told = True
            if stopping.wait(LOOK_EVERY_SECONDS):
                return False
            look()
        self._thread.start()
        return True

    def is_held(self) -> bool:
        """Whether anybody has it now; `Unavailable` if the metabase cannot be asked."""
        return self._cursors.holder(CONSUMER) is not None

    def is_lost(self) -> bool:
        """Whether somebody else has it by now, or has had it."""
        return self._lost

    def release(self) -> None:
        """Let another have it at once."""
        self._released.set()
        if self._thread.is_alive():
            self._thread.join(KEEP_EVERY_SECONDS)
        try:
            self._cursors.keep(CONSUMER, self._holder, 0)
        except Unavailable as error:
            log.warning("lease_not_released", reason=error.message)

    def _took(self) -> bool:
        try:
            return self._cursors.lease(CONSUMER, self._holder, SECONDS)
        except Unavailable as error:
            log.warning("lease_not_taken", reason=error.message)
            return False

    def _keep(self) -> None:
        while not self._released.wait(KEEP_EVERY_SECONDS):
            self._prolong()

    def _prolong(self) -> None:
        try:
            self._lost = not self._cursors.keep(CONSUMER, self._holder, SECONDS)
        except Exception as error:  # noqa: BLE001 - without this thread nobody knows whether it is lost
            log.warning("lease_not_kept", reason=f"{type(error).__name__}: {error}")
