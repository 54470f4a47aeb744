"""How long changes are kept that the pipeline has not read, and what is said when that was too short.

fresh    the pipeline keeps up
late     the oldest change that waits is older than half the retention: a warning
lost     changes were trimmed before they were read: the pipeline stands still until an operator accepts it
"""

from dataclasses import dataclass

from bucketwire.config import CONSUMER
from bucketwire.log import get_logger
from bucketwire.metabase.base import Metabase
from bucketwire.metainfo.place import place

HOUR_NS = 3_600_000_000_000


@dataclass(frozen=True, slots=True)
class Lag:
    """What lies between the pipeline's cursor and the head of the stream."""

    changes: int
    """About how many."""
    oldest_at_ns: int | None
    lost: bool
    """Whether some were trimmed before they were read."""

    def seconds(self, now_ns: int) -> float:
        """For how long the oldest of them has waited."""
        return max(0.0, (now_ns - self.oldest_at_ns) / 1e9) if self.oldest_at_ns else 0.0


def pipeline_lag(metabase: Metabase) -> Lag:
    """How far the pipeline is behind. A pipeline that never ran has the whole stream before it."""
    cursor, lost = place(metabase)
    changes, oldest_at_ns = metabase.changes.waiting(metabase.changes.start() if lost else cursor)
    return Lag(changes, oldest_at_ns, lost)


def enforce_retention(metabase: Metabase, retention_hours: int) -> None:
    """Trim what is older than the retention; raise the alarm when the pipeline had not read it."""
    before_ns = metabase.changes.clock_ns() - retention_hours * HOUR_NS
    cursor = metabase.cursors.load(CONSUMER)
    if cursor is None:
        # Where a pipeline that never ran would begin is noted first: else it would pass over the loss.
        cursor = metabase.changes.start()
        metabase.cursors.save(CONSUMER, cursor, alive_at_ns=0)
    _, oldest_at_ns = metabase.changes.waiting(cursor)
    start = metabase.changes.trim_before(before_ns)
    cursor, lost = place(metabase)
    if lost:
        get_logger("gateway").critical(
            "changes_lost_to_retention",
            retention_hours=retention_hours,
            cursor=cursor,
            stream_starts_at=start,
            oldest_at_ns=oldest_at_ns,
            remedy="bucketwire cursor skip",
        )
