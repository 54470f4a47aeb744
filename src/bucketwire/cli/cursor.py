"""`bucketwire cursor`: how far the pipeline has come in the change stream, and the way on after a loss.

A pipeline that finds changes trimmed before it has read them stands still, since nothing may be passed over
in silence. `skip` is the operator's word that the loss is accepted.
"""

import secrets
import time
from pathlib import Path
from typing import Any

import click
import msgspec

from bucketwire.cli.options import data_option, json_option, metabase_option, opened_metabase
from bucketwire.cli.shown import shown_age, shown_time
from bucketwire.config import CONSUMER
from bucketwire.errors import Conflict
from bucketwire.gateway.retention import pipeline_lag
from bucketwire.metabase.base import Cursors, Metabase

_WAIT_SECONDS = 15.0
_LOOK_EVERY_SECONDS = 0.1
_HOLD_SECONDS = 10.0


@click.group()
def cursor() -> None:
    """See how far the pipeline is, and go on after a loss."""


@cursor.command()
@json_option
@data_option
@metabase_option
def show(data: Path, metabase: str | None, *, as_json: bool) -> None:
    """Show the position, what waits behind it, and whether changes were trimmed before they were read."""
    with opened_metabase(metabase, data) as opened:
        found = _described(opened)
    if as_json:
        click.echo(msgspec.json.encode(found))
        return
    click.echo(f"position:  {found['position'] or 'none yet'}")
    click.echo(f"waiting:   {found['changes_waiting']} changes, for {shown_age(found['oldest_seconds'])}")
    click.echo(f"pipeline:  {found['holder'] or 'none'}, last reported at {found['alive_at'] or 'no time'}")
    click.echo(f"trimmed:   {'yes: changes are lost, see `skip`' if found['trimmed'] else 'no'}")


@cursor.command()
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
@data_option
@metabase_option
def skip(data: Path, metabase: str | None, *, yes: bool, as_json: bool) -> None:
    """Go on at the oldest change that is kept. Only when changes were trimmed before they were read."""
    with opened_metabase(metabase, data) as opened:
        if not pipeline_lag(opened).lost:
            raise Conflict("no change was trimmed before it was read: there is nothing to skip")
        lost = _lost(opened)
        click.echo(_loss(lost), err=True)
        if not yes:
            click.confirm("Give up these changes, and go on behind them?", abort=True, err=True)
        position = _skip(opened)
    if as_json:
        click.echo(msgspec.json.encode({**lost, "position": position}))
    else:
        click.echo(f"the pipeline goes on at {position}")


def _described(opened: Metabase) -> dict[str, Any]:
    lag = pipeline_lag(opened)
    return {
        "position": opened.cursors.load(CONSUMER),
        "stream_starts_at": opened.changes.start(),
        "changes_waiting": lag.changes,
        "oldest_seconds": lag.seconds(time.time_ns()),
        "alive_at": shown_time(opened.cursors.alive_at_ns(CONSUMER)),
        "holder": opened.cursors.holder(CONSUMER),
        "trimmed": lag.lost,
    }


def _lost(opened: Metabase) -> dict[str, Any]:
    """The bounds of the loss, as far as they are known: the metabase keeps nothing of what it has trimmed."""
    return {
        "lost_from": shown_time(opened.cursors.alive_at_ns(CONSUMER)),
        "lost_until": shown_time(pipeline_lag(opened).oldest_at_ns),
    }


def _loss(lost: dict[str, Any]) -> str:
    began = (
        f"the pipeline last reported at {lost['lost_from']}"
        if lost["lost_from"]
        else "it is not known since when"
    )
    ended = (
        f"the oldest change that is kept is of {lost['lost_until']}"
        if lost["lost_until"]
        else "no change is kept"
    )
    return f"changes are lost: {began}; {ended}"


def _skip(opened: Metabase) -> str:
    """Set the cursor to the start of the stream, as its only holder."""
    holder = f"cursor-skip-{secrets.token_hex(8)}"
    _take(opened.cursors, holder)
    try:
        start = opened.changes.start()
        opened.cursors.save(CONSUMER, start, 0, holder)
    finally:
        opened.cursors.keep(CONSUMER, holder, 0)
    return start


def _take(cursors: Cursors, holder: str) -> None:
    """Take the lease. A pipeline that is started again and again has it for moments only."""
    ends = time.monotonic() + _WAIT_SECONDS
    while not cursors.lease(CONSUMER, holder, _HOLD_SECONDS):
        if time.monotonic() > ends:
            raise Conflict(f"the pipeline {cursors.holder(CONSUMER)} is running: stop it first")
        time.sleep(_LOOK_EVERY_SECONDS)
