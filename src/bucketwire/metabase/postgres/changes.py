"""The change stream, in the order of transaction ids.

    ... 741 742 743 [ 744 ] 745 746        744 is under way: the stream ends at 743, though 745 has committed

The server says which id is the oldest still under way (`pg_snapshot_xmin`); all before it are decided for
good. Ids are given after a key's lock, together with the stamp (see `rows`), so that this order is the
order of commits for each key, and that of the stamps for all. An offset is `xid:stamp`.

Trimming moves a mark. The rows go when the partition of their hour is dropped, which costs no row a thing.
"""

import time
from collections.abc import Iterator
from itertools import pairwise

from bucketwire.errors import ChangesTrimmed, ServerReplaced
from bucketwire.metabase.postgres.connection import TIMELINE, Database, Row
from bucketwire.metabase.postgres.rows import HOUR_NS
from bucketwire.metabase.steady import SteadyClock
from bucketwire.metabase.values import Offset, Slice

_TICKS_SECONDS = (0.002, 0.005, 0.010)
_READ_ROWS = 2_000
_COUNTED = 100_000
_DROP_AGAIN_SECONDS = 60.0
"""Each attempt to drop a partition holds up writers for a moment, if somebody reads for long."""

# Each names the hours around the range, so that the other partitions are not looked at.
_AFTER = "(xid, committed_at_ns) > (%(xid)s::xid8, %(ns)s) AND committed_at_ns > %(oldest_ns)s"
_UP_TO = "(xid, committed_at_ns) <= (%(end_xid)s::xid8, %(end_ns)s) AND committed_at_ns < %(newest_ns)s"
_TRIMMED = "SELECT xid::text, committed_at_ns FROM trimmed"
_HEAD = f"""
SELECT trimmed.xid::text, trimmed.committed_at_ns, last.xid::text, last.committed_at_ns,
    pg_snapshot_xmax(pg_current_snapshot())::text, {TIMELINE}
FROM trimmed LEFT JOIN (
    SELECT xid, committed_at_ns FROM (
        SELECT xid, committed_at_ns FROM changes
        WHERE {_AFTER} AND xid < pg_snapshot_xmin(pg_current_snapshot())
        ORDER BY xid, committed_at_ns LIMIT %(limit)s
    ) AS next ORDER BY xid DESC, committed_at_ns DESC LIMIT 1
) AS last ON true
"""  # noqa: S608 - constants
_BOUNDS = f"""
SELECT DISTINCT ON (tile) xid::text, committed_at_ns FROM (
    SELECT xid, committed_at_ns, ntile(%(slices)s) OVER (ORDER BY xid, committed_at_ns) AS tile
    FROM changes WHERE {_AFTER} AND {_UP_TO}
) AS tiles ORDER BY tile, tiles.xid DESC, committed_at_ns DESC
"""  # noqa: S608 - constants
_READ = f"""
SELECT xid::text, committed_at_ns, change FROM changes
WHERE {_AFTER} AND {_UP_TO} ORDER BY changes.xid, committed_at_ns LIMIT %(limit)s
"""  # noqa: S608 - constants
_TRIM = """
UPDATE trimmed SET xid = %s::xid8, committed_at_ns = %s WHERE (xid, committed_at_ns) < (%s::xid8, %s)
"""
_LAST_BEFORE = """
SELECT xid::text, committed_at_ns FROM changes WHERE committed_at_ns < %s
ORDER BY changes.xid DESC, committed_at_ns DESC LIMIT 1
"""
_WAITING = f"""
SELECT count(*), min(committed_at_ns) FROM (
    SELECT committed_at_ns FROM changes WHERE {_AFTER} LIMIT %(limit)s
) AS next
"""  # noqa: S608 - constants
_DROP = "SELECT drop_changes_before(%s)"


class PostgresChanges:
    """Implements `Changes`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._dropped_before = 0
        self._drop_at = 0.0
        self._clock = SteadyClock()

    def start(self) -> Offset:
        """The mark up to which changes were trimmed."""
        return _offset(*self._trimmed())

    def head(self, after: Offset, limit: int) -> Offset:
        """The last change before the oldest transaction under way, or the one `limit` behind `after`."""
        xid, ns = _parse(after)
        (row,) = self._database.rows(
            _HEAD, {"xid": str(xid), "ns": ns, "oldest_ns": ns - HOUR_NS, "limit": limit}
        )
        self._database.check_timeline(row[5])
        if xid >= int(row[4]):
            raise ServerReplaced
        if (xid, ns) < (int(row[0]), row[1]):
            raise ChangesTrimmed(_offset(int(row[0]), row[1]))
        return after if row[2] is None else _offset(int(row[2]), row[3])

    def wait(self, after: Offset, limit: int, timeout_seconds: float) -> Offset:
        """Poll the head, less often when nothing comes."""
        ends = time.monotonic() + timeout_seconds
        ticks = iter(_TICKS_SECONDS)
        while (head := self.head(after, limit)) == after and time.monotonic() < ends:
            time.sleep(next(ticks, _TICKS_SECONDS[-1]))
        return head

    def split(self, start: Offset, end: Offset, slices: int) -> list[Slice]:
        """Bounds from a count of the changes."""
        if start == end:
            return []
        bounds = [start]
        if slices > 1:
            rows = self._database.rows(_BOUNDS, {**_range(start, end), "slices": slices})
            bounds += [_offset(int(xid), ns) for xid, ns in rows[:-1]]
        return [Slice(lower, upper) for lower, upper in pairwise([*bounds, end])]

    def read(self, part: Slice) -> Iterator[bytes]:
        """In pieces, so that a slice of any size stays small in memory."""
        position = part.start
        while rows := self._piece(position, part.end):
            for _, _, change in rows:
                yield change
            position = _offset(int(rows[-1][0]), rows[-1][1])

    def _piece(self, start: Offset, end: Offset) -> list[Row]:
        rows = self._database.rows(_READ, {**_range(start, end), "limit": _READ_ROWS})
        if _parse(start) < (trimmed := self._trimmed()):  # after the look: some may have been gone by then
            raise ChangesTrimmed(_offset(*trimmed))
        return rows

    def trim(self, end: Offset) -> None:
        """Move the mark; once an hour, drop the partitions that it has left behind."""
        xid, ns = _parse(end)
        self._database.run(lambda work: work.write(_TRIM, (str(xid), ns, str(xid), ns)))
        hour = ns // HOUR_NS - 1
        if hour > self._dropped_before and time.monotonic() >= self._drop_at:
            if self._drop_before(hour):
                self._dropped_before = hour
            else:
                self._drop_at = time.monotonic() + _DROP_AGAIN_SECONDS

    def trim_before(self, committed_at_ns: int) -> Offset:
        """Move the mark to the last change committed before that time."""
        row = self._database.row(_LAST_BEFORE, (committed_at_ns,))
        if row is not None:
            self.trim(_offset(int(row[0]), row[1]))
        return self.start()

    def clock_ns(self) -> int:
        """The server stamps changes."""
        return min(self._clock.now_ns(), self._database.number("SELECT server_ns()"))

    def waiting(self, after: Offset) -> tuple[int, int | None]:
        """Counts no further than a screen can show."""
        xid, ns = _parse(after)
        values = {"xid": str(xid), "ns": ns, "oldest_ns": ns - HOUR_NS, "limit": _COUNTED}
        ((count, oldest),) = self._database.rows(_WAITING, values)
        return count, oldest

    def _drop_before(self, hour: int) -> bool:
        """Whether it could be done without making writers wait."""
        row = self._database.run(lambda work: work.row(_DROP, (hour,)))
        return bool(row and row[0])

    def _trimmed(self) -> tuple[int, int]:
        ((xid, ns),) = self._database.rows(_TRIMMED)
        return int(xid), ns


def _range(start: Offset, end: Offset) -> dict[str, object]:
    (xid, ns), (end_xid, end_ns) = _parse(start), _parse(end)
    return {
        "xid": str(xid),
        "ns": ns,
        "oldest_ns": ns - HOUR_NS,
        "end_xid": str(end_xid),
        "end_ns": end_ns,
        "newest_ns": end_ns + HOUR_NS,
    }


def _offset(xid: int, committed_at_ns: int) -> Offset:
    return f"{xid}:{committed_at_ns}"


def _parse(offset: Offset) -> tuple[int, int]:
    xid, _, committed_at_ns = offset.partition(":")
    return int(xid), int(committed_at_ns)
