"""`bucketwire env`: shell lines that point AWS tools at this server."""

import shlex
from pathlib import Path

import click

from bucketwire.access.credentials import ROOT_FILE, root_credentials
from bucketwire.cli.options import (
    data_option,
    host_option,
    port_option,
    region_option,
    tls_certificate_option,
)
from bucketwire.errors import ConfigError


@click.command()
@host_option
@port_option
@data_option
@region_option
@tls_certificate_option
def env(host: str, port: int, data: Path, region: str, tls_certificate: Path | None) -> None:
    """Print shell lines that point AWS tools at this server.

    Use it as: eval "$(bucketwire env)"
    """
    if not (data / ROOT_FILE).exists():
        raise ConfigError(f"no credentials in {data}: run `bucketwire up` first, or name its --data folder")
    root, _ = root_credentials(data, None, None)
    values = {
        "AWS_ACCESS_KEY_ID": root.access_key,
        "AWS_SECRET_ACCESS_KEY": root.secret_key,
        "AWS_DEFAULT_REGION": region,
        "AWS_ENDPOINT_URL": endpoint(host, port, tls=tls_certificate is not None),
    }
    if tls_certificate is not None:
        values["AWS_CA_BUNDLE"] = str(tls_certificate.absolute())
    for name, value in values.items():
        click.echo(f"export {name}={shlex.quote(value)}")


def endpoint(host: str, port: int, *, tls: bool = False) -> str:
    """The URL that clients on this machine use."""
    scheme = "https" if tls else "http"
    reachable = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"{scheme}://[{reachable}]:{port}" if ":" in reachable else f"{scheme}://{reachable}:{port}"
