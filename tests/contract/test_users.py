"""The contracts of `Users` and of a bucket's documents."""

import pytest

from bucketwire.errors import Conflict, NotFound
from bucketwire.metabase.base import Metabase
from bucketwire.metabase.values import Key, User


def create(metabase: Metabase, name: str, tenant: str = "", access_key: str = "") -> User:
    user = User(f"id-{name}-{tenant}", name, tenant)
    return metabase.users.create(user, Key(access_key or f"key-{name}-{tenant}", "secret", user.id))


def test_a_user_is_found_by_name_by_id_and_by_key(metabase: Metabase) -> None:
    made = create(metabase, "ada", "acme")
    assert metabase.users.named("ada", "acme") == made
    assert metabase.users.get(made.id) == made
    found = metabase.users.find_key("key-ada-acme")
    assert found is not None
    assert (found[0], found[1].secret_key) == (made, "secret")
    assert metabase.users.find_key("nobody's") is None
    assert metabase.users.all() == [(made, ["key-ada-acme"])]


def test_names_are_taken_within_a_tenant_and_keys_everywhere(metabase: Metabase) -> None:
    create(metabase, "ada", "acme")
    create(metabase, "ada", "other")
    with pytest.raises(Conflict):
        metabase.users.create(User("id-2", "ada", "acme"), Key("key-2", "secret", "id-2"))
    with pytest.raises(Conflict):
        create(metabase, "bob", access_key="key-ada-acme")
    assert [user.name for user, _ in metabase.users.all()] == ["ada", "ada"]


def test_a_user_with_buckets_is_not_removed(metabase: Metabase) -> None:
    user = create(metabase, "ada")
    metabase.buckets.create("media", user.id, "us-east-1")
    with pytest.raises(Conflict):
        metabase.users.remove(user.id)
    metabase.buckets.delete("media")
    metabase.users.remove(user.id)
    assert metabase.users.find_key("key-ada-") is None
    with pytest.raises(NotFound):
        metabase.users.named("ada", "")
    with pytest.raises(NotFound):
        metabase.users.get(user.id)


def test_secrets_are_not_shown() -> None:
    assert "secret" not in repr(Key("access", "secret", "user"))


def test_documents_of_a_bucket_are_kept_and_go_with_it(metabase: Metabase, bucket: str) -> None:
    assert metabase.buckets.document(bucket, "lifecycle") is None
    metabase.buckets.set_document(bucket, "lifecycle", "<a/>")
    metabase.buckets.set_document(bucket, "lifecycle", "<b/>")
    assert metabase.buckets.document(bucket, "lifecycle") == "<b/>"
    assert metabase.buckets.with_document("lifecycle") == [(metabase.buckets.get(bucket), "<b/>")]
    metabase.buckets.set_document(bucket, "lifecycle", None)
    assert metabase.buckets.document(bucket, "lifecycle") is None
    metabase.buckets.set_document(bucket, "tagging", "{}")
    metabase.buckets.delete(bucket)
    metabase.buckets.create(bucket, "owner-1", "us-east-1")
    assert metabase.buckets.document(bucket, "tagging") is None
