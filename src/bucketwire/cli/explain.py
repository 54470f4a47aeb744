"""`bucketwire explain`: what an event would do, by the rules of a running server."""

import time
from pathlib import Path

import click
import msgspec

from bucketwire.cli.options import (
    data_option,
    dialect_option,
    json_option,
    metabase_option,
    opened_metabase,
    system_name_option,
    system_uuid_option,
)
from bucketwire.event.change import Origin
from bucketwire.event.dialect import dialect_named
from bucketwire.event.installation import Installation
from bucketwire.metabase.base import Metabase
from bucketwire.metainfo.explain import Explanation, ShownMessage, Verdict, explain_in
from bucketwire.metainfo.supposed import Supposition, entries, metadata_entries, supposition

_NO_REQUEST = "0000000000000000"
"""Stands for the id of a request that nobody has made."""


@click.command()
@click.option("--bucket", required=True, help="Name of the bucket.")
@click.option("--key", required=True, help="Key of the object; it need not exist.")
@click.option("--event", required=True, help="Event to suppose, such as s3:ObjectCreated:Put.")
@click.option("--size", type=int, default=None, help="Size in bytes.  [default: the object's]")
@click.option("--etag", default=None, help="eTag without quotes.  [default: the object's]")
@click.option("--content-type", default=None, help="Content type.  [default: the object's]")
@click.option(
    "--metadata", multiple=True, help="User metadata, name=value; may be repeated.  [default: the object's]"
)
@click.option("--tag", multiple=True, help="Tag, name=value; may be repeated.  [default: the object's]")
@click.option("--version", default=None, help="Version id of the object.  [default: the current one]")
@json_option
@dialect_option
@system_uuid_option
@system_name_option
@data_option
@metabase_option
def explain(
    bucket: str,
    key: str,
    event: str,
    size: int | None,
    etag: str | None,
    content_type: str | None,
    metadata: tuple[str, ...],
    tag: tuple[str, ...],
    version: str | None,
    dialect: str,
    system_uuid: str | None,
    system_name: str | None,
    data: Path,
    metabase: str | None,
    *,
    as_json: bool,
) -> None:
    """Say which rules an event would match, why the others do not, and what would be sent.

    Nothing is sent and nothing is written. Name the dialect of the server, and its system name if it has one.
    """
    asked = supposition(
        key,
        event,
        size_bytes=size,
        etag=etag,
        content_type=content_type,
        metadata=metadata_entries(list(metadata)),
        tags=entries(list(tag), "tag"),
        version=version,
    )
    with opened_metabase(metabase, data) as opened:
        uuid = system_uuid or opened.identity()
        installation = Installation(dialect_named(dialect), uuid, system_name or "")
        explanation = _explanation(opened, bucket, asked, installation)
    if as_json:
        click.echo(msgspec.json.encode(explanation))
    else:
        _print(explanation)


def _explanation(opened: Metabase, name: str, asked: Supposition, installation: Installation) -> Explanation:
    bucket = opened.buckets.get(name)
    origin = Origin(bucket.owner_id, "127.0.0.1", _NO_REQUEST, _NO_REQUEST)
    return explain_in(opened, bucket, asked, origin, installation, time.time_ns())


def _print(explanation: Explanation) -> None:
    click.echo(f"{explanation.event} of {explanation.bucket}/{explanation.key}")
    if explanation.object_exists:
        click.echo("the object exists")
    for note in explanation.notes:
        click.echo(note)
    click.echo()
    if not explanation.rules:
        click.echo("the bucket has no rules: nothing is sent")
    for verdict in explanation.rules:
        _print_verdict(verdict)
    for verdict in explanation.rules:
        if verdict.message is not None:
            _print_message(verdict.rule, verdict.message)


def _print_verdict(verdict: Verdict) -> None:
    mark = "-" if not verdict.matches else "+" if verdict.delivers else "!"
    click.echo(f"{mark} {verdict.rule} -> {verdict.topic}")
    for reason in verdict.reasons:
        click.echo(f"    {reason}")


def _print_message(rule: str, message: ShownMessage) -> None:
    click.echo(f"\nmessage of {rule}:\n")
    beside = {"content type": message.content_type, "event id": message.event_id, "key": message.key}
    if message.partition_key is not None:
        beside["partition key"] = message.partition_key
    beside |= {f"CloudEvents {name}": value for name, value in message.cloudevent.items()}
    for name, value in beside.items():
        click.echo(f"  {name}: {value}")
    click.echo()
    click.echo(msgspec.json.format(bytes(message.body), indent=2))
