"""The metabase on SQLite: one machine, nothing to configure.

    metabase.db         buckets, objects, rules, topics, changes    written by the gateway
    metabase-queue.db   cursor, parked messages, dead letters       written by the pipeline

Two files, because SQLite has one writer a file: neither side waits for the other's disk flush.
"""

from bucketwire.metabase.sqlite.open import SqliteMetabase, migrate_sqlite, open_sqlite

__all__ = ["SqliteMetabase", "migrate_sqlite", "open_sqlite"]
