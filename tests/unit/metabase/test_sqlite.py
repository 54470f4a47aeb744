"""What is particular to SQLite: shared flushes, the clock, migrations, damage."""

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import msgspec
import pytest

from bucketwire.errors import ConfigError, Unavailable
from bucketwire.event.change import Versioning, decode_change
from bucketwire.event.name import Operation
from bucketwire.metabase import open_metabase
from bucketwire.metabase.sqlite import SqliteMetabase
from bucketwire.metabase.sqlite import buckets as sqlite_buckets
from bucketwire.metabase.sqlite import queue as sqlite_queue
from bucketwire.metabase.sqlite import rules as sqlite_rules
from bucketwire.metabase.sqlite import writer as writer_module
from bucketwire.metabase.sqlite.connection import connect
from bucketwire.metabase.sqlite.migrate import load_migrations, migrate
from bucketwire.metabase.sqlite.writer import Transaction, Writer
from bucketwire.metabase.values import Slice
from factories import TOPIC_ARN, message, new_object, origin, rule, topic
from golden import schemas

PARK_AS_BEFORE = f"""
INSERT INTO parked (topic_arn, event_id, attempts, parked_at_ns, due_at_ns, size_bytes, reason, message)
VALUES ('{TOPIC_ARN}', ?, 0, 0, 0, ?, '', x'')
"""
BURY_AS_BEFORE = f"""
INSERT INTO dead_letters (topic_arn, event_id, buried_at_ns, reason, message)
VALUES ('{TOPIC_ARN}', ?, 0, '', x'')
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "metabase.db"
    migrate(path, "metabase")
    return path


@pytest.fixture
def writer(file: Path) -> Iterator[Writer]:
    made = Writer(file)
    yield made
    made.close()


def insert(name: str) -> object:
    def job(transaction: Transaction) -> None:
        transaction.execute("INSERT INTO dropped_blobs (name) VALUES (?)", (name,))

    return job


def names(file: Path) -> list[str]:
    with closing(connect(file)) as connection:
        return [row[0] for row in connection.execute("SELECT name FROM dropped_blobs ORDER BY name")]


def test_jobs_that_wait_together_are_committed_together(file: Path, writer: Writer) -> None:
    entered, release = threading.Event(), threading.Event()

    def slow(_: Transaction) -> None:
        entered.set()
        release.wait(30)

    first = threading.Thread(target=writer.run, args=(slow,))
    first.start()
    assert entered.wait(30)
    waiting = [threading.Thread(target=writer.run, args=(insert(f"blob-{n}"),)) for n in range(10)]
    for thread in waiting:
        thread.start()
    while writer._jobs.qsize() < 10:
        time.sleep(0.005)
    groups: list[int] = []
    real = writer_module._commit
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            writer_module, "_commit", lambda *given: (groups.append(len(given[2])), real(*given))[1]
        )
        release.set()
        for thread in [first, *waiting]:
            thread.join(30)
    assert groups == [10]
    assert len(names(file)) == 10


def test_a_job_that_raises_is_undone_alone(file: Path, writer: Writer) -> None:
    def broken(transaction: Transaction) -> None:
        transaction.execute("INSERT INTO dropped_blobs (name) VALUES ('half')")
        raise ValueError("no")

    writer.run(insert("before"))
    with pytest.raises(ValueError, match="no"):
        writer.run(broken)
    writer.run(insert("after"))
    assert names(file) == ["after", "before"]


def test_a_lock_that_is_held_makes_writes_unavailable_and_then_they_go_on(file: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bucketwire.metabase.sqlite.connection._BUSY_SECONDS", 0.05)
        writer = Writer(file)
        with closing(connect(file)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(Unavailable):
                writer.run(insert("locked out"))
            other.execute("ROLLBACK")
        writer.run(insert("back"))
        writer.close()
    assert names(file) == ["back"]


def test_a_closed_writer_finishes_what_it_took_and_takes_no_more(file: Path) -> None:
    writer = Writer(file)
    writer.run(insert("taken"))
    writer.close()
    writer.close()
    with pytest.raises(Unavailable):
        writer.run(insert("refused"))
    assert names(file) == ["taken"]


def test_time_does_not_run_back_when_the_clock_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"sqlite:///{tmp_path}/metabase.db"
    stamps = []
    for clock_ns in (2_000_000_000, 1_000_000_000, 1_000_000_000):
        monkeypatch.setattr(time, "time_ns", lambda now=clock_ns: now)
        metabase = open_metabase(url)
        if not stamps:
            metabase.buckets.create("media", "owner-1", "us-east-1")
            metabase.rules.edit("media", lambda _: [rule()])
        stored = metabase.objects.put("media", new_object(), Operation.PUT, origin())
        stamps.append(stored.created_at_ns)
        metabase.close()
    assert stamps == sorted(set(stamps))


def test_a_group_that_failed_does_not_make_the_next_one_pass_over_the_stored_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process may have given stamps meanwhile."""
    monkeypatch.setattr(time, "time_ns", lambda: 1_000)
    path = tmp_path / "metabase.db"
    open_metabase(f"sqlite:///{path}").close()
    with closing(connect(path)) as connection, closing(connect(path)) as other:
        ours, theirs = Transaction(connection), Transaction(other)
        with pytest.raises(KeyboardInterrupt):
            writer_module._commit(connection, ours, [stamp_and_break_off])
        given = [writer_module._commit(other, theirs, [Transaction.stamp_ns])[0][1] for _ in range(3)]
        given.append(writer_module._commit(connection, ours, [Transaction.stamp_ns])[0][1])
        stored = connection.execute("SELECT last_ns FROM clock").fetchone()[0]
    assert given == sorted(set(given))
    assert stored == given[-1]


def stamp_and_break_off(transaction: Transaction) -> None:
    transaction.stamp_ns()
    raise KeyboardInterrupt


def test_migrations_are_applied_once_and_schema_versions_told(file: Path) -> None:
    migrate(file, "metabase")
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone()[0] == len(load_migrations("metabase"))


def test_a_newer_schema_that_only_adds_is_used_and_left_as_it_is(tmp_path: Path) -> None:
    open_metabase(f"sqlite:///{tmp_path}/metabase.db").close()
    for name in ("metabase.db", "metabase-queue.db"):
        with closing(sqlite3.connect(tmp_path / name)) as connection:
            connection.execute("PRAGMA user_version = 999")
    assert migrate(tmp_path / "metabase.db", "metabase") == (999, 999)
    opened = open_metabase(f"sqlite:///{tmp_path}/metabase.db")
    opened.check()
    opened.close()


def test_a_newer_schema_that_this_version_cannot_use_is_refused_with_what_to_do(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("PRAGMA user_version = 999")
        connection.execute("UPDATE oldest_schema SET version = 999")
    with pytest.raises(ConfigError, match="upgrade"):
        migrate(file, "metabase")


def test_a_migration_that_fails_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "half.db"
    monkeypatch.setattr(
        "bucketwire.metabase.sqlite.migrate.load_migrations",
        lambda _: ["CREATE TABLE a (x);", "CREATE TABLE b (x);\nCREATE TABLE a (y);"],
    )
    with pytest.raises(Unavailable):
        migrate(path, "metabase")
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0] == 0


@pytest.mark.parametrize("schema", schemas.SCHEMAS)
def test_the_schema_file_is_the_sum_of_the_migrations(schema: str) -> None:
    assert schemas.written(schema) == schemas.path(schema).read_text(), (
        "run `make golden`, read the difference"
    )


def queue_of_schema(version: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a queue as an older release has left it."""
    path = folder / "metabase-queue.db"
    with monkeypatch.context() as before:
        old = load_migrations("queue")[:version]
        before.setattr("bucketwire.metabase.sqlite.migrate.load_migrations", lambda _: old)
        migrate(path, "queue")
    return path


def test_what_waits_when_the_backlogs_are_introduced_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = queue_of_schema(3, tmp_path, monkeypatch)
    with closing(sqlite3.connect(path)) as connection, connection:
        for name, size_bytes in (("a", 5), ("b", 7)):
            connection.execute(PARK_AS_BEFORE, (name, size_bytes))
    metabase = open_metabase(f"sqlite:///{tmp_path}/metabase.db")
    try:
        assert metabase.queue.backlogs() == {TOPIC_ARN: 12}
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(PARK_AS_BEFORE, ("c", 9))
            connection.execute("DELETE FROM parked WHERE event_id = 'a'")
        assert metabase.queue.backlogs() == {TOPIC_ARN: 16}
    finally:
        metabase.close()


def test_letters_that_were_buried_before_there_were_counts_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = queue_of_schema(1, tmp_path, monkeypatch)
    with closing(sqlite3.connect(path)) as connection, connection:
        for name in ("a", "b", "c"):
            connection.execute(BURY_AS_BEFORE, (name,))
    metabase = open_metabase(f"sqlite:///{tmp_path}/metabase.db")
    assert metabase.queue.dead_letters() == 3
    metabase.queue.purge([1])
    metabase.queue.bury([message("d"), message("e")], "gone")
    assert metabase.queue.dead_letters() == 4
    assert metabase.queue.counts() == {("buried", TOPIC_ARN): 5, ("purged", TOPIC_ARN): 1}
    metabase.close()


@pytest.mark.parametrize(
    ("sql", "values"),
    [
        (sqlite_queue._HAS_PARKED, (TOPIC_ARN,)),
        (sqlite_queue._TAKE, (TOPIC_ARN, 1, 1)),
        (sqlite_queue._DUE_TOPICS, (1,)),
        (sqlite_queue._STATS, ()),
    ],
    ids=["has_parked", "take", "due_topics", "stats"],
)
def test_what_is_asked_all_the_time_is_answered_from_an_index(
    tmp_path: Path, sql: str, values: tuple[object, ...]
) -> None:
    path = tmp_path / "metabase-queue.db"
    migrate(path, "queue")
    with closing(connect(path)) as connection:
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", values)]
    looks = [step for step in plan if " parked " in step]
    assert looks
    assert all("INDEX parked_by_" in step for step in looks), plan


def steps(connection: sqlite3.Connection, work: Callable[[], object]) -> int:
    """How much SQLite does on the connection; the same for the same rows, on every machine."""
    counted: list[None] = []
    connection.set_progress_handler(lambda: counted.append(None), 1)
    work()
    connection.set_progress_handler(None, 1)
    return len(counted)


def test_rules_that_were_retired_cost_an_edit_and_a_write_nothing(tmp_path: Path) -> None:
    metabase = open_metabase(f"sqlite:///{tmp_path}/metabase.db")
    bucket_id = metabase.buckets.create("media", "owner-1", "us-east-1").id
    costs = []
    for edits in (3, 30):
        for turn in range(edits):
            at = metabase.rules.edit("media", lambda _, name=f"{edits}-{turn}": [rule(id=name)])
        with closing(connect(tmp_path / "metabase.db")) as connection:
            retire = partial(connection.execute, sqlite_buckets.RETIRE_RULES, (at + 1, bucket_id, at))
            look = partial(connection.execute, sqlite_rules._AT, (bucket_id, at))
            costs.append([steps(connection, each) for each in (retire, look)])
    metabase.close()
    assert costs[0] == costs[1]


def test_topics_of_others_cost_a_list_of_topics_nothing(tmp_path: Path) -> None:
    metabase = SqliteMetabase(tmp_path / "metabase.db")
    metabase.topics.put(topic(name="mine"))
    owned = partial(metabase.topics.owned_by, "owner-1", after="", limit=10)
    costs = []
    for others in (2, 40):
        for number in range(others):
            metabase.topics.put(msgspec.structs.replace(topic(name=f"a-{number}"), owner_id="owner-2"))
        costs.append(steps(metabase._readers[0]._connection(), owned))
    metabase.close()
    assert costs[0] == costs[1]


def test_changes_that_are_kept_cost_the_retention_nothing(tmp_path: Path) -> None:
    metabase = SqliteMetabase(tmp_path / "metabase.db")
    metabase.buckets.create("media", "owner-1", "us-east-1")
    oldest = metabase.rules.edit("media", lambda _: [rule()])
    costs = []
    for changes in (2, 40):
        for _ in range(changes):
            metabase.objects.put("media", new_object(), Operation.PUT, origin())
        trim = partial(metabase.changes.trim_before, oldest)
        costs.append(steps(metabase._readers[0]._connection(), trim))
    assert metabase.changes.start() == "0"
    metabase.close()
    assert costs[0] == costs[1]


def test_dead_letters_are_not_read_to_tell_how_many_there_are(tmp_path: Path) -> None:
    metabase = SqliteMetabase(tmp_path / "metabase.db")
    metabase.queue.bury([message("a"), message("b")], "gone")
    read: set[str | None] = set()

    def note(action: int, table: str | None, *_: object) -> int:
        if action == sqlite3.SQLITE_READ:
            read.add(table)
        return sqlite3.SQLITE_OK

    metabase._readers[1]._connection().set_authorizer(note)
    assert metabase.queue.dead_letters() == 2
    metabase.close()
    assert read == {"counts"}


def test_old_versions_cost_a_listing_nothing(tmp_path: Path) -> None:
    metabase = SqliteMetabase(tmp_path / "metabase.db")
    metabase.buckets.create("media", "owner-1", "us-east-1")
    metabase.buckets.set_versioning("media", Versioning.ENABLED)
    page = partial(metabase.objects.page, "media", prefix="", delimiter="", after="", limit=10)
    costs = []
    for versions in (2, 40):
        for _ in range(versions):
            metabase.objects.put("media", new_object("many"), Operation.PUT, origin())
        metabase.objects.put("media", new_object("one"), Operation.PUT, origin())
        costs.append(steps(metabase._readers[0]._connection(), page))
    metabase.close()
    assert costs[0] == costs[1]


def test_a_file_that_is_no_database_is_an_error_that_names_the_metabase(tmp_path: Path) -> None:
    (tmp_path / "metabase.db").write_bytes(b"this is not a database" * 100)
    with pytest.raises(ConfigError, match="metabase file cannot be used"):
        open_metabase(f"sqlite:///{tmp_path}/metabase.db")


@pytest.mark.parametrize("url", ["sqlite://", "sqlite://host/file.db", "mysql://x/y", "metabase.db"])
def test_urls_that_name_no_metabase_are_refused(url: str) -> None:
    with pytest.raises(ConfigError):
        open_metabase(url)


def test_a_bucket_configured_in_the_same_group_as_a_write_is_seen_by_it(tmp_path: Path) -> None:
    metabase = open_metabase(f"sqlite:///{tmp_path}/metabase.db")
    metabase.buckets.create("media", "owner-1", "us-east-1")
    revisions = []
    for turn in range(20):
        revisions.append(metabase.rules.edit("media", lambda _, t=turn: [rule(id=f"r{t}")]))
        metabase.objects.put("media", new_object(), Operation.PUT, origin())
    bucket_id = metabase.buckets.get("media").id
    assert [metabase.rules.at(bucket_id, at)[0].id for at in revisions] == [f"r{t}" for t in range(20)]
    metabase.close()


@pytest.mark.parametrize("before", [0, 2])
def test_what_is_written_after_a_restore_lies_behind_the_cursor(tmp_path: Path, before: int) -> None:
    """The copies of a running server are made one by one: the cursor was read later than the stream."""
    running, restored = tmp_path / "running", tmp_path / "restored"
    restored.mkdir()
    metabase = open_metabase(f"sqlite:///{running}/metabase.db")
    metabase.buckets.create("media", "owner-1", "us-east-1")
    metabase.rules.edit("media", lambda _: [rule()])
    for _ in range(before):
        metabase.objects.put("media", new_object(), Operation.PUT, origin())
    copy(running / "metabase.db", restored)
    for _ in range(3):
        metabase.objects.put("media", new_object(), Operation.PUT, origin())
    cursor = metabase.changes.head(metabase.changes.start(), 100)
    metabase.cursors.save("pipeline", cursor, 1)
    copy(running / "metabase-queue.db", restored)
    metabase.close()

    for key in ("first", "second"):
        metabase = open_metabase(f"sqlite:///{restored}/metabase.db")
        metabase.objects.put("media", new_object(key), Operation.PUT, origin())
        metabase.close()
    metabase = open_metabase(f"sqlite:///{restored}/metabase.db")
    unread = metabase.changes.read(Slice(cursor, metabase.changes.head(cursor, 100)))
    assert [decode_change(each).key for each in unread] == ["first", "second"]
    metabase.close()


def copy(file: Path, folder: Path) -> None:
    with closing(sqlite3.connect(file)) as source, closing(sqlite3.connect(folder / file.name)) as target:
        source.backup(target)


def test_the_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    metabase = open_metabase(f"sqlite:///{tmp_path}/metabase.db")
    metabase.buckets.create("media", "owner-1", "us-east-1")
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    metabase.close()
    assert len(modes) >= 2
    assert set(modes.values()) == {0o600}
