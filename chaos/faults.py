"""The faults: each is a function that brings one about and returns how to end it.

It returns None when there was nothing to hit, as when the process to kill is just being started.
"""

import heapq
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterable, Sequence

from chaos.brokers import Killable
from chaos.history import Injury
from chaos.plan import FaultStep, Kind
from chaos.processes import (
    JVM,
    SOURCE,
    WORKER,
    gateway,
    pipeline,
    pipeline_processes,
    scratch_folders,
    whole_pipeline,
)
from chaos.world import World
from services.http_endpoint import Mode
from services.proxy import Condition, Proxy
from wire import signal_all

End = Callable[[], None]
SLOWEST_SECONDS = 3


class Saboteur:
    """Brings the faults of the schedule about, and ends them."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._open: list[tuple[float, int, FaultStep, float, End]] = []
        self.injuries: list[Injury] = []
        self.missed: list[Kind] = []
        """Faults that found nothing to hit."""

    def run(self, steps: Iterable[FaultStep], began: float, stop: threading.Event) -> None:
        """Each at its time; those that are still at work when told to stop are ended."""
        try:
            for step in steps:
                if self._end_until(began + step.at_seconds, stop):
                    return
                self._bring_about(step, began)
            self._end_until(float("inf"), stop)
        finally:
            while self._open:
                self._end_next()

    @property
    def at_work(self) -> list[Kind]:
        """The faults that are not over."""
        return [fault.kind for _, _, fault, _, _ in self._open]

    def _bring_about(self, step: FaultStep, began: float) -> None:
        at = time.time()
        end = _FAULTS[step.kind](self._world, step)
        if end is None:
            self.missed.append(step.kind)
            return
        ends_at = max(at, began + step.at_seconds) + step.duration_seconds
        heapq.heappush(self._open, (ends_at, len(self.injuries) + len(self.missed), step, at, end))
        if not step.duration_seconds:
            self._end_next()

    def _end_until(self, when: float, stop: threading.Event) -> bool:
        """Wait until then and end what is to end before; whether to stop."""
        while self._open and self._open[0][0] <= when:
            if stop.wait(max(0.0, self._open[0][0] - time.time())):
                return True
            self._end_next()
        return when != float("inf") and stop.wait(max(0.0, when - time.time()))

    def _end_next(self) -> None:
        _, _, step, at, end = self._open[0]
        try:
            end()
        finally:
            heapq.heappop(self._open)
        self.injuries.append(Injury(step.kind, at, time.time()))


def _nothing_to_end() -> None:
    """A kill is over at once; what comes after it is recovery."""


def _kill(pids: Sequence[int]) -> End | None:
    signal_all(pids, signal.SIGKILL)
    return _nothing_to_end if pids else None


def _stop(pids: Sequence[int]) -> End | None:
    signal_all(pids, signal.SIGSTOP)
    return (lambda: signal_all(pids, signal.SIGCONT)) if pids else None


def _kill_everything(world: World, _: FaultStep) -> End | None:
    """Ends when the new system is ready."""
    if not world.running:
        return None
    world.kill()
    return world.start


def _one(pids: Sequence[int], step: FaultStep) -> list[int]:
    return [pids[step.target % len(pids)]] if pids else []


def _endpoint(mode: Mode) -> Callable[[World, FaultStep], End | None]:
    def misbehave(world: World, step: FaultStep) -> End | None:
        places = sorted(set(world.http.place_of.values()))
        endpoint = world.http.endpoints[places[step.target % len(places)]]
        if endpoint.mode is not Mode.OK:  # a fault is there already, and would end with this one
            return None
        endpoint.status = 500
        endpoint.delay_seconds = step.target % 1000 / 1000 * SLOWEST_SECONDS
        endpoint.mode = mode

        def behave() -> None:
            endpoint.mode = Mode.OK

        return behave

    return misbehave


def _way(condition: Condition) -> Callable[[World, FaultStep], End]:
    def fail(world: World, step: FaultStep) -> End:
        return _worsen(world.ways, condition, step)

    return fail


def _worsen(ways: Sequence[Proxy], condition: Condition, step: FaultStep) -> End:
    way = ways[step.target % len(ways)]
    way.condition = condition

    def mend() -> None:
        way.condition = Condition.WORKS

    return mend


def _cut(way: Proxy) -> End:
    """First nothing passes, so that there are requests whose answer is lost; then connections are cut."""
    way.condition = Condition.HANGS

    def cut() -> None:
        way.cut()
        way.condition = Condition.WORKS

    return cut


def _broker_away(world: World, step: FaultStep) -> End:
    ways = [way for broker in world.brokers for way in broker.ways]
    return _worsen(ways, Condition.DOWN, step)


def _restart_broker(world: World, step: FaultStep) -> End:
    """Ends when the broker answers again."""
    brokers = [broker for broker in world.brokers if isinstance(broker, Killable)]
    broker = brokers[step.target % len(brokers)]
    broker.kill()
    return broker.start


def _restart_database(world: World, _: FaultStep) -> End | None:
    if world.postgres is None:
        return None
    world.postgres.restart()
    return _nothing_to_end


def _remove_scratch(world: World, _: FaultStep) -> End | None:
    folders = scratch_folders(world)
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
    return _nothing_to_end if folders else None


_FAULTS: dict[Kind, Callable[[World, FaultStep], End | None]] = {
    Kind.KILL_GATEWAY: lambda world, _: _kill(gateway(world)),
    Kind.KILL_PIPELINE: lambda world, _: _kill(pipeline(world)),
    Kind.KILL_JVM: lambda world, _: _kill(pipeline_processes(world, JVM)),
    Kind.KILL_SOURCE: lambda world, step: _kill(_one(pipeline_processes(world, SOURCE), step)),
    Kind.KILL_WORKER: lambda world, step: _kill(_one(pipeline_processes(world, WORKER), step)),
    Kind.KILL_EVERYTHING: _kill_everything,
    Kind.STOP_GATEWAY: lambda world, _: _stop(gateway(world)),
    Kind.STOP_PIPELINE: lambda world, _: _stop(whole_pipeline(world)),
    Kind.STOP_WORKER: lambda world, step: _stop(_one(pipeline_processes(world, SOURCE, WORKER), step)),
    Kind.ENDPOINT_HANGS: _endpoint(Mode.HANG),
    Kind.ENDPOINT_REFUSES: _endpoint(Mode.REFUSE),
    Kind.ENDPOINT_CLOSES: _endpoint(Mode.CLOSE_EARLY),
    Kind.ENDPOINT_SLOW: _endpoint(Mode.SLOW),
    Kind.ENDPOINT_DOWN: _endpoint(Mode.DOWN),
    Kind.WAY_CUT: lambda world, step: _cut(world.ways[step.target % len(world.ways)]),
    Kind.WAY_HANGS: _way(Condition.HANGS),
    Kind.CLIENTS_CUT: lambda world, _: _cut(world.clients),
    Kind.BROKER_AWAY: _broker_away,
    Kind.BROKER_RESTART: _restart_broker,
    Kind.DATABASE_RESTART: _restart_database,
    Kind.SCRATCH_REMOVED: _remove_scratch,
}
