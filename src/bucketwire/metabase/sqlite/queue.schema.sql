CREATE TABLE backlogs (
    topic_arn  TEXT PRIMARY KEY,
    entries    INTEGER NOT NULL,
    size_bytes INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TRIGGER count_buried AFTER INSERT ON dead_letters
BEGIN
    INSERT INTO counts (what, topic_arn, messages) VALUES ('buried', new.topic_arn, 1)
    ON CONFLICT (what, topic_arn) DO UPDATE SET messages = messages + 1;
END;

CREATE TRIGGER count_parked AFTER INSERT ON parked
BEGIN
    INSERT INTO backlogs (topic_arn, entries, size_bytes) VALUES (new.topic_arn, 1, new.size_bytes)
    ON CONFLICT (topic_arn) DO UPDATE SET entries = entries + 1, size_bytes = size_bytes + excluded.size_bytes;
END;

CREATE TRIGGER count_unparked AFTER DELETE ON parked
BEGIN
    UPDATE backlogs SET entries = entries - 1, size_bytes = size_bytes - old.size_bytes
    WHERE topic_arn = old.topic_arn;
    DELETE FROM backlogs WHERE topic_arn = old.topic_arn AND entries <= 0;
END;

CREATE TABLE counts (
    what      TEXT NOT NULL,
    topic_arn TEXT NOT NULL,
    messages  INTEGER NOT NULL,
    PRIMARY KEY (what, topic_arn)
) WITHOUT ROWID;

CREATE TABLE cursors (
    consumer    TEXT PRIMARY KEY,
    position    TEXT NOT NULL,
    alive_at_ns INTEGER NOT NULL
, last_alive_at_ns INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;

CREATE TABLE dead_letters (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    topic_arn    TEXT NOT NULL,
    event_id     TEXT NOT NULL,
    buried_at_ns INTEGER NOT NULL,
    reason       TEXT NOT NULL,
    message      BLOB NOT NULL
);

CREATE UNIQUE INDEX dead_letters_by_event ON dead_letters (topic_arn, event_id);

CREATE TABLE health (
    topic_arn   TEXT PRIMARY KEY,
    failures    INTEGER NOT NULL,
    retry_at_ns INTEGER NOT NULL,
    reason      TEXT NOT NULL
, claimed_until_ns INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;

CREATE TABLE leases (
    consumer TEXT PRIMARY KEY,
    holder   TEXT NOT NULL,
    until_ns INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE oldest_schema (
    one     INTEGER PRIMARY KEY CHECK (one = 1),
    version INTEGER NOT NULL
);

CREATE TABLE parked (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    topic_arn    TEXT NOT NULL,
    event_id     TEXT NOT NULL,
    attempts     INTEGER NOT NULL,
    parked_at_ns INTEGER NOT NULL,
    due_at_ns    INTEGER NOT NULL,
    size_bytes   INTEGER NOT NULL,
    reason       TEXT NOT NULL,
    message      BLOB NOT NULL
, failures_when_parked INTEGER NOT NULL DEFAULT 0);

CREATE INDEX parked_by_due ON parked
    (topic_arn, due_at_ns, id, parked_at_ns, size_bytes, attempts, failures_when_parked);

CREATE UNIQUE INDEX parked_by_event ON parked (topic_arn, event_id);
