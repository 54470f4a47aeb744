"""The options that commands share, each with its environment variable."""

import re
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote
from uuid import UUID

import click

from bucketwire.errors import ConfigError
from bucketwire.event.dialect import DIALECTS
from bucketwire.metabase.base import Metabase

METABASE_FILE = "metabase.db"

F = TypeVar("F", bound=Callable[..., Any])


def option(flag: str, help: str, **settings: Any) -> Callable[[F], F]:  # noqa: A002 - click's own word
    """An option that can also be set as BUCKETWIRE_<FLAG>."""
    variable = "BUCKETWIRE_" + flag.removeprefix("--").upper().replace("-", "_")
    return click.option(flag, envvar=variable, show_envvar=True, show_default=True, help=help, **settings)


def _checked_region(_context: click.Context, _parameter: click.Parameter, value: str) -> str:
    if re.fullmatch("[a-z0-9-]{1,64}", value) is None:
        raise click.BadParameter("lower-case letters, digits and hyphens only")
    return value


def _checked_uuid(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    try:
        return value and str(UUID(value))
    except ValueError:
        raise click.BadParameter("32 hexadecimal digits, with or without hyphens") from None


host_option = option("--host", "Address to listen on.", default="127.0.0.1")
port_option = option(
    "--port", "Port to listen on; 0 takes a free one.", default=9000, type=click.IntRange(0, 65535)
)
data_option = option(
    "--data",
    "Folder for objects, metabase and credentials.",
    default=Path("./data"),
    type=click.Path(path_type=Path, file_okay=False),
)
dialect_option = option(
    "--dialect", "Whose behaviour to follow.", default="aws", type=click.Choice(list(DIALECTS))
)
metabase_option = option(
    "--metabase", "URL of the metabase.  [default: sqlite, in the data folder]", default=None
)
region_option = option(
    "--region", "Region told to clients and in events.", default="us-east-1", callback=_checked_region
)
tls_certificate_option = option(
    "--tls-certificate",
    "PEM file of the server's certificate and those that vouch for it.  [default: HTTP without TLS]",
    default=None,
    type=click.Path(path_type=Path, dir_okay=False),
)
system_uuid_option = option(
    "--system-uuid",
    "UUID of this installation in messages of the COS format.  [default: the metabase's own]",
    default=None,
    callback=_checked_uuid,
)
system_name_option = option(
    "--system-name",
    "What people call this installation, in messages of the COS format.  [default: left out]",
    default=None,
)
root_access_key_option = option(
    "--root-access-key", "First access key.  [default: generated, kept in the data folder]", default=None
)
root_secret_key_option = option(
    "--root-secret-key", "Its secret; prefer the variable, a flag shows in `ps`.", default=None
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")

supervised_option = click.option("--supervised", is_flag=True, hidden=True)
"""Set by `up`: stop when standard input ends, since then the supervisor is gone."""


def metabase_url(metabase: str | None, data: Path) -> str:
    """The metabase's URL, by default a file in the data folder."""
    return metabase or f"sqlite:///{quote(str(data.absolute()))}/{METABASE_FILE}"


def blobs_url(data: Path) -> str:
    """Where the bytes of objects are."""
    return f"file://{data.absolute()}/objects"


@contextmanager
def opened_metabase(metabase: str | None, data: Path, *, make: bool = False) -> Iterator[Metabase]:
    """The metabase, for the time of a command; that a folder has none is an error, unless one may be made."""
    from bucketwire.metabase import open_metabase

    if not (metabase or make or (data / METABASE_FILE).exists()):
        raise ConfigError(f"no metabase in {data}: name its folder with --data, or its URL with --metabase")
    opened = open_metabase(metabase_url(metabase, data))
    try:
        yield opened
    finally:
        opened.close()


def free_port(host: str) -> int:
    """A port that nobody listens on now."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])
