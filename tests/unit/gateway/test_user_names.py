"""What users are called."""

import threading
from pathlib import Path

import pytest

from bucketwire.access.credentials import Credentials
from bucketwire.gateway.user_names import UserNames
from bucketwire.metabase import open_metabase
from bucketwire.metabase.sqlite.users import SqliteUsers
from bucketwire.metainfo.permission import ANONYMOUS
from bucketwire.metainfo.users import create_user
from gateway.in_process import InProcess


def test_names_come_from_callers_and_from_the_metabase_and_root_is_who_is_in_neither(tmp_path: Path) -> None:
    metabase = open_metabase(f"sqlite:///{tmp_path}/metabase.db")
    names = UserNames(metabase.users)
    names.learn(Credentials("AK", "secret-key", "caller-id", "caller"))
    names.learn(None)
    ann, _ = create_user(metabase.users, "ann", "")
    assert [names.of(each) for each in ("caller-id", ann.id, ANONYMOUS, "root-id")] == [
        "caller",
        "ann",
        "anonymous",
        "root",
    ]
    bob, _ = create_user(metabase.users, "bob", "")
    assert names.of(bob.id) == "bob"
    metabase.close()


def test_nobody_reads_all_users_to_name_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    metabase = open_metabase(f"sqlite:///{tmp_path}/metabase.db")
    names, (ann, _) = UserNames(metabase.users), create_user(metabase.users, "ann", "")
    monkeypatch.delattr(SqliteUsers, "all")
    assert [names.knows(each) for each in (ann.id, "unknown", "unknown")] == [True, False, False]
    assert (names.of(ann.id), names.of("unknown")) == ("ann", "root")
    metabase.close()


@pytest.mark.parametrize("query", ["prefix=", "fetch-owner=true&list-type=2", "versions="])
def test_the_owners_of_a_listing_are_looked_up_in_a_thread(
    app: InProcess, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    looked_up: list[threading.Thread] = []

    def name_of(_names: UserNames, _user_id: str) -> str:
        looked_up.append(threading.current_thread())
        return "somebody"

    app.signed("PUT", "/media/k")
    monkeypatch.setattr(UserNames, "of", name_of)
    assert app.signed("GET", f"/media?{query}").field("DisplayName") == "somebody"
    assert threading.main_thread() not in looked_up
