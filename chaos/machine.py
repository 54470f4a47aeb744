"""How busy the processors were, second by second.

A machine that is one of several on a host may have its processors taken away for a while. What is slow then
is slow whatever the system does: so the report says how much was taken.
"""

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from threading import Event

EVERY_SECONDS = 1.0
_STAT = Path("/proc/stat")
_IDLE, _WAITING, _STOLEN = 3, 4, 7
_COUNTED = 8
"""What Linux counts for itself; guests are in these already."""


@dataclass(frozen=True, slots=True)
class Load:
    """Of all processors, up to a moment; in seconds."""

    at: float
    all: float
    worked: float
    stolen: float


@dataclass(frozen=True, slots=True)
class Shares:
    """Of what the processors could have done."""

    worked: float
    stolen: float


def watch(loads: list[Load], stop: Event) -> None:
    """Add a load every second. None where Linux does not count them."""
    while (load := _load()) is not None:
        loads.append(load)
        if stop.wait(EVERY_SECONDS):
            return


def shares(loads: Iterable[Load], began: float, ended: float) -> Shares | None:
    """Between two moments, or a little more; None when that was not watched."""
    inside = [load for load in loads if began - EVERY_SECONDS <= load.at <= ended + EVERY_SECONDS]
    if len(inside) < 2:
        return None
    first, last = inside[0], inside[-1]
    whole = last.all - first.all
    return Shares((last.worked - first.worked) / whole, (last.stolen - first.stolen) / whole)


def _load() -> Load | None:
    try:
        counted = _STAT.read_text().splitlines()[0].split()[1 : _COUNTED + 1]
    except OSError:
        return None
    ticks = [int(each) / os.sysconf("SC_CLK_TCK") for each in counted]
    idle = ticks[_IDLE] + ticks[_WAITING]
    return Load(time.time(), sum(ticks), sum(ticks) - idle - ticks[_STOLEN], ticks[_STOLEN])
