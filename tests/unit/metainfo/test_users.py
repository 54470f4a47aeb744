"""Users: their names, and how they are found."""

from pathlib import Path

import pytest

from bucketwire.access.policy import Who
from bucketwire.errors import ConfigError, Conflict, InvalidRequest
from bucketwire.event.dialect import AWS
from bucketwire.metabase import open_metabase
from bucketwire.metainfo.users import Owners, create_user, lookup_in


def test_a_user_is_found_by_its_access_key_until_it_is_removed(tmp_path: Path) -> None:
    metabase = open_metabase(f"sqlite:///{tmp_path}/metabase.db")
    user, key = create_user(metabase.users, "alice", "")
    found = lookup_in(metabase.users)(key.access_key)
    assert found is not None
    assert (found.user_id, found.display_name, found.secret_key) == (user.id, "alice", key.secret_key)
    metabase.users.remove(user.id)
    assert lookup_in(metabase.users)(key.access_key) is None
    metabase.close()


def test_the_owner_of_a_bucket_is_a_user_or_root_and_nobody_once_it_is_removed(tmp_path: Path) -> None:
    metabase = open_metabase(f"sqlite:///{tmp_path}/metabase.db")
    user, _ = create_user(metabase.users, "alice", "acme")
    metabase.buckets.create("roots", "root-id", "us-east-1")
    owners = Owners(metabase.users, metabase.buckets)
    assert owners.find(user.id) == Who("acme", "alice", user.id)
    assert owners.find("root-id") == Who("", "root", "root-id")
    later, _ = create_user(metabase.users, "bob", "")
    assert owners.find(later.id) == Who("", "bob", later.id)
    metabase.users.remove(user.id)
    assert Owners(metabase.users, metabase.buckets).find(user.id) is None
    metabase.close()


def test_names_and_keys_are_checked_and_taken_once(tmp_path: Path) -> None:
    metabase = open_metabase(f"sqlite:///{tmp_path}/metabase.db")
    create_user(metabase.users, "alice", "", "alices-key", "alices-secret")
    create_user(metabase.users, "alice", "other-tenant")
    with pytest.raises(Conflict):
        create_user(metabase.users, "alice", "")
    with pytest.raises(Conflict):
        create_user(metabase.users, "bob", "", "alices-key", "bobs-secret")
    for name, tenant in [("", ""), ("root", ""), ("a/b", ""), ("a\nb", ""), ("x" * 65, ""), ("a", "b:c")]:
        with pytest.raises(InvalidRequest):
            create_user(metabase.users, name, tenant)
    with pytest.raises(ConfigError, match="--secret-key"):
        create_user(metabase.users, "bob", "", "bobs-key", "short")
    with pytest.raises(ConfigError, match="both"):
        create_user(metabase.users, "bob", "", "bobs-key")
    metabase.close()


def test_no_name_looks_like_an_id_and_no_tenant_like_those_without_one(tmp_path: Path) -> None:
    metabase = open_metabase(f"sqlite:///{tmp_path}/metabase.db")
    alice, _ = create_user(metabase.users, "alice", "")
    for name, tenant, told in (
        (alice.id, "", "looks like the id"),
        (alice.id.upper(), "acme", "looks like the id"),
        ("bob", AWS.topic_tenant, "without a tenant"),
    ):
        with pytest.raises(InvalidRequest, match=told):
            create_user(metabase.users, name, tenant)
    create_user(metabase.users, alice.id[:-1], "00000000000")
    metabase.close()
