"""The metabase is away: to end would help nobody, as a new pipeline would need it too."""

import time

from bucketwire.errors import Unavailable
from bucketwire.log import get_logger

PAUSE_SECONDS = 0.5


def pause_after(error: Unavailable) -> None:
    """Say it, and wait a little before it is tried again."""
    get_logger("pipeline").warning("metabase_away", reason=error.message)
    time.sleep(PAUSE_SECONDS)
