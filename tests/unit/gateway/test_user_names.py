"""What users are called."""

from pathlib import Path

from bucketwire.access.credentials import Credentials
from bucketwire.gateway.user_names import UserNames
from bucketwire.metabase import open_metabase
from bucketwire.metainfo.permission import ANONYMOUS
from bucketwire.metainfo.users import create_user


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
