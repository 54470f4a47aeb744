"""Canned ACLs and the grants that they stand for."""

import pytest

from bucketwire.errors import InvalidRequest
from bucketwire.metainfo.acl import ALL_USERS, Grant, acl_of, checked_acl, grants_of
from bucketwire.metainfo.permission import CANNED_ACLS


@pytest.mark.parametrize("acl", sorted(CANNED_ACLS))
def test_the_grants_of_a_canned_acl_are_that_canned_acl(acl: str) -> None:
    assert acl_of(grants_of(acl, "writer", "owner"), "writer", "owner") == acl


def test_on_ones_own_bucket_a_grant_to_the_bucket_owner_says_nothing() -> None:
    for acl in ("bucket-owner-read", "bucket-owner-full-control"):
        assert acl_of(grants_of(acl, "owner", "owner"), "owner", "owner") == "private"


def test_other_grants_are_no_canned_acl() -> None:
    mine = Grant("owner", "FULL_CONTROL")
    assert acl_of([], "owner", "owner") is None
    assert acl_of([Grant(ALL_USERS, "READ")], "owner", "owner") is None
    assert acl_of([mine, Grant(ALL_USERS, "WRITE")], "owner", "owner") is None
    assert acl_of([mine, Grant("friend", "READ")], "owner", "owner") is None


def test_a_name_of_no_canned_acl_is_refused() -> None:
    with pytest.raises(InvalidRequest) as raised:
        checked_acl("public")
    assert raised.value.code == "InvalidArgument"
