"""What users are called in listings and ACLs."""

from bucketwire.access.credentials import Credentials
from bucketwire.errors import NotFound
from bucketwire.metabase.base import Users
from bucketwire.metainfo.permission import ANONYMOUS

_ROOT = "root"


class UserNames:
    """Names by user id. A name never changes, so each is looked up once. Who is kept nowhere is root."""

    def __init__(self, users: Users) -> None:
        self._users = users
        self._names = {ANONYMOUS: ANONYMOUS}

    def learn(self, credentials: Credentials | None) -> None:
        """A caller has told a name."""
        if credentials is not None:
            self._names[credentials.user_id] = credentials.display_name

    def of(self, user_id: str) -> str:
        """The name of the user. Blocks when it is not known yet."""
        return self._names[user_id] if self.knows(user_id) else self._names.setdefault(user_id, _ROOT)

    def knows(self, user_id: str) -> bool:
        """Whether there is such a user, as far as is known here. Blocks like `of`."""
        if user_id not in self._names:
            try:
                self._names[user_id] = self._users.get(user_id).name
            except NotFound:
                return False
        return True
