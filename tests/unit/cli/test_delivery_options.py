"""The options that say how messages are delivered."""

import click
import pytest
from click.testing import CliRunner

from bucketwire.cli.pipeline import pipeline
from bucketwire.cli.up import up
from bucketwire.metainfo.topic_attributes import ATTRIBUTES, MAX_RETRIES, MAX_TIME_TO_LIVE_SECONDS


@pytest.mark.parametrize("command", [up, pipeline])
def test_a_pause_that_is_longer_than_any_message_waits_is_refused(command: object) -> None:
    found = CliRunner().invoke(command, ["--retry-sleep", "3601"])
    assert found.exit_code == 2
    assert "--retry-sleep" in found.output
    assert "3601.0 is not in the range 0<=x<=3600" in found.output


@pytest.mark.parametrize("command", [up, pipeline])
@pytest.mark.parametrize(
    ("name", "most"), [("time_to_live", MAX_TIME_TO_LIVE_SECONDS), ("max_retries", MAX_RETRIES)]
)
def test_what_no_topic_may_have_is_refused_for_all_topics_too(
    command: click.Command, name: str, most: int
) -> None:
    option = f"--{name.replace('_', '-')}"
    assert command.make_context("", [option, str(most)]).params[name] == most
    with pytest.raises(click.BadParameter, match=f"{most + 1} is not in the range 0<=x<={most}"):
        command.make_context("", [option, str(most + 1)])
    assert ATTRIBUTES[name].accepts(str(most))
    assert not ATTRIBUTES[name].accepts(str(most + 1))
