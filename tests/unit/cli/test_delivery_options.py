"""The options that say how messages are delivered."""

import pytest
from click.testing import CliRunner

from bucketwire.cli.pipeline import pipeline
from bucketwire.cli.up import up


@pytest.mark.parametrize("command", [up, pipeline])
def test_a_pause_that_is_longer_than_any_message_waits_is_refused(command: object) -> None:
    found = CliRunner().invoke(command, ["--retry-sleep", "3601"])
    assert found.exit_code == 2
    assert "--retry-sleep" in found.output
    assert "3601.0 is not in the range 0<=x<=3600" in found.output
