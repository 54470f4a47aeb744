"""Users: made by the operator, looked up by access key for every request, and by id for what they own."""

import re

from bucketwire.access.credentials import Credentials, Lookup, new_keys, new_user_id
from bucketwire.access.policy import NO_ACCOUNT, Who
from bucketwire.errors import InvalidRequest
from bucketwire.metabase.base import Buckets, Users
from bucketwire.metabase.values import Key, User

_MAX_NAME_CHARACTERS = 64
_ROOT = "root"
_RESERVED = frozenset({_ROOT, "anonymous"})
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


class Owners:
    """Who owns buckets, by user id. Whoever was found once is believed to be there as long as this lives."""

    def __init__(self, users: Users, buckets: Buckets) -> None:
        self._users = users
        self._buckets = buckets
        self._found: dict[str, Who] = {}

    def find(self, user_id: str) -> Who | None:
        """The owner of a bucket, or None when it was removed since. Blocks when it is not known yet."""
        if user_id not in self._found:
            self._found.update(
                {user.id: Who(user.tenant, user.name, user.id) for user, _ in self._users.all()}
            )
        if user_id not in self._found and self._buckets.owned_by(user_id):
            # nobody is removed who owns buckets: an owner who is not among the users is root
            self._found[user_id] = Who("", _ROOT, user_id)
        return self._found.get(user_id)


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
