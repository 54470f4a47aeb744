"""The options that commands share, each with its environment variable."""

import re
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import click

from bucketwire.event.dialect import DIALECTS
from bucketwire.metabase.base import Metabase

F = TypeVar("F", bound=Callable[..., Any])


def option(flag: str, help: str, **settings: Any) -> Callable[[F], F]:  # noqa: A002 - click's own word
    """An option that can also be set as BUCKETWIRE_<FLAG>."""
    variable = "BUCKETWIRE_" + flag.removeprefix("--").upper().replace("-", "_")
    return click.option(flag, envvar=variable, show_envvar=True, show_default=True, help=help, **settings)


def _checked_region(_context: click.Context, _parameter: click.Parameter, value: str) -> str:
    if re.fullmatch("[a-z0-9-]{1,64}", value) is None:
        raise click.BadParameter("lower-case letters, digits and hyphens only")
    return value


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
domain_option = option(
    "--domain",
    "Name under which buckets are addressed as <bucket>.<domain>; localhost always is.",
    default=None,
)

housekeeping_option = option(
    "--housekeeping-seconds",
    "Time between two runs of the lifecycle and of the sweep.",
    default=3600,
    type=click.IntRange(min=1),
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")

supervised_option = click.option("--supervised", is_flag=True, hidden=True)
"""Set by `up`: stop when standard input ends, since then the supervisor is gone."""


def metabase_url(metabase: str | None, data: Path) -> str:
    """The metabase's URL, by default a file in the data folder."""
    return metabase or f"sqlite:///{quote(str(data.absolute()))}/metabase.db"


def blobs_url(data: Path) -> str:
    """Where the bytes of objects are."""
    return f"file://{data.absolute()}/objects"


@contextmanager
def opened_metabase(metabase: str | None, data: Path) -> Iterator[Metabase]:
    """The metabase, for the time of a command."""
    from bucketwire.metabase import open_metabase

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
