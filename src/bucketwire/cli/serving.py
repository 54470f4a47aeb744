"""The options that say how a gateway serves, which `gateway` and `up` share.

A command with `@serving_options` gets them as one value, `serving`.
"""

from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path

import click

from bucketwire.cli.bundle import bundle
from bucketwire.cli.options import host_option, option, port_option, region_option, tls_certificate_option

TEST_EVENTS = {"auto": None, "on": True, "off": False}
"""What may be said of test events, and what it means."""


@dataclass(frozen=True, slots=True)
class Serving:
    """What was chosen."""

    host: str
    port: int
    region: str
    domain: str | None
    housekeeping_seconds: int
    retention_hours: int
    tls_certificate: Path | None
    tls_key: Path | None
    trusted_proxies: frozenset[str]
    allow_secrets_in_cleartext: bool
    test_events: str
    metrics_token: str | None = field(repr=False)


def _checked_addresses(
    _context: click.Context, _parameter: click.Parameter, value: str | None
) -> frozenset[str]:
    try:
        return frozenset(str(ip_address(each.strip())) for each in (value or "").split(",") if each.strip())
    except ValueError as problem:
        raise click.BadParameter(str(problem)) from problem


serving_options = bundle(
    Serving,
    "serving",
    (
        host_option,
        port_option,
        region_option,
        option(
            "--domain",
            "Name under which buckets are addressed as <bucket>.<domain>; localhost always is.",
            default=None,
        ),
        option(
            "--housekeeping-seconds",
            "Time between two runs of the lifecycle and of the sweep.",
            default=3600,
            type=click.IntRange(min=1),
        ),
        option(
            "--retention-hours",
            "How long changes are kept that the pipeline has not read.",
            default=168,
            type=click.IntRange(min=1),
        ),
        tls_certificate_option,
        option(
            "--tls-key",
            "PEM file of the certificate's key.",
            default=None,
            type=click.Path(path_type=Path, dir_okay=False),
        ),
        option(
            "--trusted-proxies",
            "Addresses, with commas between, of proxies that may tell by X-Forwarded-Proto that a request"
            " came over TLS; those on this machine always may.",
            default=None,
            callback=_checked_addresses,
        ),
        option(
            "--allow-secrets-in-cleartext",
            "Take passwords of topics over HTTP without TLS too.",
            is_flag=True,
        ),
        option(
            "--test-events",
            "Whether new destinations must take a test event before a configuration is stored; auto: as the"
            " dialect does.",
            default="auto",
            type=click.Choice(list(TEST_EVENTS)),
        ),
        option(
            "--metrics-token",
            "Opens /-/metrics to those who send it as a Bearer token, from any machine; prefer the variable,"
            " a flag shows in `ps`.  [default: this machine only]",
            default=None,
        ),
    ),
)
"""Adds the options; the command gets `serving`."""
