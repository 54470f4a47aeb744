"""Has a schedule done: clients, owner and faults at the same time, then the wait for what is on its way.

Whatever breaks in this program itself ends the run and is a problem of it: it must not pass for a good one.
"""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from rich.console import Console

from chaos.check import check
from chaos.edits import Owner
from chaos.faults import Saboteur
from chaos.history import History, Outcome, Write
from chaos.machine import Load, watch
from chaos.plan import Schedule
from chaos.report import Findings
from chaos.world import World
from chaos.writer import Client

PROGRESS_SECONDS = 5.0
SETTLE_SECONDS = 300.0
QUIET_SECONDS = 3.0
"""After the last event that had to come: for what should not."""


class Conductor:
    """One run."""

    def __init__(self, world: World, schedule: Schedule, console: Console) -> None:
        self._world = world
        self._schedule = schedule
        self._console = console
        self._stop, self._collected = threading.Event(), threading.Event()
        self._history = History()
        self._saboteur = Saboteur(world)
        self._owner = Owner(world, self._history, self._stop)
        self._clients = [
            Client(world.client("s3", through_proxy=bool(lane % 2))) for lane in range(len(schedule.lanes))
        ]
        self._writes: list[list[Write]] = [[] for _ in schedule.lanes]
        self._loads: list[Load] = []
        self._problems: list[str] = []

    def run(self) -> Findings:
        """The whole of it; nothing is at work any more when it returns."""
        self._world.prepare(self._schedule, self._history)
        collector = threading.Thread(target=self._collect, name="collector")
        collector.start()
        try:
            began = time.time()
            self._act(began)
            ends_at = time.time()
            self._settle()
        finally:
            self._stop.set()
            self._collected.set()
            collector.join()
        return self._findings(began, ends_at)

    def _collect(self) -> None:
        self._guarded(self._world.collect, self._history, self._collected)

    def _act(self, began: float) -> None:
        """Clients, owner and faults, until the schedule is done."""
        with ThreadPoolExecutor(len(self._clients) + 3) as pool:
            pool.submit(self._guarded, watch, self._loads, self._stop)
            work = [
                *(
                    pool.submit(self._guarded, client.run, steps, began, writes, self._stop)
                    for client, steps, writes in zip(
                        self._clients, self._schedule.lanes, self._writes, strict=True
                    )
                ),
                pool.submit(self._guarded, self._owner.run, self._schedule.edits, began),
                pool.submit(self._guarded, self._saboteur.run, self._schedule.faults, began, self._stop),
            ]
            try:
                self._watch(work, began)
            finally:
                self._stop.set()

    def _guarded(self, work: Callable[..., None], *arguments: Any) -> None:
        """What breaks here must not pass for a good run."""
        try:
            work(*arguments)
        except Exception as error:  # noqa: BLE001
            self._problems.append(f"{type(error).__name__}: {error}")
            self._console.print_exception()

    def _watch(self, work: Sequence[Future[None]], began: float) -> None:
        """Tell how far it is, every few seconds, until all is done."""
        tell_at = began
        with self._console.status("starting") as status:
            while not all(each.done() for each in work) and not self._problems:
                if time.time() >= tell_at:
                    status.update(line := self._progress(time.time() - began))
                    tell_at += PROGRESS_SECONDS
                    if not self._console.is_terminal:
                        self._console.print(line, markup=False)
                self._collected.wait(0.2)

    def _progress(self, seconds: float) -> str:
        writes = [write for lane in self._writes for write in lane]
        unknown = sum(write.outcome is Outcome.UNKNOWN for write in writes)
        at_work = ", ".join(self._saboteur.at_work) or "none"
        return (
            f"{int(seconds) // 60:02}:{int(seconds) % 60:02}  {len(writes)} writes ({unknown} unknown),"
            f" {len(self._history.events)} messages, {len(self._saboteur.injuries)} faults (now: {at_work})"
        )

    def _settle(self) -> None:
        """Wait until what had to come has come and the queue is empty, or patience ends."""
        self._history.writes += [write for lane in self._writes for write in lane]
        give_up = time.monotonic() + SETTLE_SECONDS
        while time.monotonic() < give_up:
            if self._world.gauge("bucketwire_parked_messages") == 0 and not check(self._history).lost:
                break
            self._collected.wait(1.0)
        self._collected.wait(QUIET_SECONDS)

    def _findings(self, began: float, ends_at: float) -> Findings:
        return Findings(
            self._history,
            self._saboteur.injuries,
            self._saboteur.missed,
            [each for client in self._clients for each in client.actions],
            self._owner.edits,
            began,
            ends_at,
            check(self._history),
            self._world.gauge("bucketwire_dead_letters"),
            self._world.gauge("bucketwire_parked_messages"),
            self._problems,
            self._world.cold_starts,
            self._loads,
        )
