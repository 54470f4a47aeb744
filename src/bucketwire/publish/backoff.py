"""How long to wait before the next attempt: 1, 2, 4, 8 s, then every 8 s, spread a little.

Pure: the caller brings the randomness, so that a test can say what the answer is.
"""

LADDER_SECONDS = (1.0, 2.0, 4.0, 8.0)
SPREAD = 0.2
"""The part of a step by which it may grow, so that what failed together does not return together."""


def delay_seconds(attempts: int, luck: float = 0.0) -> float:
    """Seconds to wait after that many failed attempts; `luck`, from 0 to 1, places it within the spread."""
    step = LADDER_SECONDS[min(max(attempts, 1), len(LADDER_SECONDS)) - 1]
    return step * (1.0 + SPREAD * luck)
