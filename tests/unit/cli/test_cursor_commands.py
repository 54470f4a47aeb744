"""`bucketwire cursor`, beside a metabase that is open."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bucketwire.cli import cursor as cursor_command
from bucketwire.config import CONSUMER
from bucketwire.event.name import Operation
from bucketwire.metabase.base import Metabase
from factories import new_object, origin, rule

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def written(metabase: Metabase) -> Metabase:
    """Three changes that no pipeline has read."""
    metabase.buckets.create("media", "owner-1", "us-east-1")
    metabase.rules.edit("media", lambda _: [rule()])
    metabase.cursors.save(CONSUMER, metabase.changes.start(), 0)
    for key in "abc":
        metabase.objects.put("media", new_object(key), Operation.PUT, origin())
    return metabase


def shown(run: Run) -> dict[str, object]:
    code, out, _ = run("cursor", "show", "--json")
    assert code == 0
    return dict(json.loads(out))


def test_show_tells_what_waits_and_who_reads(run: Run, written: Metabase) -> None:
    written.cursors.lease(CONSUMER, "host-1", 60)
    found = shown(run)
    assert (found["changes_waiting"], found["holder"], found["trimmed"]) == (3, "host-1", False)
    assert found["position"] == written.cursors.load(CONSUMER)
    assert run("cursor", "show")[1].splitlines()[2].startswith("pipeline:  host-1")


@pytest.mark.usefixtures("metabase")
def test_show_works_before_the_first_pipeline(run: Run) -> None:
    found = shown(run)
    assert (found["position"], found["changes_waiting"], found["trimmed"]) == (None, 0, False)
    assert "none yet" in run("cursor", "show")[1]


def test_there_is_nothing_to_skip_as_long_as_nothing_is_lost(run: Run, written: Metabase) -> None:
    before = written.cursors.load(CONSUMER)
    code, _, err = run("cursor", "skip", "--yes")
    assert code == 1
    assert "nothing to skip" in err
    assert written.cursors.load(CONSUMER) == before


def test_skip_goes_on_behind_what_is_lost(run: Run, written: Metabase) -> None:
    written.cursors.save(CONSUMER, written.cursors.load(CONSUMER) or "", time.time_ns())
    start = written.changes.trim_before(time.time_ns())
    written.objects.put("media", new_object("kept"), Operation.PUT, origin())
    assert shown(run)["trimmed"]
    code, out, err = run("cursor", "skip", "--yes", "--json")
    assert code == 0
    assert err.startswith("changes are lost: the pipeline last reported at 2")
    assert json.loads(out)["position"] == start == written.cursors.load(CONSUMER)
    assert json.loads(out)["lost_until"]
    found = shown(run)
    assert (found["trimmed"], found["changes_waiting"], found["holder"]) == (False, 1, None)


def test_skip_asks_first(run: Run, written: Metabase, monkeypatch: pytest.MonkeyPatch) -> None:
    written.changes.trim_before(time.time_ns())
    monkeypatch.setattr("click.termui.visible_prompt_func", lambda _text: "n")
    assert run("cursor", "skip")[0] == 1
    assert shown(run)["trimmed"]


def test_skip_does_not_take_the_cursor_from_a_pipeline(
    run: Run, written: Metabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    written.changes.trim_before(time.time_ns())
    written.cursors.lease(CONSUMER, "host-1", 50)
    monkeypatch.setattr(cursor_command, "_WAIT_SECONDS", 0.0)
    code, _, err = run("cursor", "skip", "--yes")
    assert code == 1
    assert "the pipeline host-1 is running: stop it first" in err
    assert shown(run)["trimmed"]


def test_a_pipeline_that_has_lost_changes_ends_with_one_line(written: Metabase, tmp_path: Path) -> None:
    written.changes.trim_before(time.time_ns())
    command = [sys.executable, "-m", "bucketwire", "pipeline", "--data", str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (ended.returncode, ended.stdout) == (1, "")
    (line,) = ended.stderr.splitlines()
    assert line.endswith("were trimmed before they were read: see `bucketwire cursor`")
