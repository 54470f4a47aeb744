"""Grants in the headers of a request."""

import pytest

from bucketwire.errors import InvalidRequest
from bucketwire.gateway.s3_acl import header_acl

EVERYONE = "http://acs.amazonaws.com/groups/global/AllUsers"


@pytest.mark.parametrize("text", ['uri="{}"', "uri={}", ' uri = "{}" ', "uri= {} "])
def test_grantees_are_read_with_or_without_quotes_and_spaces(text: str) -> None:
    assert header_acl({"GrantRead": text.format(EVERYONE)}, "owner", "owner") == "public-read"


@pytest.mark.parametrize(
    "text", ["", "id", "id=", 'id=""', "id= ", "name=a", "id=a,", 'id="a"b', "id=" + " " * 60_000 + '""']
)
def test_what_names_no_grantee_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        header_acl({"GrantRead": text}, "owner", "owner")
    assert raised.value.code == "InvalidArgument"
