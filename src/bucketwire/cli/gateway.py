"""`bucketwire gateway`: serves S3 and SNS."""

import sys
from pathlib import Path

import click

from bucketwire.access.credentials import KeyRing, root_credentials
from bucketwire.cli.delivery import Delivery, delivery_options
from bucketwire.cli.options import (
    blobs_url,
    data_option,
    dialect_option,
    metabase_option,
    metabase_url,
    root_access_key_option,
    root_secret_key_option,
    supervised_option,
    system_name_option,
    system_uuid_option,
)
from bucketwire.cli.serving import TEST_EVENTS, Serving, serving_options
from bucketwire.cli.supervise import stop_with_supervisor
from bucketwire.config import GatewaySettings
from bucketwire.metabase import open_metabase


@click.command()
@data_option
@dialect_option
@metabase_option
@serving_options
@system_uuid_option
@system_name_option
@delivery_options
@root_access_key_option
@root_secret_key_option
@supervised_option
def gateway(
    data: Path,
    dialect: str,
    metabase: str | None,
    serving: Serving,
    system_uuid: str | None,
    system_name: str | None,
    delivery: Delivery,
    root_access_key: str | None,
    root_secret_key: str | None,
    *,
    supervised: bool,
) -> None:
    """Run a gateway alone."""
    from bucketwire.blobs import Blobs
    from bucketwire.gateway.housekeeping import housekeeping
    from bucketwire.gateway.readiness import Readiness
    from bucketwire.gateway.serve import serve
    from bucketwire.log import configure_logging
    from bucketwire.metainfo.users import lookup_in

    configure_logging(json=not sys.stderr.isatty())
    if supervised:
        stop_with_supervisor()
    url = metabase_url(metabase, data)
    settings = GatewaySettings(
        serving.host,
        serving.port,
        data.absolute(),
        url,
        dialect,
        serving.region,
        domain=serving.domain,
        housekeeping_seconds=serving.housekeeping_seconds,
        retention_hours=serving.retention_hours,
        test_events=TEST_EVENTS[serving.test_events],
        secrets_in_cleartext=serving.allow_secrets_in_cleartext,
        tls_certificate=serving.tls_certificate,
        tls_key=serving.tls_key,
        trusted_proxies=serving.trusted_proxies,
        metrics_token=serving.metrics_token or "",
        system_uuid=system_uuid or "",
        system_name=system_name or "",
        queue_limit_bytes=delivery.queue_limit_bytes,
        queue_policy=delivery.queue_policy or "",
        forbid_private_endpoints=delivery.forbid_private_endpoints,
    )
    root, _ = root_credentials(data, root_access_key or None, root_secret_key or None)
    opened = open_metabase(url)
    try:
        blobs = Blobs(blobs_url(data))
        keys = KeyRing([root], lookup_in(opened.users))
        with housekeeping(opened, blobs, settings.housekeeping_seconds, settings.retention_hours):
            serve(settings, opened, keys, blobs, Readiness(opened, settings.retention_hours))
    finally:
        opened.close()
