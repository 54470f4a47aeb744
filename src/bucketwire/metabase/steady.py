"""A clock to measure ages with, where being ahead would lose something."""

import time


class SteadyClock:
    """The clock of the machine; when it jumps ahead, what it showed at first and the time passed since."""

    def __init__(self) -> None:
        self._first_ns = time.time_ns()
        self._passed_before_ns = time.monotonic_ns()

    def now_ns(self) -> int:
        """The earlier of the two."""
        return min(time.time_ns(), self._first_ns + time.monotonic_ns() - self._passed_before_ns)
