"""Users: made by the operator, looked up by access key for every request."""

import re

from bucketwire.access.credentials import Credentials, Lookup, new_keys, new_user_id
from bucketwire.access.policy import NO_ACCOUNT
from bucketwire.errors import InvalidRequest
from bucketwire.metabase.base import Users
from bucketwire.metabase.values import Key, User

_MAX_NAME_CHARACTERS = 64
_RESERVED = frozenset({"root", "anonymous"})
_USER_ID = re.compile("[0-9A-Fa-f]{64}")


def create_user(
    users: Users, name: str, tenant: str, access_key: str | None = None, secret_key: str | None = None
) -> tuple[User, Key]:
    """Add a user with a pair of keys, given or generated; `Conflict` when the name or the key is taken."""
    _check_name("name", name)
    if tenant:
        _check_name("tenant", tenant)
    if name in _RESERVED and not tenant:
        raise InvalidRequest(f"no user can be called {name}")
    _check_is_nobody_elses(name, tenant)
    user_id = new_user_id()
    key = Key(*new_keys(access_key, secret_key), user_id)
    return users.create(User(user_id, name, tenant), key), key


def lookup_in(users: Users) -> Lookup:
    """Finds credentials among the users of a metabase."""

    def lookup(access_key: str) -> Credentials | None:
        found = users.find_key(access_key)
        if found is None:
            return None
        user, key = found
        return Credentials(key.access_key, key.secret_key, user.id, user.name, user.tenant)

    return lookup


def _check_is_nobody_elses(name: str, tenant: str) -> None:
    """Policies and ARNs name users by name or id, and call those without a tenant by an account's number."""
    if _USER_ID.fullmatch(name):
        raise InvalidRequest("a name cannot be 64 hexadecimal digits: it looks like the id of a user")
    if tenant == NO_ACCOUNT:
        raise InvalidRequest(f"no tenant can be called {NO_ACCOUNT}: users without a tenant are called so")


def _check_name(what: str, text: str) -> None:
    if not 0 < len(text) <= _MAX_NAME_CHARACTERS or not text.isprintable() or set(text) & set("/:$"):
        raise InvalidRequest(
            f"a {what} has 1 to {_MAX_NAME_CHARACTERS} printable characters, none of them / : or $"
        )
