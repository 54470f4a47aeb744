"""Opens the PostgreSQL metabase: `postgresql://user:password@host:port/database`."""

from bucketwire.metabase.base import Buckets, Changes, Cursors, Objects, Queue, Rules, Topics, Uploads, Users
from bucketwire.metabase.postgres.buckets import PostgresBuckets
from bucketwire.metabase.postgres.changes import PostgresChanges
from bucketwire.metabase.postgres.connection import Database
from bucketwire.metabase.postgres.cursors import PostgresCursors
from bucketwire.metabase.postgres.migrate import migrate
from bucketwire.metabase.postgres.objects import PostgresObjects
from bucketwire.metabase.postgres.queue import PostgresQueue
from bucketwire.metabase.postgres.rows import Partitions
from bucketwire.metabase.postgres.rules import PostgresRules
from bucketwire.metabase.postgres.topics import PostgresTopics
from bucketwire.metabase.postgres.uploads import PostgresUploads
from bucketwire.metabase.postgres.users import PostgresUsers


class PostgresMetabase:
    """The parts, over one pool of connections."""

    def __init__(self, url: str) -> None:
        migrate(url)
        self._database = database = Database(url)
        partitions = Partitions()
        rules = PostgresRules(database)
        self.rules: Rules = rules
        self.buckets: Buckets = PostgresBuckets(database)
        self.objects: Objects = PostgresObjects(database, rules, partitions)
        self.uploads: Uploads = PostgresUploads(database, rules, partitions)
        self.users: Users = PostgresUsers(database)
        self.topics: Topics = PostgresTopics(database)
        self.changes: Changes = PostgresChanges(database)
        self.cursors: Cursors = PostgresCursors(database)
        self.queue: Queue = PostgresQueue(database)

    def identity(self) -> str:
        """The UUID made with the schema."""
        row = self._database.row("SELECT uuid FROM identity")
        return str(row[0]) if row else ""

    def check(self) -> None:
        """Write, and flush: a full disk, or a server that only reads, shows here."""
        self._database.run(lambda work: work.stamp_ns())

    def close(self) -> None:
        """Give up the connections."""
        self._database.close()


def open_postgres(url: str) -> PostgresMetabase:
    """Open the database that the URL names, bringing its schema up to date."""
    return PostgresMetabase(url)
