"""What is particular to PostgreSQL: lost connections, the clock, partitions, migrations, secrets."""

import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import msgspec
import psycopg
import pytest

from bucketwire.errors import ConfigError, InvalidRequest, ServerReplaced, Unavailable
from bucketwire.event.change import Versioning, decode_change
from bucketwire.event.name import Operation
from bucketwire.event.rule import Rule
from bucketwire.metabase import open_metabase
from bucketwire.metabase.postgres import (
    PostgresMetabase,
    buckets,
    changes,
    cursors,
    listing,
    migrate,
    queue,
    rules,
    topics,
)
from bucketwire.metabase.postgres.connection import Transaction
from bucketwire.metabase.postgres.migrate import load_migrations
from bucketwire.metabase.postgres.rows import HOUR_NS
from bucketwire.metabase.values import Slice
from factories import TOPIC_ARN, message, new_object, origin, rule, topic
from services.postgres import PostgresServer
from wire import until

ALL = 1_000_000
WAITING_FOR_LOCKS = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%leases%'"


@pytest.fixture
def url(postgres_server: PostgresServer) -> str:
    return postgres_server.create_database()


@pytest.fixture
def metabase(url: str) -> Iterator[PostgresMetabase]:
    opened = PostgresMetabase(url)
    opened.buckets.create("media", "owner-1", "us-east-1")
    opened.rules.edit("media", lambda _: [rule()])
    yield opened
    opened.close()


def put(metabase: PostgresMetabase, key: str = "key") -> int:
    return metabase.objects.put("media", new_object(key), Operation.PUT, origin()).created_at_ns


def keys(metabase: PostgresMetabase) -> list[str]:
    start = metabase.changes.start()
    rows = metabase.changes.read(Slice(start, metabase.changes.head(start, ALL)))
    return [decode_change(row).key for row in rows]


def ask(url: str, sql: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(sql.encode())
        return cursor.fetchall() if cursor.description else []


def partitions(url: str) -> list[str]:
    return [
        str(row[0])
        for row in ask(
            url,
            "SELECT inhrelid::regclass::text FROM pg_inherits "
            "WHERE inhparent = 'changes'::regclass ORDER BY 1",
        )
    ]


def set_clock(url: str, stamp_ns: int) -> None:
    """The clock of the metabase never runs back: from here on it counts up from that time."""
    ask(url, f"SELECT setval('clock', {stamp_ns})")


def test_connections_survive_a_restart_of_the_server(
    postgres_server: PostgresServer, metabase: PostgresMetabase
) -> None:
    with ThreadPoolExecutor(4) as writers:
        list(writers.map(lambda n: put(metabase, f"before-{n}"), range(8)))
    postgres_server.restart()
    assert metabase.objects.get("media", "before-0").key == "before-0"
    postgres_server.restart()
    put(metabase, "after")
    assert len(keys(metabase)) == 9


def test_a_connection_that_is_cut_before_the_commit_costs_nothing(
    url: str, metabase: PostgresMetabase
) -> None:
    attempts = []

    def job(work: Transaction) -> int:
        attempts.append(work.attempt)
        (row,) = work.rows("SELECT pg_backend_pid()")
        if work.attempt == 0:
            ask(url, f"SELECT pg_terminate_backend({row[0]}, 5000)")
        return work.stamp_ns()

    assert metabase._database.run(job) > 0
    assert attempts == [0, 1]


def hang(url: str, work: Transaction) -> None:
    """Do not go on before the server has lost patience, of which it has less than usual."""
    work.ask("SET LOCAL idle_in_transaction_session_timeout = '500ms'")
    ((pid,),) = work.rows("SELECT pg_backend_pid()")
    alive = f"SELECT count(*) FROM pg_stat_activity WHERE pid = {pid}"
    until(lambda: ask(url, alive) == [(0,)], 30, lambda: "the server waits")


def test_a_process_that_hangs_in_a_transaction_holds_up_the_stream_for_a_moment_only(
    url: str, metabase: PostgresMetabase
) -> None:
    attempts = []

    def job(work: Transaction) -> int:
        attempts.append(work.attempt)
        work.stamp_ns()
        if work.attempt == 0:
            put(metabase, "of another")
            assert keys(metabase) == []
            hang(url, work)
            assert keys(metabase) == ["of another"]
        return work.stamp_ns() if work.attempt else len(work.rows("SELECT 1"))

    assert metabase._database.run(job) > 1
    assert attempts == [0, 1]


def test_a_process_that_hung_before_its_commit_finds_the_metabase_unavailable(
    url: str, metabase: PostgresMetabase
) -> None:
    """Whether a commit came through cannot be told when the connection breaks with it."""

    def job(work: Transaction) -> None:
        work.write("DELETE FROM buckets")
        hang(url, work)

    with pytest.raises(Unavailable):
        metabase._database.run(job)
    put(metabase)


def test_the_server_does_not_wait_long_for_one_that_is_gone(metabase: PostgresMetabase) -> None:
    def setting(name: str) -> object:
        return metabase._database.rows("SELECT current_setting(%s)", (name,))[0][0]

    assert setting("idle_in_transaction_session_timeout") == "10s"
    assert setting("tcp_keepalives_idle") == "10"
    assert setting("tcp_user_timeout") in {"25s", "25000"}


def test_a_stamp_that_fails_leaves_no_lock_behind(url: str, metabase: PostgresMetabase) -> None:
    """Its lock is the session's, and the session would go back to the pool with it."""

    def job(work: Transaction) -> int:
        work.ask("SET TRANSACTION READ ONLY")
        return work.stamp_ns()

    locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
    with pytest.raises(Unavailable):
        metabase._database.run(job)
    until(lambda: ask(url, locks) == [(0,)], 10, lambda: "the lock is still held")
    assert put(metabase)


def test_a_server_that_is_gone_is_unavailable() -> None:
    with pytest.raises(Unavailable) as gone:
        open_metabase("postgresql://someone:hunter2@127.0.0.1:1/nothing")
    assert "hunter2" not in str(gone.value)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://someone:hunter2@more@127.0.0.1/nothing",
        "postgresql://someone:hunter2%zz@127.0.0.1/nothing",
        "postgresql://127.0.0.1/nothing?password=hunter2&nonsense=1",
    ],
)
def test_a_url_that_cannot_be_read_is_told_without_its_password(url: str) -> None:
    with pytest.raises(ConfigError) as refused:
        open_metabase(url)
    assert "hunter2" not in str(refused.value)
    assert refused.value.__cause__ is None


def test_a_wrong_password_is_unavailable_and_not_shown(url: str) -> None:
    with pytest.raises(Unavailable) as refused:
        open_metabase(url.replace("secret", "hunter2"))
    assert "hunter2" not in str(refused.value)


def test_a_commit_is_flushed_whatever_the_server_was_told(url: str) -> None:
    ask(url, "ALTER DATABASE " + url.rpartition("/")[2] + " SET synchronous_commit = off")
    metabase = PostgresMetabase(url)
    try:
        assert metabase._database.rows("SHOW synchronous_commit") == [("on",)]
    finally:
        metabase.close()


@pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
def test_a_write_that_waits_for_new_rules_sees_them_whatever_the_isolation_of_the_role(
    url: str, isolation: str
) -> None:
    isolate(url, isolation)
    metabase = PostgresMetabase(url)
    metabase.buckets.create("media", "owner-1", "us-east-1")
    waits = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    with ThreadPoolExecutor(1) as writer:

        def edit(_: list[Rule]) -> list[Rule]:
            written.append(writer.submit(put, metabase))
            until(lambda: ask(url, waits) != [(0,)], 30, lambda: "the write does not wait")
            return [rule()]

        written: list[Future[int]] = []
        metabase.rules.edit("media", edit)
        assert written[0].result(30)
    assert keys(metabase) == ["key"]
    metabase.close()


def isolate(url: str, isolation: str) -> None:
    """How transactions are kept apart that do not say it themselves."""
    database = url.rpartition("/")[2]
    ask(url, f"ALTER DATABASE {database} SET default_transaction_isolation = '{isolation}'")


def test_a_closed_metabase_takes_no_more(metabase: PostgresMetabase) -> None:
    metabase.close()
    with pytest.raises(Unavailable):
        put(metabase)


def test_a_database_that_only_reads_fails_the_check(url: str, metabase: PostgresMetabase) -> None:
    metabase.check()
    ask(url, "ALTER DATABASE " + url.rpartition("/")[2] + " SET default_transaction_read_only = on")
    reader = PostgresMetabase(url)
    try:
        with pytest.raises(Unavailable):
            reader.check()
    finally:
        reader.close()


def test_what_cannot_be_stored_is_a_bad_request(metabase: PostgresMetabase) -> None:
    with pytest.raises(InvalidRequest):
        metabase.buckets.set_document("media", "acl", "nul \x00 byte")


def test_a_key_may_hold_any_character(metabase: PostgresMetabase) -> None:
    put(metabase, "nul \x00 and \U0010ffff")
    page = metabase.objects.page("media", prefix="nul \x00", delimiter="", after="", limit=9)
    assert [listed.key for listed in page.objects] == ["nul \x00 and \U0010ffff"]


def test_time_does_not_run_back_when_the_clock_does(url: str, metabase: PostgresMetabase) -> None:
    first = put(metabase)
    ahead = first + 5 * 60 * 10**9
    set_clock(url, ahead)
    assert ahead < put(metabase) < put(metabase)


def test_stamps_are_given_once_to_all(metabase: PostgresMetabase) -> None:
    def take(_: int) -> list[int]:
        return [metabase._database.run(lambda work: work.stamp_ns()) for _ in range(10)]

    with ThreadPoolExecutor(8) as takers:
        stamps = [stamp for taken in takers.map(take, range(8)) for stamp in taken]
    assert len(set(stamps)) == 80


def visited(url: str, sql: str, values: Sequence[object] | Mapping[str, object] = ()) -> int:
    """How many rows the server looked at; it does not pass over an index because a table is small."""

    def count(node: dict[str, Any]) -> int:
        seen = node["Actual Rows"] + node.get("Rows Removed by Filter", 0) if "Relation Name" in node else 0
        return int(seen * node["Actual Loops"]) + sum(count(each) for each in node.get("Plans", []))

    with psycopg.connect(url, options="-c enable_seqscan=off") as connection:
        ((found,),) = connection.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}".encode(), values).fetchall()
    return count(found[0]["Plan"])


def test_rules_that_were_retired_are_not_looked_at(url: str, metabase: PostgresMetabase) -> None:
    bucket_id = metabase.buckets.get("media").id
    for turn in range(9):
        at = metabase.rules.edit("media", lambda _, name=f"r{turn}": [rule(id=name)])
    assert visited(url, rules._AT, (bucket_id, bucket_id, at, at)) == 2
    assert visited(url, buckets.RETIRE_RULES, (at + 1, bucket_id, at)) == 1


def test_topics_of_others_are_not_looked_at(url: str, metabase: PostgresMetabase) -> None:
    metabase.topics.put(topic(name="mine"))
    for number in range(9):
        metabase.topics.put(msgspec.structs.replace(topic(name=f"a-{number}"), owner_id="owner-2"))
    ask(url, "ANALYZE topics")
    assert visited(url, topics._OWNED_BY, ("owner-1", "", 10)) == 1


def test_dead_letters_are_not_looked_at_to_tell_how_many_there_are(
    url: str, metabase: PostgresMetabase
) -> None:
    metabase.queue.bury([message(f"event-{number}") for number in range(9)], "gone")
    assert metabase.queue.dead_letters() == 9
    assert visited(url, queue._DEAD_LETTERS) == 1


def test_old_versions_are_not_looked_at_for_a_listing(url: str, metabase: PostgresMetabase) -> None:
    metabase.buckets.set_versioning("media", Versioning.ENABLED)
    for key in ("many", *["many"] * 20, "one"):
        put(metabase, key)
    values = {"bucket": metabase.buckets.get("media").id, "after": b"", "prefix": b"", "limit": 10}
    assert visited(url, listing._CURRENT_OF_MANY, values) == 4


def test_a_trim_drops_the_partitions_that_it_has_passed(url: str, metabase: PostgresMetabase) -> None:
    first = put(metabase, "old")
    for hours in (2, 4):
        set_clock(url, first + hours * HOUR_NS)
        put(metabase, f"{hours} hours on")
    made = partitions(url)
    assert len(made) == 6
    end = metabase.changes.head(metabase.changes.start(), 2)
    metabase.changes.trim(end)
    assert partitions(url) == made[1:]
    assert keys(metabase) == ["4 hours on"]


def test_a_partition_with_what_is_not_trimmed_is_kept(url: str, metabase: PostgresMetabase) -> None:
    put(metabase)
    made = partitions(url)
    assert ask(url, f"SELECT drop_changes_before({2**21})") == [(True,)]
    assert partitions(url) == [made[0]]
    assert keys(metabase) == ["key"]


def test_a_trim_does_not_wait_for_a_reader_of_the_whole_table(
    url: str, metabase: PostgresMetabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "_DROP_AGAIN_SECONDS", 0.0)
    first = put(metabase)
    set_clock(url, first + 3 * HOUR_NS)
    put(metabase)
    made = partitions(url)
    end = metabase.changes.head(metabase.changes.start(), ALL)
    with psycopg.connect(url) as reader:
        reader.execute("SELECT count(*) FROM changes")
        metabase.changes.trim(end)
        assert partitions(url) == made
    metabase.changes.trim(end)
    assert len(partitions(url)) < len(made)


def test_a_partition_that_went_missing_is_made_again(url: str, metabase: PostgresMetabase) -> None:
    put(metabase, "gone")
    for name in partitions(url):
        ask(url, f"DROP TABLE {name}")
    put(metabase, "kept")
    assert keys(metabase) == ["kept"]


def test_a_partition_that_many_need_at_once_is_made_once(url: str, metabase: PostgresMetabase) -> None:
    for hours in range(1, 9, 2):
        set_clock(url, put(metabase) + hours * HOUR_NS)
        with ThreadPoolExecutor(8) as writers:
            list(writers.map(lambda n: put(metabase, f"key-{n}"), range(8)))
    assert len(keys(metabase)) == 4 * 9


@pytest.mark.parametrize("isolation", ["read committed", "repeatable read"])
def test_gateways_that_start_at_once_migrate_once(postgres_server: PostgresServer, isolation: str) -> None:
    url = postgres_server.create_database(migrated=False)
    isolate(url, isolation)
    barrier = threading.Barrier(3)

    def start(_: int) -> None:
        barrier.wait(30)
        migrate(url)

    with ThreadPoolExecutor(3) as gateways:
        list(gateways.map(start, range(3)))
    assert ask(url, "SELECT version FROM schema_version") == [(len(load_migrations()),)]
    assert migrate(url) == (len(load_migrations()), len(load_migrations()))


def test_a_newer_schema_that_only_adds_is_used_and_left_as_it_is(url: str) -> None:
    ask(url, "UPDATE schema_version SET version = 999")
    assert migrate(url) == (999, 999)
    opened = open_metabase(url)
    opened.check()
    opened.close()


def test_a_newer_schema_that_this_version_cannot_use_is_refused_with_what_to_do(url: str) -> None:
    ask(url, "UPDATE schema_version SET version = 999")
    ask(url, "UPDATE oldest_schema SET version = 999")
    with pytest.raises(ConfigError, match="upgrade"):
        migrate(url)


def next_migration(monkeypatch: pytest.MonkeyPatch, sql: str) -> None:
    more = [*load_migrations(), sql]
    monkeypatch.setattr(sys.modules[migrate.__module__], "load_migrations", lambda: more)


def test_a_migration_steps_back_from_a_lock_so_that_writers_do_not_wait_behind_it(
    url: str, metabase: PostgresMetabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader, such as a backup, holds the table; without stepping back, a write would wait for its end."""
    next_migration(monkeypatch, "ALTER TABLE objects ADD COLUMN next text;")
    with psycopg.connect(url) as backup, ThreadPoolExecutor(1) as upgrade:
        backup.execute("SELECT count(*) FROM objects")
        migrated = upgrade.submit(migrate, url)
        for number in range(20):
            put(metabase, f"key-{number}")
        assert not migrated.done()
        backup.rollback()
        assert migrated.result(60)[1] == len(load_migrations()) + 1
    assert len(keys(metabase)) == 20


def test_a_migration_that_gets_no_lock_says_why_and_changes_nothing(
    url: str, metabase: PostgresMetabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = load_migrations()
    next_migration(monkeypatch, "CREATE TABLE b (x int); ALTER TABLE objects ADD COLUMN next text;")
    monkeypatch.setattr(sys.modules[migrate.__module__], "PATIENCE_SECONDS", 0.1)
    with psycopg.connect(url) as backup:
        backup.execute("SELECT count(*) FROM objects")
        with pytest.raises(Unavailable, match="such as a backup"):
            migrate(url)
    assert ask(url, "SELECT version FROM schema_version") == [(len(before),)]
    assert ask(url, "SELECT to_regclass('b')") == [(None,)]
    put(metabase)


def test_a_write_that_waits_for_a_migration_goes_through_when_that_is_done(
    url: str, metabase: PostgresMetabase
) -> None:
    put(metabase, "before")
    waits = "SELECT count(*) FROM pg_locks WHERE NOT granted"
    for table in ("buckets", "objects"):
        with psycopg.connect(url) as migration, ThreadPoolExecutor(1) as writer:
            migration.execute(f"ALTER TABLE {table} ADD COLUMN next text")
            written = writer.submit(put, metabase, table)
            until(lambda: ask(url, waits) != [(0,)], 30, lambda: "the write does not wait")
            migration.commit()
            assert written.result(30)
    assert keys(metabase) == ["before", "buckets", "objects"]


def test_a_process_that_runs_goes_on_when_every_table_gets_more_columns(
    url: str, metabase: PostgresMetabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its connections have prepared statements and cached plans for the tables as they were."""

    def work(name: str) -> None:
        for number in range(12):
            put(metabase, f"{name}-{number}")
            metabase.objects.get("media", f"{name}-{number}")
            metabase.buckets.get("media")
            metabase.queue.park([message(f"{name}-{number}")], due_at_ns=0, attempts=1, reason="x")
            metabase.queue.take(TOPIC_ARN, 1, 10)
            metabase.queue.stats()
            metabase.cursors.lease("pipeline", "me", 5)

    work("before")
    tables = ask(
        url, "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename !~ '_[0-9]+$'"
    )
    sql = "".join(f"ALTER TABLE {name} ADD COLUMN next text DEFAULT 'new';" for (name,) in tables)
    next_migration(monkeypatch, sql)
    migrate(url)
    work("after")
    assert len(keys(metabase)) == 24


def test_a_migration_that_fails_leaves_the_database_as_it_was(
    postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgres_server.create_database(migrated=False)
    monkeypatch.setattr(
        sys.modules[migrate.__module__],
        "load_migrations",
        lambda: ["CREATE TABLE a (x int);", "CREATE TABLE b (x int); CREATE TABLE a (y int);"],
    )
    with pytest.raises(ConfigError):
        migrate(url)
    assert ask(url, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") == [(0,)]


def database_of_schema(version: int, server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of a database as an older release has left it."""
    url = server.create_database(migrated=False)
    with monkeypatch.context() as before:
        old = load_migrations()[:version]
        before.setattr(sys.modules[migrate.__module__], "load_migrations", lambda: old)
        migrate(url)
    return url


def test_what_waits_when_the_backlogs_are_introduced_is_counted(
    postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = database_of_schema(4, postgres_server, monkeypatch)
    ask(url, park_as_before("a", 5))
    ask(url, park_as_before("b", 7))
    metabase = PostgresMetabase(url)
    try:
        assert metabase.queue.backlogs() == {TOPIC_ARN: 12}
        ask(url, park_as_before("c", 9))
        ask(url, "DELETE FROM parked WHERE event_id = 'a'")
        assert metabase.queue.backlogs() == {TOPIC_ARN: 16}
    finally:
        metabase.close()


def test_letters_that_were_buried_before_there_were_counts_are_counted(
    postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = database_of_schema(2, postgres_server, monkeypatch)
    for event_id in ("a", "b", "c"):
        ask(
            url,
            "INSERT INTO dead_letters (topic_arn, event_id, buried_at_ns, reason, message) "
            f"VALUES ('{TOPIC_ARN}', '{event_id}', 0, '', '')",
        )
    metabase = PostgresMetabase(url)
    try:
        assert metabase.queue.dead_letters() == 3
        metabase.queue.purge([1])
        metabase.queue.bury([message("d"), message("e")], "gone")
        assert metabase.queue.dead_letters() == 4
        assert metabase.queue.counts() == {("buried", TOPIC_ARN): 5, ("purged", TOPIC_ARN): 1}
    finally:
        metabase.close()


def park_as_before(event_id: str, size_bytes: int) -> str:
    return (
        "INSERT INTO parked (topic_arn, event_id, attempts, parked_at_ns, due_at_ns, size_bytes, reason, "
        f"message) VALUES ('{TOPIC_ARN}', '{event_id}', 0, 0, 0, {size_bytes}, '', '')"
    )


def test_the_rows_of_backlogs_are_made_few_and_say_the_same(
    url: str, metabase: PostgresMetabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bucketwire.metabase.postgres.queue._LOOSE_ROWS", 5)
    for number, size_bytes in enumerate((10, 20, 30, 40, 50, 60, 70)):
        ask(url, park_as_before(f"event-{number}", size_bytes))
    ask(url, park_as_before("other", 1).replace(TOPIC_ARN, "drained"))
    ask(url, "DELETE FROM parked WHERE event_id IN ('other', 'event-0', 'event-6')")
    assert metabase.queue.backlogs() == {TOPIC_ARN: 200}
    assert ask(url, "SELECT topic_arn, entries, size_bytes FROM backlogs") == [(TOPIC_ARN, 5, 200)]
    assert metabase.queue.backlogs() == {TOPIC_ARN: 200}


def test_rows_of_backlogs_that_another_has_in_hand_are_left_and_the_sum_stays(
    url: str, metabase: PostgresMetabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is left to make one of are as many comings as goings, but not of the same size."""
    monkeypatch.setattr("bucketwire.metabase.postgres.queue._LOOSE_ROWS", 0)
    ask(url, park_as_before("stays", 10))
    ask(url, park_as_before("goes", 20))
    ask(url, "DELETE FROM parked WHERE event_id = 'goes'")
    with psycopg.connect(url) as other:
        other.execute("SELECT 1 FROM backlogs WHERE size_bytes = 20 FOR UPDATE")
        assert metabase.queue.backlogs() == {TOPIC_ARN: 10}
        assert len(ask(url, "SELECT 1 FROM backlogs")) == 2
    assert metabase.queue.backlogs() == {TOPIC_ARN: 10}
    assert ask(url, "SELECT entries, size_bytes FROM backlogs") == [(1, 10)]


def test_cursors_are_compared_as_numbers(metabase: PostgresMetabase) -> None:
    for position in ("99:7", "100:5", "100:30", "100:4", "99:99"):
        assert metabase.cursors.save("pipeline", position, 1)
    assert metabase.cursors.load("pipeline") == "100:30"


def test_who_takes_the_lease_sees_what_is_being_saved_by_the_one_before(
    metabase: PostgresMetabase, url: str
) -> None:
    metabase.cursors.lease("pipeline", "first", 0)
    with psycopg.connect(url) as saving, ThreadPoolExecutor(1) as threads:
        values = {"consumer": "pipeline", "position": "9:9", "alive": 1, "holder": "first", "timeline": ""}
        saving.execute(cursors._SAVE.encode(), values)
        taking = threads.submit(metabase.cursors.lease, "pipeline", "second", 50.0)
        until(lambda: bool(ask(url, WAITING_FOR_LOCKS)), 30, lambda: "it does not wait")
        assert not taking.done()
        saving.commit()
        assert taking.result(30)
    assert metabase.cursors.load("pipeline") == "9:9"


def test_a_cursor_from_a_server_with_more_transactions_is_not_believed(
    metabase: PostgresMetabase,
) -> None:
    """As after a dump that was restored in a new server."""
    put(metabase)
    metabase.cursors.save("pipeline", "4000000000:7", 1)
    with pytest.raises(ServerReplaced, match="metabase-postgresql"):
        metabase.changes.head(metabase.cursors.load("pipeline") or "", ALL)


def test_what_was_read_of_a_server_that_a_replica_has_replaced_counts_no_more() -> None:
    """The replica has not seen the last changes, and gives their transaction ids to others."""
    server = PostgresServer.start()
    metabase = PostgresMetabase(server.create_database())
    try:
        metabase.buckets.create("media", "owner-1", "us-east-1")
        metabase.rules.edit("media", lambda _: [rule()])
        put(metabase, "a")
        done = metabase.changes.head(metabase.changes.start(), ALL)
        metabase.cursors.save("pipeline", done, 1)
        server.copy()
        assert metabase.cursors.load("pipeline") == done
        for key in ("b", "c", "d"):
            put(metabase, key)
        read = metabase.changes.head(done, ALL)
        server.fail_over()
        for key in ("x", "y"):
            put(metabase, key)
        with pytest.raises(ServerReplaced):
            metabase.changes.head(read, ALL)
        with pytest.raises(ServerReplaced):
            metabase.cursors.save("pipeline", read, 2)
        assert metabase.cursors.load("pipeline") == done
        assert keys(metabase) == ["a", "x", "y"]
        assert metabase.cursors.save("pipeline", metabase.changes.head(done, ALL), 3)
    finally:
        metabase.close()
        server.stop()


def test_a_partition_that_cannot_be_dropped_is_not_tried_at_each_trim(
    metabase: PostgresMetabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[int] = []
    monkeypatch.setattr(metabase.changes, "_drop_before", lambda hour: bool(tries.append(hour)))
    for hour in (10, 11, 12):
        metabase.changes.trim(f"1:{hour * HOUR_NS}")
    assert tries == [9]
    monkeypatch.setattr(changes, "_DROP_AGAIN_SECONDS", 0.0)
    metabase.changes._drop_at = 0.0
    for hour in (13, 14):
        metabase.changes.trim(f"1:{hour * HOUR_NS}")
    assert tries == [9, 12, 13]
