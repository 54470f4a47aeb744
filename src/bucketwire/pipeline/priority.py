"""The share of the processors that a pipeline has beside the other parts, which are sessions of their own.

Where Linux shares the processors by session first (`man 7 sched`, autogroup), the niceness of a process
counts within its session alone, and that of the session may be set, up and down. Elsewhere, and in a session
that has other programs too, nothing is done here.
"""

import os
import time
from pathlib import Path

SESSION = Path("/proc/self/autogroup")
_BEHIND = 19
"""A sixtieth of the share of the others, while they want it: what they leave is enough for a start."""
_TRIES = 5
_AGAIN_SECONDS = 0.15


def give_way() -> None:
    """Let others work first: a start takes all the processors there are, and nobody waits for a standby."""
    _set(_BEHIND)


def take_part() -> None:
    """Work like the others."""
    _set(0)


def _set(niceness: int) -> None:
    for _ in range(_TRIES if os.getsid(0) == os.getpid() and SESSION.exists() else 0):
        try:
            SESSION.write_text(str(niceness))
        except BlockingIOError:  # on the whole machine, one may do so in a tenth of a second
            time.sleep(_AGAIN_SECONDS)
        else:
            return
