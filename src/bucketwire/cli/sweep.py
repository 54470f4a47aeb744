"""`bucketwire sweep`: removes bytes that no object uses, on demand."""

from datetime import UTC, datetime
from pathlib import Path

import click
import msgspec

from bucketwire.cli.options import blobs_url, data_option, json_option, metabase_option, opened_metabase


@click.command()
@json_option
@data_option
@metabase_option
def sweep(data: Path, metabase: str | None, *, as_json: bool) -> None:
    """Remove bytes that no object uses.

    A running server does it by itself every hour. Bytes that were never committed go when they are a day old.
    """
    from bucketwire.blobs import Blobs
    from bucketwire.gateway.sweep import sweep as run_sweep

    with opened_metabase(metabase, data) as opened:
        swept = run_sweep(opened.objects, Blobs(blobs_url(data)), datetime.now(UTC))
    if as_json:
        click.echo(msgspec.json.encode(swept))
    else:
        click.echo(
            f"removed {swept.dropped} dropped, {swept.orphaned} orphaned"
            f" and {swept.unfinished} unfinished files"
        )
