CREATE TABLE bucket_documents (
    bucket_id TEXT NOT NULL,
    kind      TEXT NOT NULL,
    document  TEXT NOT NULL,
    PRIMARY KEY (bucket_id, kind)
) WITHOUT ROWID;

CREATE TABLE buckets (
    id            TEXT PRIMARY KEY,
    name          TEXT NOT NULL UNIQUE,
    owner_id      TEXT NOT NULL,
    region        TEXT NOT NULL,
    versioning    TEXT NOT NULL,
    revision      INTEGER NOT NULL DEFAULT 0, -- when its rules last changed
    created_at_ns INTEGER NOT NULL
);

CREATE INDEX buckets_by_owner ON buckets (owner_id, name);

CREATE TABLE changes (
    position        INTEGER PRIMARY KEY AUTOINCREMENT,
    committed_at_ns INTEGER NOT NULL,
    change          BLOB NOT NULL
);

CREATE TABLE clock (
    one     INTEGER PRIMARY KEY CHECK (one = 1),
    last_ns INTEGER NOT NULL
);

CREATE TABLE dropped_blobs (
    name TEXT PRIMARY KEY
) WITHOUT ROWID;

CREATE TABLE identity (
    one  INTEGER PRIMARY KEY CHECK (one = 1),
    uuid TEXT NOT NULL
);

CREATE TABLE keys (
    access_key TEXT PRIMARY KEY,
    secret_key TEXT NOT NULL,
    user_id    TEXT NOT NULL
) WITHOUT ROWID;

CREATE INDEX keys_by_user ON keys (user_id);

CREATE TABLE objects (
    bucket_id     TEXT NOT NULL,
    object_key    TEXT NOT NULL,
    version       INTEGER NOT NULL,
    status        INTEGER NOT NULL,
    size_bytes    INTEGER NOT NULL,
    etag          TEXT NOT NULL,
    created_at_ns INTEGER NOT NULL,
    content_type  TEXT,
    described     TEXT NOT NULL,
    inline        BLOB
, owner_id TEXT NOT NULL DEFAULT '', acl TEXT NOT NULL DEFAULT 'private', segments TEXT);

CREATE UNIQUE INDEX objects_by_key ON objects (bucket_id, object_key, version);

CREATE TABLE oldest_schema (
    one     INTEGER PRIMARY KEY CHECK (one = 1),
    version INTEGER NOT NULL
);

CREATE TABLE parts (
    upload_id     TEXT NOT NULL,
    number        INTEGER NOT NULL,
    blob          TEXT NOT NULL,
    part          TEXT NOT NULL,
    PRIMARY KEY (upload_id, number)
) WITHOUT ROWID;

CREATE TABLE rules (
    bucket_id     TEXT NOT NULL,
    added_at_ns   INTEGER NOT NULL,
    place         INTEGER NOT NULL,
    retired_at_ns INTEGER,
    rule          TEXT NOT NULL,
    PRIMARY KEY (bucket_id, added_at_ns, place)
) WITHOUT ROWID;

CREATE TABLE topics (
    arn           TEXT PRIMARY KEY,
    owner_id      TEXT NOT NULL,
    topic         TEXT NOT NULL,
    version       INTEGER NOT NULL,
    deleted_at_ns INTEGER
);

CREATE INDEX topics_by_owner ON topics (owner_id, arn);

CREATE INDEX topics_by_version ON topics (version);

CREATE TABLE trimmed (
    one      INTEGER PRIMARY KEY CHECK (one = 1),
    position INTEGER NOT NULL
);

CREATE TABLE uploads (
    id            TEXT PRIMARY KEY,
    bucket_id     TEXT NOT NULL,
    object_key    TEXT NOT NULL,
    created_at_ns INTEGER NOT NULL,
    upload        TEXT NOT NULL
);

CREATE UNIQUE INDEX uploads_by_key ON uploads (bucket_id, object_key, created_at_ns, id);

CREATE TABLE used_blobs (
    name TEXT PRIMARY KEY
) WITHOUT ROWID;

CREATE TABLE users (
    id            TEXT PRIMARY KEY,
    name          TEXT NOT NULL,
    tenant        TEXT NOT NULL,
    created_at_ns INTEGER NOT NULL,
    UNIQUE (tenant, name)
);
