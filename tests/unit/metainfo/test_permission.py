"""Who may do what."""

from typing import cast

import pytest

from bucketwire.errors import Denied, InvalidRequest
from bucketwire.event.change import Status
from bucketwire.metabase.base import Buckets
from bucketwire.metabase.values import Bucket, StoredObject
from bucketwire.metainfo.permission import (
    ACL_DOCUMENT,
    ANONYMOUS,
    BLOCK_DOCUMENT,
    CANNED_ACLS,
    OWNERSHIP_DOCUMENT,
    PUBLIC_ACLS,
    Permission,
    check_new_acl,
    check_object,
    check_object_owner,
    permitted_bucket,
)

IGNORED = {BLOCK_DOCUMENT: '{"IgnorePublicAcls":true}'}
REFUSED = {BLOCK_DOCUMENT: '{"BlockPublicAcls":true,"RestrictPublicBuckets":true}'}
ENFORCED = {OWNERSHIP_DOCUMENT: '{"Rules":[{"ObjectOwnership":"BucketOwnerEnforced"}]}'}


class OneBucket:
    """A bucket with an ACL, and maybe other documents."""

    def __init__(self, acl: str | None, **documents: str) -> None:
        self._documents = {ACL_DOCUMENT: acl, **documents}

    def get(self, name: str) -> Bucket:
        return Bucket("id", name, "owner", "us-east-1", 0)

    def document(self, _name: str, kind: str) -> str | None:
        return self._documents.get(kind)


def one_bucket(acl: str | None, **documents: str) -> Buckets:
    return cast("Buckets", OneBucket(acl, **documents))


def allowed(acl: str | None, caller: str, **documents: str) -> set[Permission]:
    found = set()
    for permission in Permission:
        try:
            permitted_bucket(one_bucket(acl, **documents), "media", caller, permission)
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
        permitted_bucket(one_bucket(None), "media", "owner", Permission.OWN, "somebody else")


@pytest.mark.parametrize("document", [IGNORED, ENFORCED], ids=["ignored", "enforced"])
def test_a_bucket_that_looks_at_no_acl_is_the_owners_alone(document: dict[str, str]) -> None:
    assert allowed("public-read-write", "stranger", **document) == set()
    assert allowed("public-read-write", "owner", **document) == set(Permission) - {Permission.READ}


def test_a_bucket_says_which_acls_it_will_have() -> None:
    for acl in CANNED_ACLS:
        check_new_acl(one_bucket(None), "media", acl)
    for acl in CANNED_ACLS - PUBLIC_ACLS:
        check_new_acl(one_bucket(None, **REFUSED), "media", acl)
    for acl in PUBLIC_ACLS:
        with pytest.raises(Denied):
            check_new_acl(one_bucket(None, **REFUSED), "media", acl)
        with pytest.raises(InvalidRequest):
            check_new_acl(one_bucket(None, **ENFORCED), "media", acl)


def test_nobody_owns_what_was_written_without_a_signature() -> None:
    bucket = Bucket("id", "media", "owner", "us-east-1", 0)
    stored = StoredObject("k", 1, Status.COMMITTED_UNVERSIONED, 0, "", ANONYMOUS, 1)
    check_object_owner(bucket, stored, "owner")
    with pytest.raises(Denied):
        check_object_owner(bucket, stored, ANONYMOUS)
    with pytest.raises(Denied):
        check_object(bucket, stored, ANONYMOUS)


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
