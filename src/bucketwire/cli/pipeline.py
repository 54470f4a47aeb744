"""`bucketwire pipeline`: reads the change stream and delivers, on Spark."""

import os
import sys
from pathlib import Path

import click

from bucketwire.cli.delivery import Delivery, delivery_options
from bucketwire.cli.options import (
    data_option,
    dialect_option,
    metabase_option,
    metabase_url,
    option,
    supervised_option,
    system_name_option,
    system_uuid_option,
)
from bucketwire.cli.supervise import stop_with_supervisor
from bucketwire.config import PipelineSettings


@click.command()
@data_option
@dialect_option
@metabase_option
@option(
    "--master", "Spark master to run on.", default=PipelineSettings.__dataclass_fields__["master"].default
)
@system_uuid_option
@system_name_option
@delivery_options
@supervised_option
@click.option("--holder", default="", hidden=True)
def pipeline(
    data: Path,
    dialect: str,
    metabase: str | None,
    master: str,
    system_uuid: str | None,
    system_name: str | None,
    delivery: Delivery,
    holder: str,
    *,
    supervised: bool,
) -> None:
    """Run the pipeline alone."""
    from bucketwire.log import configure_logging
    from bucketwire.pipeline.job import run

    configure_logging(json=not sys.stderr.isatty())
    if supervised:
        stop_with_supervisor()
        os.nice(10)  # beside a gateway on the same machine: writers come first
    run(
        PipelineSettings(
            metabase=metabase_url(metabase, data),
            dialect=dialect,
            scratch=data.absolute() / "spark",
            master=master,
            system_uuid=system_uuid or "",
            system_name=system_name or "",
            time_to_live_seconds=delivery.time_to_live,
            max_retries=delivery.max_retries,
            retry_sleep_seconds=delivery.retry_sleep,
            queue_limit_bytes=delivery.queue_limit_bytes,
            queue_policy=delivery.queue_policy or "",
            alert_url=delivery.alert_url or "",
            holder=holder,
            forbid_private_endpoints=delivery.forbid_private_endpoints,
        )
    )
