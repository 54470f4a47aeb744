"""Options about TLS: mistakes are told at once."""

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from bucketwire.cli.gateway import gateway
from bucketwire.cli.up import up
from bucketwire.errors import ConfigError


def test_tls_that_cannot_be_is_told_before_anything_starts(tmp_path: Path) -> None:
    arguments = ["--data", str(tmp_path / "data"), "--tls-certificate", str(tmp_path / "none.pem")]
    result = CliRunner().invoke(up, arguments)
    assert isinstance(result.exception, ConfigError)
    assert "--tls-key" in str(result.exception)
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("command", [up, gateway])
def test_proxies_are_addresses(command: click.Command) -> None:
    result = CliRunner().invoke(command, ["--trusted-proxies", "127.0.0.1, proxy.example"])
    assert (result.exit_code, "proxy.example" in result.output) == (2, True)
