"""`bucketwire gateway`: serves S3 and SNS."""

import sys
import time
from pathlib import Path

import click

from bucketwire.access.credentials import KeyRing, root_credentials
from bucketwire.cli.options import (
    blobs_url,
    data_option,
    dialect_option,
    domain_option,
    host_option,
    housekeeping_option,
    metabase_option,
    metabase_url,
    port_option,
    region_option,
    supervised_option,
)
from bucketwire.cli.supervise import stop_with_supervisor
from bucketwire.config import CONSUMER, GatewaySettings
from bucketwire.errors import BucketwireError
from bucketwire.metabase import open_metabase
from bucketwire.metabase.base import Metabase

_ALIVE_SECONDS = 5.0


@click.command()
@host_option
@port_option
@data_option
@dialect_option
@metabase_option
@region_option
@domain_option
@housekeeping_option
@supervised_option
def gateway(
    host: str,
    port: int,
    data: Path,
    dialect: str,
    metabase: str | None,
    region: str,
    domain: str | None,
    housekeeping_seconds: int,
    *,
    supervised: bool,
) -> None:
    """Run a gateway alone."""
    from bucketwire.blobs import Blobs
    from bucketwire.gateway.housekeeping import housekeeping
    from bucketwire.gateway.serve import serve
    from bucketwire.log import configure_logging
    from bucketwire.metainfo.users import lookup_in

    configure_logging(json=not sys.stderr.isatty())
    if supervised:
        stop_with_supervisor()
    url = metabase_url(metabase, data)
    settings = GatewaySettings(
        host,
        port,
        data.absolute(),
        url,
        dialect,
        region,
        domain=domain,
        housekeeping_seconds=housekeeping_seconds,
    )
    root, _ = root_credentials(data, None, None)
    opened = open_metabase(url)
    try:
        blobs = Blobs(blobs_url(data))
        keys = KeyRing([root], lookup_in(opened.users))
        with housekeeping(opened, blobs, settings.housekeeping_seconds):
            serve(settings, opened, keys, blobs, Readiness(opened))
    finally:
        opened.close()


class Readiness:
    """Why the system is not ready, if it is not: writes are refused, or the pipeline is not processing.

    The look at the metabase writes and flushes, so its result is kept for a second, whoever asks.
    """

    def __init__(self, metabase: Metabase) -> None:
        self._metabase = metabase
        self._asked_at = float("-inf")
        self._reason: str | None = None

    def __call__(self) -> str | None:
        """The reason, or None."""
        if time.monotonic() - self._asked_at >= 1:
            self._reason = _reason_not_ready(self._metabase)
            self._asked_at = time.monotonic()
        return self._reason


def _reason_not_ready(metabase: Metabase) -> str | None:
    try:
        metabase.check()
        alive_at_ns = metabase.cursors.alive_at_ns(CONSUMER)
    except BucketwireError as error:
        return f"writes are not accepted: {error}"
    if not alive_at_ns:
        return "the pipeline is starting"
    silent_seconds = (time.time_ns() - alive_at_ns) / 1e9
    if silent_seconds > _ALIVE_SECONDS:
        return f"the pipeline has not reported for {silent_seconds:.0f} s"
    return None
