"""The pipelines that `bucketwire up` runs: one at work and, if wanted, one that stands by.

Each start has a name of its own, in which it takes the lease on the cursor. When it has died, its lease is
given up for it: the other one takes over at once, not when the lease runs out. The names are noted in the
data folder. What a supervisor that was killed could not give up, the next one does.
"""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from bucketwire.cli.supervise import Part, Start
from bucketwire.config import CONSUMER
from bucketwire.metabase import open_metabase
from bucketwire.metabase.base import Cursors
from bucketwire.pipeline.lease import new_holder

PATIENCE_SECONDS = 60.0
"""How long a pipeline that will stand by lets the other start, or take over, before it starts itself: a start
takes all the processors there are for a while."""
_LOOK_EVERY_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Pipelines:
    """Makes the parts that the supervisor runs."""

    metabase: str = field(repr=False)
    """Its URL, which may have a password."""
    data: Path
    command: Sequence[str]
    """Of a pipeline, without its name."""
    stop: threading.Event
    """Ends all waiting."""
    _started: set[str] = field(default_factory=set, init=False)
    """Parts that were started here: what becomes of their leases is known."""

    def parts(self, *, standby: bool) -> list[Part]:
        """The pipeline, and the one that stands by."""
        names = ("pipeline", "standby") if standby else ("pipeline",)
        return [Part(name, partial(self._start, name)) for name in names]

    def _start(self, part: str) -> Start:
        holder = new_holder()
        note = self.data / "holders" / part
        with self._cursors() as cursors:
            if note.exists() and part not in self._started:
                cursors.keep(CONSUMER, note.read_text(), 0)
            cursors.not_alive(CONSUMER)  # however recently the last one was
            self._wait_for_other(cursors, first=part == "pipeline")
        note.parent.mkdir(exist_ok=True)
        note.write_text(holder)
        self._started.add(part)
        return Start([*self.command, "--holder", holder], partial(self._after_death, holder))

    def _wait_for_other(self, cursors: Cursors, *, first: bool) -> None:
        """Return when another pipeline has reported from now on. The first waits for none that is gone."""
        began_ns, ends = time.time_ns(), time.monotonic() + PATIENCE_SECONDS
        while (cursors.alive_at_ns(CONSUMER) or 0) < began_ns and time.monotonic() < ends:
            if (first and cursors.holder(CONSUMER) is None) or self.stop.wait(_LOOK_EVERY_SECONDS):
                return

    def _after_death(self, holder: str) -> None:
        """Let another have the lease at once, if it is in that name."""
        with self._cursors() as cursors:
            cursors.keep(CONSUMER, holder, 0)

    @contextmanager
    def _cursors(self) -> Iterator[Cursors]:
        opened = open_metabase(self.metabase)
        try:
            yield opened.cursors
        finally:
            opened.close()
