"""`bucketwire pipeline`: reads the change stream and delivers, on Spark."""

import os
import sys
from pathlib import Path

import click

from bucketwire.cli.options import (
    data_option,
    dialect_option,
    metabase_option,
    metabase_url,
    option,
    supervised_option,
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
@supervised_option
def pipeline(data: Path, dialect: str, metabase: str | None, master: str, *, supervised: bool) -> None:
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
        )
    )
