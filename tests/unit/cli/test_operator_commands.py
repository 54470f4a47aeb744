"""The commands an operator runs beside a server: user, lifecycle, sweep, migrate."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bucketwire.access.credentials import root_credentials
from bucketwire.cli.main import bucketwire
from bucketwire.event.name import Operation
from bucketwire.metabase import open_metabase
from bucketwire.metabase.base import Metabase
from bucketwire.metainfo.lifecycle import LIFECYCLE_DOCUMENT
from factories import new_object, origin

Run = Callable[..., tuple[int, str, str]]


def test_a_user_is_created_listed_and_removed(run: Run) -> None:
    code, out, _ = run("user", "create", "--name", "alice", "--json")
    made = json.loads(out)
    assert code == 0
    assert {"id", "name", "tenant", "access_key", "secret_key"} == made.keys()
    listed = json.loads(run("user", "list", "--json")[1])
    assert listed == [{"id": made["id"], "name": "alice", "tenant": "", "access_keys": [made["access_key"]]}]
    assert made["secret_key"] not in run("user", "list")[1]
    assert run("user", "rm", "--name", "alice")[0] == 0
    assert json.loads(run("user", "list", "--json")[1]) == []


def test_keys_can_be_given_and_tenants_tell_names_apart(run: Run) -> None:
    given = ("--access-key", "AKALICE", "--secret-key", "alices-secret")
    code, out, _ = run("user", "create", "--name", "alice", "--tenant", "blue", *given)
    assert code == 0
    assert "blue/alice" in out
    assert "AWS_ACCESS_KEY_ID=AKALICE" in out
    assert run("user", "create", "--name", "alice", "--json")[0] == 0
    assert run("user", "rm", "--name", "alice", "--tenant", "red")[0] == 2
    assert run("user", "rm", "--name", "alice", "--tenant", "blue")[0] == 0


@pytest.mark.usefixtures("metabase")
def test_errors_are_one_line_with_a_code_that_tells_missing_from_wrong(run: Run, tmp_path: Path) -> None:
    assert run("user", "rm", "--name", "nobody") == (2, "", "bucketwire: there is no user nobody\n")
    run("user", "create", "--name", "alice")
    assert run("user", "create", "--name", "alice")[0] == 1
    assert run("user", "create", "--name", "bob", "--access-key", "half")[0] == 1
    root, _ = root_credentials(tmp_path, None, None)
    stolen = ("--access-key", root.access_key, "--secret-key", "long enough")
    assert run("user", "create", "--name", "bob", *stolen)[2] == "bucketwire: that access key is taken\n"


def test_a_folder_without_a_metabase_is_an_error_and_stays_as_it_is(run: Run, tmp_path: Path) -> None:
    code, out, err = run("topic", "list")
    assert (code, out) == (1, "")
    assert err.startswith(f"bucketwire: no metabase in {tmp_path}: name its folder with --data")
    assert list(tmp_path.iterdir()) == []


def test_a_user_with_buckets_is_not_removed(run: Run, tmp_path: Path) -> None:
    made = json.loads(run("user", "create", "--name", "alice", "--json")[1])
    metabase = open_metabase(f"sqlite:///{tmp_path}/metabase.db")
    metabase.buckets.create("hers", made["id"], "us-east-1")
    metabase.close()
    assert run("user", "rm", "--name", "alice")[0] == 1


def test_migrate_says_from_which_version_to_which(run: Run) -> None:
    first = json.loads(run("migrate", "--json")[1])
    assert first["metabase"]["from"] == 0
    again = json.loads(run("migrate", "--json")[1])
    assert {each["from"] == each["to"] for each in again.values()} == {True}
    assert "is at schema" in run("migrate")[1]


@pytest.mark.usefixtures("metabase")
def test_the_lifecycle_runs_on_demand_at_any_time(run: Run) -> None:
    code, out, _ = run("lifecycle", "run", "--now", "2030-01-01T00:00:00Z", "--json")
    assert code == 0
    assert json.loads(out) == {
        "buckets": 0,
        "expired_objects": 0,
        "expired_versions": 0,
        "expired_delete_markers": 0,
        "aborted_uploads": 0,
        "failed": {},
    }
    assert "0 uploads aborted" in run("lifecycle", "run")[1]
    code, _, err = run("lifecycle", "run", "--now", "tomorrow")
    assert code == 1
    assert "--now" in err


def test_a_bucket_whose_lifecycle_cannot_be_applied_is_named(run: Run, metabase: Metabase) -> None:
    metabase.buckets.create("media", "owner-1", "us-east-1")
    metabase.buckets.set_document("media", LIFECYCLE_DOCUMENT, '[{"From": "the future"}]')
    code, out, err = run("lifecycle", "run")
    assert code == 1
    assert out.startswith("0 buckets")
    assert "media: ValidationError" in err


@pytest.mark.usefixtures("metabase")
def test_sweep_removes_old_orphans_alone(run: Run, tmp_path: Path) -> None:
    orphan, young, used = (tmp_path / "objects/ab" / name for name in ("abcd", "abce", "abcf"))
    orphan.parent.mkdir(parents=True)
    two_days_ago = time.time() - 2 * 86_400
    for path in (orphan, young, used):
        path.write_bytes(b"x")
        if path is not young:
            os.utime(path, (two_days_ago, two_days_ago))
    code, _, err = run("sweep", "--json")
    assert (code, orphan.exists()) == (1, True), "a metabase that knows none of the files is the wrong one"
    assert "is this the metabase" in err
    metabase = open_metabase(f"sqlite:///{tmp_path}/metabase.db")
    metabase.buckets.create("media", "owner-1", "us-east-1")
    metabase.objects.put("media", new_object(blob="abcf"), Operation.PUT, origin())
    metabase.close()
    assert json.loads(run("sweep", "--json")[1]) == {"dropped": 0, "orphaned": 1, "unfinished": 0}
    assert not orphan.exists()
    assert young.exists()
    assert used.exists()
    assert run("sweep")[1] == "removed 0 dropped, 0 orphaned and 0 unfinished files\n"


def test_every_command_has_help() -> None:
    for name in ("user", "topic", "notification", "explain", "lifecycle", "sweep", "migrate"):
        command = bucketwire.get_command(None, name)  # type: ignore[arg-type]
        assert command is not None
        assert command.help
