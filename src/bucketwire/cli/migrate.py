"""`bucketwire migrate`: brings the schema of the metabase up to date."""

from pathlib import Path

import click
import msgspec

from bucketwire.cli.options import data_option, json_option, metabase_option, metabase_url


@click.command()
@json_option
@data_option
@metabase_option
def migrate(data: Path, metabase: str | None, *, as_json: bool) -> None:
    """Bring the schema of the metabase up to date, and say from which version to which.

    A server does it by itself when it starts.
    """
    from bucketwire.metabase import migrate_metabase

    migrated = migrate_metabase(metabase_url(metabase, data))
    if as_json:
        click.echo(
            msgspec.json.encode({name: {"from": old, "to": new} for name, (old, new) in migrated.items()})
        )
        return
    for name, (old, new) in migrated.items():
        done = f"is at schema {new} already" if old == new else f"went from schema {old} to {new}"
        click.echo(f"{name} {done}")
