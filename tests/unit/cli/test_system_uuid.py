"""The UUID of an installation is one, in the form that messages have it."""

import click
import pytest
from click.testing import CliRunner

from bucketwire.cli.options import system_uuid_option


@click.command()
@system_uuid_option
def shown(system_uuid: str | None) -> None:
    click.echo(repr(system_uuid))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ([], "None"),
        (["--system-uuid", "48DEF817F0A34949ABE29193BE91DE22"], "'48def817-f0a3-4949-abe2-9193be91de22'"),
        (["--system-uuid", "48def817-f0a3-4949-abe2-9193be91de22"], "'48def817-f0a3-4949-abe2-9193be91de22'"),
    ],
)
def test_a_uuid_is_told_with_hyphens_in_lower_case(given: list[str], told: str) -> None:
    assert CliRunner().invoke(shown, given).output.strip() == told


def test_another_text_is_refused() -> None:
    refused = CliRunner().invoke(shown, ["--system-uuid", "not a uuid"])
    assert refused.exit_code == 2
    assert "--system-uuid" in refused.output
    assert "32 hexadecimal digits" in refused.output
