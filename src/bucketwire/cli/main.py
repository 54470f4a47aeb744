"""`bucketwire`: the command line. Each command lives in a module that is imported when it is called."""

import os
import sys
from importlib import import_module

import click

from bucketwire import __version__
from bucketwire.errors import BucketwireError, NotFound

_COMMANDS = {
    "up": ("bucketwire.cli.up", "Run gateway and pipeline on this machine."),
    "gateway": ("bucketwire.cli.gateway", "Run a gateway alone."),
    "pipeline": ("bucketwire.cli.pipeline", "Run the pipeline alone."),
    "inbox": ("bucketwire.cli.inbox", "Listen on HTTP and print each event received."),
    "user": ("bucketwire.cli.user", "Create, list and remove users."),
    "topic": ("bucketwire.cli.topic", "List, show and remove topics, and see what waits for them."),
    "deadletter": ("bucketwire.cli.deadletter", "List, show, redrive and purge dead letters."),
    "cursor": ("bucketwire.cli.cursor", "See how far the pipeline is, and go on after a loss."),
    "notification": ("bucketwire.cli.notification", "List, show and remove the rules of a bucket."),
    "explain": ("bucketwire.cli.explain", "Say what an event would do, and why."),
    "lifecycle": ("bucketwire.cli.lifecycle", "Apply the lifecycle rules of buckets now."),
    "sweep": ("bucketwire.cli.sweep", "Remove bytes that no object uses."),
    "migrate": ("bucketwire.cli.migrate", "Bring the schema of the metabase up to date."),
    "env": ("bucketwire.cli.env", "Print shell lines that point AWS tools at this server."),
}


class _Commands(click.Group):
    """Knows the commands by name, and imports one only to run it or to show its help."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = getattr(import_module(_COMMANDS[cmd_name][0]), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in _COMMANDS.items()])


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="bucketwire")
def bucketwire() -> None:
    """S3-compatible bucket event notifications, delivered at least once."""


def main() -> None:
    """Entry point: our own errors are one line on stderr, with exit code 1; 2 if a thing does not exist."""
    os.umask(0o077)  # what is written may hold secrets of customers
    try:
        bucketwire()
    except BucketwireError as error:
        click.echo(f"bucketwire: {error}", err=True)
        sys.exit(2 if isinstance(error, NotFound) else 1)
