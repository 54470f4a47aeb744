"""`bucketwire user`: users and their keys, in the metabase of a server that may be running."""

from pathlib import Path

import click
import msgspec

from bucketwire.access.credentials import ROOT_FILE, root_credentials
from bucketwire.cli.options import data_option, json_option, metabase_option, opened_metabase
from bucketwire.errors import Conflict
from bucketwire.metainfo.users import create_user

_name_option = click.option("--name", required=True, help="Name of the user.")
_tenant_option = click.option("--tenant", default="", help="Tenant of the user.  [default: none]")


@click.group()
def user() -> None:
    """Create, list and remove users.

    A new user works at once on a running server; a removed one is refused within two seconds.
    """


@user.command()
@_name_option
@_tenant_option
@click.option("--access-key", default=None, help="Access key.  [default: generated]")
@click.option("--secret-key", default=None, help="Its secret; a flag shows in `ps`.  [default: generated]")
@json_option
@data_option
@metabase_option
def create(
    name: str,
    tenant: str,
    access_key: str | None,
    secret_key: str | None,
    data: Path,
    metabase: str | None,
    *,
    as_json: bool,
) -> None:
    """Create a user and show its keys, this once."""
    if access_key is not None and access_key == _root_access_key(data):
        raise Conflict("that access key is taken", code="KeyAlreadyExists")
    with opened_metabase(metabase, data, make=True) as opened:
        made, key = create_user(opened.users, name, tenant, access_key, secret_key)
    if as_json:
        shown = {"id": made.id, "name": made.name, "tenant": made.tenant}
        click.echo(msgspec.json.encode({**shown, "access_key": key.access_key, "secret_key": key.secret_key}))
    else:
        click.echo(f"created user {_called(made.name, made.tenant)} with id {made.id}\n")
        click.echo(f"  AWS_ACCESS_KEY_ID={key.access_key}\n  AWS_SECRET_ACCESS_KEY={key.secret_key}")


@user.command("list")
@json_option
@data_option
@metabase_option
def list_users(data: Path, metabase: str | None, *, as_json: bool) -> None:
    """List the users, without their secrets. The root user is not among them."""
    with opened_metabase(metabase, data) as opened:
        found = opened.users.all()
    if as_json:
        shown = [
            {"id": each.id, "name": each.name, "tenant": each.tenant, "access_keys": keys}
            for each, keys in found
        ]
        click.echo(msgspec.json.encode(shown))
        return
    for each, keys in found:
        click.echo(f"{_called(each.name, each.tenant)}  {each.id}  {' '.join(keys)}")


@user.command("rm")
@_name_option
@_tenant_option
@data_option
@metabase_option
def remove(name: str, tenant: str, data: Path, metabase: str | None) -> None:
    """Remove a user and its keys; one that owns buckets stays."""
    with opened_metabase(metabase, data) as opened:
        opened.users.remove(opened.users.named(name, tenant).id)
    click.echo(f"removed user {_called(name, tenant)}")


def _root_access_key(data: Path) -> str | None:
    if not (data / ROOT_FILE).exists():
        return None
    return root_credentials(data, None, None)[0].access_key


def _called(name: str, tenant: str) -> str:
    return f"{tenant}/{name}" if tenant else name
