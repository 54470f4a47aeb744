"""The change stream: with one writer, positions are in commit order and the last one is the head."""

import time
from collections.abc import Iterator
from itertools import pairwise

from bucketwire.errors import ChangesTrimmed
from bucketwire.metabase.sqlite.connection import Readers, Row
from bucketwire.metabase.sqlite.writer import Transaction, Writer
from bucketwire.metabase.steady import SteadyClock
from bucketwire.metabase.values import Offset, Slice

_TICK_SECONDS = 0.003
_READ_ROWS = 2_000
_BOUNDS = "SELECT (SELECT position FROM trimmed), (SELECT max(position) FROM changes)"
_READ = "SELECT position, change FROM changes WHERE position > ? AND position <= ? ORDER BY position LIMIT ?"
# From the oldest on, since times grow with positions: what is passed over is what is to go.
_LAST_BEFORE = """
SELECT coalesce(
    (SELECT position - 1 FROM changes WHERE committed_at_ns >= ? ORDER BY position LIMIT 1),
    (SELECT max(position) FROM changes)
)
"""
_LAST_GIVEN = "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'changes'"


class SqliteChanges:
    """Implements `Changes`."""

    def __init__(self, readers: Readers, writer: Writer) -> None:
        self._readers = readers
        self._writer = writer
        self._clock = SteadyClock()

    def continue_behind(self, position: int) -> None:
        """Give no change a position up to that one: its reader, who is there already, would pass it over.

        A stream is older than its reader's cursor where both were restored from copies made one by one.
        """
        if self._readers.number(_LAST_GIVEN) < position:
            self._writer.run(_Continue(position))

    def start(self) -> Offset:
        """The offset before the oldest change kept."""
        return str(self._trimmed())

    def head(self, after: Offset, limit: int) -> Offset:
        """The last position, or `limit` positions behind `after`."""
        first, last = self._bounds()
        if int(after) < first:
            raise ChangesTrimmed(str(first))
        return str(max(int(after), min(last, int(after) + limit)))

    def wait(self, after: Offset, limit: int, timeout_seconds: float) -> Offset:
        """Poll the head: SQLite has no way to be told, and a look costs microseconds."""
        ends = time.monotonic() + timeout_seconds
        while (head := self.head(after, limit)) == after and time.monotonic() < ends:
            time.sleep(_TICK_SECONDS)
        return head

    def split(self, start: Offset, end: Offset, slices: int) -> list[Slice]:
        """Positions have few gaps, so that equal ranges hold about the same number."""
        first, last = int(start), int(end)
        count = max(1, min(slices, last - first))
        bounds = [first + (last - first) * part // count for part in range(count + 1)]
        return [Slice(str(lower), str(upper)) for lower, upper in pairwise(bounds) if lower < upper]

    def read(self, part: Slice) -> Iterator[bytes]:
        """In pieces, so that a slice of any size stays small in memory."""
        position, end = int(part.start), int(part.end)
        while rows := self._piece(position, end):
            for _, change in rows:
                yield change
            position = rows[-1][0]

    def _piece(self, start: int, end: int) -> list[Row]:
        rows = self._readers.rows(_READ, (start, end, _READ_ROWS))
        if start < (trimmed := self._trimmed()):  # after the look: some may have been gone by then
            raise ChangesTrimmed(str(trimmed))
        return rows

    def trim(self, end: Offset) -> None:
        """Forget in pieces too: each is a short transaction between those of the gateway."""
        while self._writer.run(_Trim(int(end))):
            time.sleep(_TICK_SECONDS)

    def trim_before(self, committed_at_ns: int) -> Offset:
        """Forget the changes committed before that time."""
        ((last,),) = self._readers.rows(_LAST_BEFORE, (committed_at_ns,))
        if last is not None:
            self.trim(str(last))
        return self.start()

    def clock_ns(self) -> int:
        """No later than the newest change, lest a machine that starts with a wrong clock trims at once."""
        newest = self._readers.row("SELECT committed_at_ns FROM changes ORDER BY position DESC LIMIT 1")
        now_ns = self._clock.now_ns()
        return min(now_ns, newest[0]) if newest else now_ns

    def waiting(self, after: Offset) -> tuple[int, int | None]:
        """Positions have few gaps."""
        _, last = self._bounds()
        oldest = self._readers.row(
            "SELECT committed_at_ns FROM changes WHERE position > ? ORDER BY position LIMIT 1", (int(after),)
        )
        return (max(0, last - int(after)), oldest[0]) if oldest else (0, None)

    def _bounds(self) -> tuple[int, int]:
        (row,) = self._readers.rows(_BOUNDS)
        first, last = row
        return first, last if last is not None else first

    def _trimmed(self) -> int:
        return self._readers.number("SELECT position FROM trimmed")


class _Continue:
    """Makes the position the last one given."""

    def __init__(self, position: int) -> None:
        self._position = position

    def __call__(self, transaction: Transaction) -> None:
        given: int = transaction.execute(_LAST_GIVEN).fetchone()[0]
        if given < self._position:
            transaction.execute("DELETE FROM sqlite_sequence WHERE name = 'changes'")
            transaction.execute("INSERT INTO sqlite_sequence VALUES ('changes', ?)", (self._position,))


class _Trim:
    """Removes up to a piece of the changes; true when there may be more."""

    def __init__(self, end: int) -> None:
        self._end = end

    def __call__(self, transaction: Transaction) -> bool:
        oldest: int | None = transaction.execute("SELECT min(position) FROM changes").fetchone()[0]
        if oldest is None or oldest > self._end:
            return False
        upto = min(self._end, oldest + _READ_ROWS - 1)
        transaction.execute("DELETE FROM changes WHERE position <= ?", (upto,))
        transaction.execute("UPDATE trimmed SET position = max(position, ?)", (upto,))
        return upto < self._end
