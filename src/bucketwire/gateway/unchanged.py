"""What was checked is what is changed: who finds that it was replaced meanwhile checks again."""

from collections.abc import Callable
from typing import TypeVar

from bucketwire.errors import CallError

T = TypeVar("T")

TRIES = 10


def on_what_was_checked(job: Callable[[], T]) -> T:
    """Do the job, which changes an object on the condition that it is the one that it has looked at."""
    for _ in range(TRIES - 1):
        try:
            return job()
        except CallError as error:
            if error.code != "PreconditionFailed":
                raise
    return job()
