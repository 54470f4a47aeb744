"""`--metrics-token`: from `up` to the gateway, and never where `ps` shows it."""

import signal
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from bucketwire.cli import up as module
from bucketwire.cli.gateway import gateway
from bucketwire.cli.supervise import Part
from bucketwire.cli.up import up
from bucketwire.config import GatewaySettings


class Recorder:
    """A supervisor that starts nothing."""

    made: "Recorder"

    def __init__(
        self, parts: Sequence[Part], environment: Mapping[str, str], _say: Any, stop: threading.Event
    ) -> None:
        self.command, self.environment, self._stop = parts[0].prepare().command, environment, stop
        Recorder.made = self

    def run(self) -> None:
        self._stop.set()


@pytest.mark.parametrize("by_flag", [True, False])
def test_up_hands_the_token_on_in_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, by_flag: bool
) -> None:
    monkeypatch.setattr(module, "Supervisor", Recorder)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    flags, variables = (
        (["--metrics-token", "a-token"], {}) if by_flag else ([], {"BUCKETWIRE_METRICS_TOKEN": "a-token"})
    )
    result = CliRunner(env=variables).invoke(up, ["--data", str(tmp_path), "--port", "0", *flags])
    assert result.exit_code == 0, result.output
    assert Recorder.made.environment["BUCKETWIRE_METRICS_TOKEN"] == "a-token"
    assert "a-token" not in " ".join(Recorder.made.command)
    assert "a-token" not in result.output


def test_the_gateway_takes_the_token_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served: list[GatewaySettings] = []
    monkeypatch.setattr("bucketwire.gateway.serve.serve", lambda settings, *_: served.append(settings))
    for token in ("a-token", ""):
        variables = {"BUCKETWIRE_METRICS_TOKEN": token}
        result = CliRunner(env=variables).invoke(gateway, ["--data", str(tmp_path), "--port", "0"])
        assert result.exit_code == 0, result.output
    assert [settings.metrics_token for settings in served] == ["a-token", ""]
    assert "a-token" not in repr(served)
