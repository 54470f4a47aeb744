"""Users and their keys."""

from bucketwire.errors import Conflict, NotFound
from bucketwire.metabase.postgres.connection import Database, Transaction
from bucketwire.metabase.values import Key, User

_INSERT = """
INSERT INTO users (id, name, tenant, created_at_ns) VALUES (%s, %s, %s, %s)
ON CONFLICT DO NOTHING RETURNING id
"""
_INSERT_KEY = """
INSERT INTO keys (access_key, secret_key, user_id) VALUES (%s, %s, %s)
ON CONFLICT DO NOTHING RETURNING user_id
"""
_NAMED = "SELECT id, name, tenant, created_at_ns FROM users WHERE name = %s AND tenant = %s"
_BY_ID = "SELECT id, name, tenant, created_at_ns FROM users WHERE id = %s"
_ALL = """
SELECT id, name, tenant, created_at_ns, array(
    SELECT access_key FROM keys WHERE user_id = users.id ORDER BY access_key)
FROM users ORDER BY tenant, name
"""
_BY_KEY = """
SELECT users.id, name, tenant, created_at_ns, access_key, secret_key
FROM keys JOIN users ON users.id = keys.user_id WHERE access_key = %s
"""
_OWNS_A_BUCKET = "SELECT 1 FROM buckets WHERE owner_id = %s LIMIT 1"


class PostgresUsers:
    """Implements `Users`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(self, user: User, key: Key) -> User:
        """Add a user with a first key."""

        def job(work: Transaction) -> User:
            made = User(user.id, user.name, user.tenant, work.stamp_ns())
            if not work.rows(_INSERT, (made.id, made.name, made.tenant, made.created_at_ns)):
                raise Conflict(f"there is a user {user.name} already", code="UserAlreadyExists")
            if not work.rows(_INSERT_KEY, (key.access_key, key.secret_key, made.id)):
                raise Conflict("that access key is taken", code="KeyAlreadyExists")
            return made

        return self._database.run(job)

    def named(self, name: str, tenant: str) -> User:
        """The user of that name."""
        row = self._database.row(_NAMED, (name, tenant))
        if row is None:
            raise NotFound(f"there is no user {name}", code="NoSuchUser")
        return User(*row)

    def get(self, user_id: str) -> User:
        """The user of that id."""
        row = self._database.row(_BY_ID, (user_id,))
        if row is None:
            raise NotFound("there is no such user", code="NoSuchUser")
        return User(*row)

    def all(self) -> list[tuple[User, list[str]]]:
        """Every user with its access keys."""
        return [(User(*row[:4]), row[4]) for row in self._database.rows(_ALL)]

    def remove(self, user_id: str) -> None:
        """Remove a user and its keys."""

        def job(work: Transaction) -> None:
            if work.row(_OWNS_A_BUCKET, (user_id,)):
                raise Conflict("the user still owns buckets: delete them first", code="UserHasBuckets")
            work.write("DELETE FROM keys WHERE user_id = %s", (user_id,))
            work.write("DELETE FROM users WHERE id = %s", (user_id,))

        self._database.run(job)

    def find_key(self, access_key: str) -> tuple[User, Key] | None:
        """Whose key it is."""
        row = self._database.row(_BY_KEY, (access_key,))
        if row is None:
            return None
        return User(*row[:4]), Key(row[4], row[5], row[0])
