"""`bucketwire gateway`: serves S3 and SNS."""

import sys
from pathlib import Path

import click

from bucketwire.access.credentials import KeyRing, root_credentials
from bucketwire.cli.delivery import Delivery, delivery_options
from bucketwire.cli.options import (
    TEST_EVENTS,
    blobs_url,
    cleartext_option,
    data_option,
    dialect_option,
    domain_option,
    host_option,
    housekeeping_option,
    metabase_option,
    metabase_url,
    metrics_token_option,
    port_option,
    region_option,
    retention_option,
    root_access_key_option,
    root_secret_key_option,
    supervised_option,
    system_name_option,
    system_uuid_option,
    test_events_option,
    tls_certificate_option,
    tls_key_option,
    trusted_proxies_option,
)
from bucketwire.cli.supervise import stop_with_supervisor
from bucketwire.config import GatewaySettings
from bucketwire.metabase import open_metabase


@click.command()
@host_option
@port_option
@data_option
@dialect_option
@metabase_option
@region_option
@domain_option
@housekeeping_option
@retention_option
@tls_certificate_option
@tls_key_option
@trusted_proxies_option
@cleartext_option
@test_events_option
@system_uuid_option
@system_name_option
@metrics_token_option
@delivery_options
@root_access_key_option
@root_secret_key_option
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
    retention_hours: int,
    tls_certificate: Path | None,
    tls_key: Path | None,
    trusted_proxies: frozenset[str],
    test_events: str,
    system_uuid: str | None,
    system_name: str | None,
    metrics_token: str | None,
    delivery: Delivery,
    root_access_key: str | None,
    root_secret_key: str | None,
    *,
    allow_secrets_in_cleartext: bool,
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
        host,
        port,
        data.absolute(),
        url,
        dialect,
        region,
        domain=domain,
        housekeeping_seconds=housekeeping_seconds,
        retention_hours=retention_hours,
        test_events=TEST_EVENTS[test_events],
        secrets_in_cleartext=allow_secrets_in_cleartext,
        tls_certificate=tls_certificate,
        tls_key=tls_key,
        trusted_proxies=trusted_proxies,
        system_uuid=system_uuid or "",
        system_name=system_name or "",
        queue_limit_bytes=delivery.queue_limit_bytes,
        queue_policy=delivery.queue_policy or "",
        forbid_private_endpoints=delivery.forbid_private_endpoints,
        metrics_token=metrics_token or "",
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
