"""`bucketwire pipeline`, alone and under a supervisor; the pipeline itself is left out."""

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from bucketwire.cli import pipeline as command
from bucketwire.pipeline import job


@pytest.mark.parametrize("flags", [[], ["--supervised"]], ids=["alone", "supervised"])
def test_only_a_supervised_pipeline_stops_with_who_started_it(
    flags: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[str] = []
    monkeypatch.setattr(command, "stop_with_supervisor", lambda: called.append("watch"))
    monkeypatch.setattr(os, "nice", lambda _: called.append("nice"))
    monkeypatch.setattr(job, "run", lambda _: called.append("run"))
    done = CliRunner().invoke(command.pipeline, ["--data", str(tmp_path), *flags], catch_exceptions=False)
    assert done.exit_code == 0
    assert called == (["watch", "nice", "run"] if flags else ["run"])
