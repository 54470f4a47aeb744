"""Who may do what."""

from typing import cast

import pytest

from bucketwire.errors import Denied
from bucketwire.event.change import Status
from bucketwire.metabase.base import Buckets
from bucketwire.metabase.values import Bucket, StoredObject
from bucketwire.metainfo.permission import ANONYMOUS, Permission, check_object, permitted_bucket


class OneBucket:
    """A bucket with an ACL."""

    def __init__(self, acl: str | None) -> None:
        self._acl = acl

    def get(self, name: str) -> Bucket:
        return Bucket("id", name, "owner", "us-east-1", 0)

    def document(self, _name: str, _kind: str) -> str | None:
        return self._acl


def allowed(acl: str | None, caller: str) -> set[Permission]:
    found = set()
    for permission in Permission:
        try:
            permitted_bucket(cast("Buckets", OneBucket(acl)), "media", caller, permission)
        except Denied:
            continue
        found.add(permission)
    return found - {Permission.READ}


def test_the_owner_may_do_everything_and_others_what_the_acl_opens() -> None:
    assert allowed(None, "owner") == set(Permission) - {Permission.READ}
    assert allowed(None, "stranger") == set()
    assert allowed("public-read", ANONYMOUS) == {Permission.LIST}
    assert allowed("public-read-write", ANONYMOUS) == {Permission.LIST, Permission.WRITE}
    assert allowed("authenticated-read", "stranger") == {Permission.LIST}
    assert allowed("authenticated-read", ANONYMOUS) == set()


def test_a_bucket_of_another_owner_than_expected_is_denied_to_its_owner_too() -> None:
    with pytest.raises(Denied):
        permitted_bucket(cast("Buckets", OneBucket(None)), "media", "owner", Permission.OWN, "somebody else")


@pytest.mark.parametrize(
    ("acl", "caller", "readable"),
    [
        ("private", "writer", True),
        ("private", "owner", True),
        ("private", "stranger", False),
        ("public-read", ANONYMOUS, True),
        ("authenticated-read", "stranger", True),
        ("authenticated-read", ANONYMOUS, False),
    ],
)
def test_an_object_is_read_by_its_writer_the_owner_and_whom_its_acl_names(
    acl: str, caller: str, readable: bool
) -> None:
    bucket = Bucket("id", "media", "owner", "us-east-1", 0)
    stored = StoredObject("k", 1, Status.COMMITTED_UNVERSIONED, 0, "", "writer", 1, acl=acl)
    if readable:
        check_object(bucket, stored, caller)
        return
    with pytest.raises(Denied):
        check_object(bucket, stored, caller)
