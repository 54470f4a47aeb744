"""`make chaos`: break things on purpose, and look for lost events.

The schedule follows from the seed; what happens does not, as processes and disks keep their own time.
Exit code 0 when every promise was kept, 1 when not, 130 after Ctrl-C.
"""

import argparse
import secrets
import shutil
import signal
import sys
from pathlib import Path

from rich.console import Console

from chaos.brokers import BROKERS, installed_brokers
from chaos.conductor import Conductor
from chaos.plan import Kind
from chaos.report import Run, failures, lines, summary, write_report
from chaos.schedule import make_schedule
from chaos.world import World, possible_kinds, topic_names


def main() -> int:
    """Run, check and report."""
    options = _options()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    console = Console(highlight=False, soft_wrap=True)
    try:
        run, folder = _run(options, console)
    except KeyboardInterrupt:
        console.print("stopped; nothing was checked")
        return 130
    told = summary(run)
    write_report(told, options.report)
    console.print("\n".join(lines(told)), markup=False)
    if failures(run.findings):
        console.print(f"SEED={run.seed} repeats the schedule; the log is {folder / 'up.log'}", markup=False)
        return 1
    shutil.rmtree(folder)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="chaos", description="Break things on purpose.")
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--seed", type=int, help="of a run to repeat; by default a new one")
    parser.add_argument(
        "--brokers",
        type=lambda text: _chosen(text, list(BROKERS)),
        help=f"of {','.join(BROKERS)}; by default those that are installed, with '' none",
    )
    parser.add_argument("--metabase", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument(
        "--faults",
        type=lambda text: _chosen(text, list(Kind)),
        default=list(Kind),
        help=f"the kinds to choose from, with commas between; by default all: {', '.join(Kind)}",
    )
    parser.add_argument(
        "--standby",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="whether a second pipeline is ready to take over",
    )
    parser.add_argument("--report", type=Path, default=Path("chaos-report.json"))
    options = parser.parse_args()
    options.seed = secrets.randbelow(1_000_000) if options.seed is None else options.seed
    options.brokers = installed_brokers() if options.brokers is None else options.brokers
    return options


def _chosen(text: str, possible: list[str]) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if unknown := set(names).difference(possible):
        raise argparse.ArgumentTypeError(f"{', '.join(sorted(unknown))}: choose from {', '.join(possible)}")
    return names


def _run(options: argparse.Namespace, console: Console) -> tuple[Run, Path]:
    topics = topic_names(options.brokers)
    kinds = [kind for kind in possible_kinds(options.brokers, options.metabase) if kind in options.faults]
    schedule = make_schedule(options.seed, options.minutes * 60, topics, kinds)
    console.print(
        f"seed {options.seed}: {sum(map(len, schedule.lanes))} requests, {len(schedule.edits)} edits,"
        f" {len(schedule.faults)} faults in {options.minutes:g} minutes;"
        f" {options.metabase}, {'with' if options.standby else 'without'} standby,"
        f" http {' '.join(options.brokers)}"
    )
    with World(options.brokers, options.metabase, standby=options.standby) as world:
        findings = Conductor(world, schedule, console).run()
    run = Run(
        options.seed, options.minutes, options.metabase, options.brokers, findings, standby=options.standby
    )
    return run, world.folder


if __name__ == "__main__":
    sys.exit(main())
