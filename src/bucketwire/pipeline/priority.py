"""The share of the processors that a pipeline has beside the other parts, which are sessions of their own.

Where Linux shares the processors by session first (`man 7 sched`, autogroup), the niceness of a process
counts within its session alone, and that of the session may be set, up and down. Elsewhere, and in a session
that has other programs too, nothing is done here.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

from bucketwire.log import get_logger

LOOK_EVERY_SECONDS = 0.5
SESSION = Path("/proc/self/autogroup")
_BEHIND = 19
"""A sixtieth of the share of the others, while they want it: what they leave is enough for a start."""
_TRIES = 5
_AGAIN_SECONDS = 0.15
_END_SECONDS = 1.0

log = get_logger("pipeline")


@contextmanager
def giving_way(is_held: Callable[[], bool]) -> Iterator[None]:
    """In this block, let others work first as long as the lease is held; nothing is done if it is not.

    A thread looks now and then. Should the pipeline at work die meanwhile, the start that the block is about
    must not take minutes.
    """
    if not is_held():
        yield
        return
    give_way()
    ended = Event()
    watch = Thread(target=_watch, args=(is_held, ended), name="share", daemon=True)
    watch.start()
    try:
        yield
    finally:
        ended.set()
        watch.join(_END_SECONDS)  # one that waits for the metabase may end later, and does nothing then


def _watch(is_held: Callable[[], bool], ended: Event) -> None:
    behind = True
    while not ended.wait(LOOK_EVERY_SECONDS):
        try:
            behind = _adapt(is_held(), behind, ended)
        except Exception as error:  # noqa: BLE001 - without this thread the start would stay slow
            log.warning("lease_not_seen", reason=f"{type(error).__name__}: {error}")


def _adapt(held: bool, behind: bool, ended: Event) -> bool:  # noqa: FBT001
    """Take the share that is due, unless the block has ended; whether it is the low one."""
    if held == behind or ended.is_set():
        return behind
    if held:
        give_way()
    else:
        take_part()
    return held


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
