"""Whether it is this pipeline's turn: the lease on the cursor is in its name.

The sources ask, each in a process of its own, before they give a batch; the driver takes and keeps the lease.
"""

import time

from bucketwire.config import CONSUMER
from bucketwire.metabase.base import Cursors

LOOK_EVERY_SECONDS = 0.1


class Turn:
    """The turn of one pipeline. Without a name it is always its turn: nobody else is there."""

    def __init__(self, cursors: Cursors, holder: str) -> None:
        self._cursors = cursors
        self._holder = holder

    def wait(self, seconds: float) -> bool:
        """Block until it is our turn, but no longer than that; whether it is."""
        ends = time.monotonic() + seconds
        while not self._is_ours():
            if time.monotonic() >= ends:
                return False
            time.sleep(LOOK_EVERY_SECONDS)
        return True

    def _is_ours(self) -> bool:
        return not self._holder or self._cursors.holder(CONSUMER) == self._holder
