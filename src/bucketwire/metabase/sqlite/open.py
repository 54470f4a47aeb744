"""Opens the SQLite metabase: `sqlite:///relative/file.db` or `sqlite:////absolute/file.db`."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from bucketwire.errors import ConfigError
from bucketwire.metabase.base import Buckets, Changes, Cursors, Objects, Queue, Rules, Topics, Uploads, Users
from bucketwire.metabase.sqlite.buckets import SqliteBuckets
from bucketwire.metabase.sqlite.changes import SqliteChanges
from bucketwire.metabase.sqlite.connection import Readers
from bucketwire.metabase.sqlite.cursors import SqliteCursors
from bucketwire.metabase.sqlite.migrate import migrate
from bucketwire.metabase.sqlite.objects import SqliteObjects
from bucketwire.metabase.sqlite.queue import SqliteQueue
from bucketwire.metabase.sqlite.rules import SqliteRules
from bucketwire.metabase.sqlite.topics import SqliteTopics
from bucketwire.metabase.sqlite.uploads import SqliteUploads
from bucketwire.metabase.sqlite.users import SqliteUsers
from bucketwire.metabase.sqlite.writer import Writer


class SqliteMetabase:
    """The parts, over two files with a writer each."""

    def __init__(self, path: Path) -> None:
        queue_path = _queue_path(path)
        _migrate_files(path)
        self._readers = (Readers(path), Readers(queue_path))
        self._writers = (Writer(path), Writer(queue_path))
        objects_side = self._readers[0], self._writers[0]
        queue_side = self._readers[1], self._writers[1]
        rules = SqliteRules(*objects_side)
        self.rules: Rules = rules
        self.buckets: Buckets = SqliteBuckets(*objects_side)
        self.objects: Objects = SqliteObjects(*objects_side, rules)
        self.uploads: Uploads = SqliteUploads(*objects_side, rules)
        self.users: Users = SqliteUsers(*objects_side)
        self.topics: Topics = SqliteTopics(*objects_side)
        changes, cursors = SqliteChanges(*objects_side), SqliteCursors(*queue_side)
        changes.continue_behind(cursors.furthest())
        self.changes: Changes = changes
        self.cursors: Cursors = cursors
        self.queue: Queue = SqliteQueue(*queue_side)

    def identity(self) -> str:
        """The UUID made with the first file."""
        row = self._readers[0].row("SELECT uuid FROM identity", ())
        return str(row[0]) if row else ""

    def check(self) -> None:
        """Write, and flush: a full disk or a lock that is held shows here."""
        self._writers[0].run(lambda transaction: transaction.stamp_ns())

    def close(self) -> None:
        """Finish what was accepted and close both files."""
        for writer in self._writers:
            writer.close()
        for readers in self._readers:
            readers.close()


def open_sqlite(url: str) -> SqliteMetabase:
    """Open the file that the URL names, making it and its folder if need be."""
    return SqliteMetabase(_path_from_url(url))


def migrate_sqlite(url: str) -> dict[str, tuple[int, int]]:
    """Bring both files up to date: from which version to which."""
    return _migrate_files(_path_from_url(url))


def _migrate_files(path: Path) -> dict[str, tuple[int, int]]:
    return {"metabase": migrate(path, "metabase"), "queue": migrate(_queue_path(path), "queue")}


def _queue_path(path: Path) -> Path:
    return path.with_name(f"{path.stem}-queue{path.suffix}")


def _path_from_url(url: str) -> Path:
    parts = urlsplit(url)
    path = unquote(parts.path)[1:]
    if parts.netloc or not path:
        raise ConfigError(
            "a SQLite metabase is named sqlite:///relative/file.db or sqlite:////absolute/file.db"
        )
    return Path(path)
