"""Users and their keys."""

from bucketwire.errors import Conflict, NotFound
from bucketwire.metabase.sqlite.connection import Readers
from bucketwire.metabase.sqlite.writer import Transaction, Writer
from bucketwire.metabase.values import Key, User

_INSERT = "INSERT INTO users (id, name, tenant, created_at_ns) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
_INSERT_KEY = "INSERT INTO keys (access_key, secret_key, user_id) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
_BY_KEY = """
SELECT users.id, name, tenant, created_at_ns, access_key, secret_key
FROM keys JOIN users ON users.id = keys.user_id WHERE access_key = ?
"""


class SqliteUsers:
    """Implements `Users`."""

    def __init__(self, readers: Readers, writer: Writer) -> None:
        self._readers = readers
        self._writer = writer

    def create(self, user: User, key: Key) -> User:
        """Add a user with a first key."""

        def job(transaction: Transaction) -> User:
            made = User(user.id, user.name, user.tenant, transaction.stamp_ns())
            values = (made.id, made.name, made.tenant, made.created_at_ns)
            if not transaction.execute(_INSERT, values).rowcount:
                raise Conflict(f"there is a user {user.name} already", code="UserAlreadyExists")
            if not transaction.execute(_INSERT_KEY, (key.access_key, key.secret_key, made.id)).rowcount:
                raise Conflict("that access key is taken", code="KeyAlreadyExists")
            return made

        return self._writer.run(job)

    def named(self, name: str, tenant: str) -> User:
        """The user of that name."""
        row = self._readers.row(
            "SELECT id, name, tenant, created_at_ns FROM users WHERE name = ? AND tenant = ?", (name, tenant)
        )
        if row is None:
            raise NotFound(f"there is no user {name}", code="NoSuchUser")
        return User(*row)

    def get(self, user_id: str) -> User:
        """The user of that id."""
        row = self._readers.row("SELECT id, name, tenant, created_at_ns FROM users WHERE id = ?", (user_id,))
        if row is None:
            raise NotFound("there is no such user", code="NoSuchUser")
        return User(*row)

    def all(self) -> list[tuple[User, list[str]]]:
        """Every user with its access keys."""
        users = self._readers.rows("SELECT id, name, tenant, created_at_ns FROM users ORDER BY tenant, name")
        return [(User(*row), self._keys_of(row[0])) for row in users]

    def remove(self, user_id: str) -> None:
        """Remove a user and its keys."""

        def job(transaction: Transaction) -> None:
            if transaction.execute("SELECT 1 FROM buckets WHERE owner_id = ? LIMIT 1", (user_id,)).fetchone():
                raise Conflict("the user still owns buckets: delete them first", code="UserHasBuckets")
            transaction.execute("DELETE FROM keys WHERE user_id = ?", (user_id,))
            transaction.execute("DELETE FROM users WHERE id = ?", (user_id,))

        self._writer.run(job)

    def find_key(self, access_key: str) -> tuple[User, Key] | None:
        """Whose key it is."""
        row = self._readers.row(_BY_KEY, (access_key,))
        if row is None:
            return None
        return User(*row[:4]), Key(row[4], row[5], row[0])

    def _keys_of(self, user_id: str) -> list[str]:
        rows = self._readers.rows(
            "SELECT access_key FROM keys WHERE user_id = ? ORDER BY access_key", (user_id,)
        )
        return [row[0] for row in rows]
