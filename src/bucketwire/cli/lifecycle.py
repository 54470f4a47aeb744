"""`bucketwire lifecycle`: the lifecycle rules of all buckets, applied on demand."""

import time
from datetime import UTC, datetime
from pathlib import Path

import click
import msgspec

from bucketwire.cli.options import data_option, json_option, metabase_option, opened_metabase
from bucketwire.errors import ConfigError
from bucketwire.metainfo.expire import run_lifecycle


@click.group()
def lifecycle() -> None:
    """Apply the lifecycle rules of buckets now.

    A running server does it by itself every hour.
    """


@lifecycle.command()
@click.option("--now", default=None, help="Time to go by, such as 2030-01-31T00:00:00Z.  [default: now]")
@json_option
@data_option
@metabase_option
def run(now: str | None, data: Path, metabase: str | None, *, as_json: bool) -> None:
    """Remove all that is due, in all buckets, and print what was removed."""
    now_ns = time.time_ns() if now is None else _read_time_ns(now)
    with opened_metabase(metabase, data) as opened:
        counts = run_lifecycle(opened, now_ns)
    if as_json:
        click.echo(msgspec.json.encode(counts))
    else:
        click.echo(
            f"{counts.buckets} buckets: {counts.expired_objects} objects expired,"
            f" {counts.expired_versions} noncurrent versions removed,"
            f" {counts.expired_delete_markers} delete markers removed,"
            f" {counts.aborted_uploads} uploads aborted"
        )
    if counts.failed:
        reasons = "; ".join(f"{bucket}: {reason}" for bucket, reason in counts.failed.items())
        raise ConfigError(f"the rules of some buckets could not be applied: {reasons}")


def _read_time_ns(text: str) -> int:
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(f"--now is not a time: {text!r}; write it as 2030-01-31T00:00:00Z") from None
    return int((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()) * 1_000_000_000
