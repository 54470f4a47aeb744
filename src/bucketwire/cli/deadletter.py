"""`bucketwire deadletter`: messages that are not tried again, beside a server that may be running.

What is redriven or purged is found and done page by page, so that any number of dead letters fits in memory.
A selection ends at the time of the call: what is redriven and dies again is not redriven twice.
"""

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec

from bucketwire.cli.message_shown import described
from bucketwire.cli.options import data_option, json_option, metabase_option, opened_metabase
from bucketwire.cli.shown import printable, shown_time, when_ns
from bucketwire.cli.topic import known_arn, tenant_of, tenant_option
from bucketwire.errors import NotFound
from bucketwire.metabase.base import Metabase, Queue
from bucketwire.metabase.values import DeadLetter, Letters

F = TypeVar("F", bound=Callable[..., Any])

_PAGE = 500
_FILTERS = ("topic", "tenant", "since", "until", "prefix")


@dataclass(frozen=True, slots=True)
class Selection:
    """Which dead letters a command is about."""

    which: Letters
    tenant: str | None = None
    prefix: str = ""

    def letters(self, queue: Queue) -> Iterator[DeadLetter]:
        """All of them, by id, read in pages."""
        which = self.which
        while page := queue.letters(which, _PAGE):
            yield from filter(self._has, page)
            which = msgspec.structs.replace(which, after=page[-1].id)

    def ids(self, queue: Queue) -> Iterator[int]:
        """Their ids."""
        return (letter.id for letter in self.letters(queue))

    def _has(self, letter: DeadLetter) -> bool:
        message = letter.message
        in_tenant = self.tenant is None or tenant_of(message.topic_arn) == self.tenant
        return in_tenant and message.key.startswith(self.prefix)


def _selecting(command: F) -> F:
    """The filters, all of which must hold; the command gets them by name in `filters`."""
    for add in (
        click.option("--prefix", default=None, help="Those of objects whose key begins so."),
        click.option(
            "--until",
            type=when_ns,
            metavar="TIME",
            default=None,
            help="Those that died before a time or an age.",
        ),
        click.option(
            "--since",
            type=when_ns,
            metavar="TIME",
            default=None,
            help="Those that died since a time (ISO) or an age: 2h, 7d.",
        ),
        tenant_option,
        click.option("--topic", default=None, metavar="NAME_OR_ARN", help="Those of one topic."),
    ):
        command = add(command)
    return command


@click.group()
def deadletter() -> None:
    """List, show, redrive and purge dead letters.

    A dead letter is a message that is not tried again: it expired, or was refused for good.
    """


@deadletter.command("list")
@_selecting
@click.option("--limit", type=click.IntRange(min=1), default=None, help="At most so many.  [default: all]")
@json_option
@data_option
@metabase_option
def list_letters(
    limit: int | None, data: Path, metabase: str | None, *, as_json: bool, **filters: Any
) -> None:
    """List dead letters, oldest first: id, time, topic, key, reason."""
    with opened_metabase(metabase, data) as opened:
        for letter in islice(_selection(opened, filters).letters(opened.queue), limit):
            click.echo(msgspec.json.encode(_line(letter)) if as_json else _row(letter))


@deadletter.command()
@click.argument("number", type=int, metavar="ID")
@json_option
@data_option
@metabase_option
def show(number: int, data: Path, metabase: str | None, *, as_json: bool) -> None:
    """Show a dead letter: the whole message, and why it is dead."""
    with opened_metabase(metabase, data) as opened:
        found = opened.queue.letters(Letters(after=number - 1), 1)
    if not found or found[0].id != number:
        raise NotFound(f"there is no dead letter {number}", code="NotFound")
    whole = msgspec.json.encode({**_line(found[0]), **described(found[0].message)})
    click.echo(whole if as_json else msgspec.json.format(whole, indent=2))


@deadletter.command()
@click.argument("numbers", type=int, nargs=-1, metavar="[ID]...")
@_selecting
@click.option("--all", "everything", is_flag=True, help="All dead letters.")
@json_option
@data_option
@metabase_option
def redrive(
    numbers: tuple[int, ...],
    data: Path,
    metabase: str | None,
    *,
    everything: bool,
    as_json: bool,
    **filters: Any,
) -> None:
    """Send dead letters again: those named, or those that the filters find."""
    _check_choice(numbers, filters, everything=everything)
    with opened_metabase(metabase, data) as opened:
        ids = numbers or _selection(opened, filters).ids(opened.queue)
        done = _in_pages(opened.queue.redrive, ids, "redriven")
    _tell("redriven", done, numbers, as_json=as_json)


@deadletter.command()
@click.argument("numbers", type=int, nargs=-1, metavar="[ID]...")
@_selecting
@click.option("--all", "everything", is_flag=True, help="All dead letters.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
@data_option
@metabase_option
def purge(
    numbers: tuple[int, ...],
    data: Path,
    metabase: str | None,
    *,
    everything: bool,
    yes: bool,
    as_json: bool,
    **filters: Any,
) -> None:
    """Remove dead letters for good: those named, or those that the filters find."""
    _check_choice(numbers, filters, everything=everything)
    with opened_metabase(metabase, data) as opened:
        selection = _selection(opened, filters)
        if not yes:
            count = len(numbers) or sum(1 for _ in selection.ids(opened.queue))
            click.confirm(f"Remove {_counted(count)} for good?", abort=True, err=True)
        done = _in_pages(opened.queue.purge, numbers or selection.ids(opened.queue), "purged")
    _tell("purged", done, numbers, as_json=as_json)


def _check_choice(numbers: Sequence[int], filters: dict[str, Any], *, everything: bool) -> None:
    filtered = any(filters[name] is not None for name in _FILTERS)
    if sum((bool(numbers), filtered, everything)) != 1:
        raise click.UsageError("Say which dead letters: ids, or filters, or --all.")


def _selection(opened: Metabase, filters: dict[str, Any]) -> Selection:
    topic, tenant = filters["topic"], filters["tenant"]
    arn = None if topic is None else known_arn(opened, topic, tenant)
    until_ns = filters["until"] or time.time_ns()
    return Selection(Letters(arn, filters["since"] or 0, until_ns), tenant, filters["prefix"] or "")


def _in_pages(act: Callable[[Sequence[int]], int], ids: Iterable[int], what: str) -> int:
    """Do it to all of them; how many there were."""
    remaining, done = iter(ids), 0
    while page := list(islice(remaining, _PAGE)):
        done += act(page)
        if sys.stderr.isatty():
            click.echo(f"\r{done} {what} ", nl=False, err=True)
    if done and sys.stderr.isatty():
        click.echo("\r", nl=False, err=True)
    return done


def _tell(what: str, done: int, numbers: Sequence[int], *, as_json: bool) -> None:
    if numbers and not done:
        raise NotFound(f"there is no dead letter {', '.join(map(str, numbers))}", code="NotFound")
    click.echo(msgspec.json.encode({what: done}) if as_json else f"{what} {_counted(done)}")


def _counted(count: int) -> str:
    return f"{count} dead letter{'' if count == 1 else 's'}"


def _line(letter: DeadLetter) -> dict[str, Any]:
    message = letter.message
    return {
        "id": letter.id,
        "buried_at": shown_time(letter.buried_at_ns),
        "committed_at": shown_time(message.committed_at_ns),
        "topic": message.topic_arn,
        "event_id": message.event_id,
        "key": message.key,
        "reason": letter.reason,
    }


def _row(letter: DeadLetter) -> str:
    message = letter.message
    cells = (
        str(letter.id),
        shown_time(letter.buried_at_ns) or "",
        message.topic_arn,
        message.key,
        letter.reason,
    )
    return "  ".join(map(printable, cells))
