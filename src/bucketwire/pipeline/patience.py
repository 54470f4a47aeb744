"""The metabase is away: to end would help nobody, as a new pipeline would need it too."""

import time
from collections.abc import Callable
from typing import TypeVar

from bucketwire.errors import Unavailable
from bucketwire.log import get_logger

PAUSE_SECONDS = 0.5
TRIES = 120

Answer = TypeVar("Answer")


def pause_after(error: Unavailable) -> None:
    """Say it, and wait a little before it is tried again."""
    get_logger("pipeline").warning("metabase_away", reason=error.message)
    time.sleep(PAUSE_SECONDS)


def patiently(ask: Callable[[], Answer]) -> Answer:
    """The answer, after a minute of trying at most."""
    for _ in range(TRIES):
        try:
            return ask()
        except Unavailable as error:
            pause_after(error)
    return ask()
