ALTER TABLE parked ADD COLUMN failures_when_parked INTEGER NOT NULL DEFAULT 0;
DROP INDEX parked_by_due;
CREATE INDEX parked_by_due ON parked
    (topic_arn, due_at_ns, id, parked_at_ns, size_bytes, attempts, failures_when_parked);
CREATE TABLE counts (
    what      TEXT NOT NULL,
    topic_arn TEXT NOT NULL,
    messages  INTEGER NOT NULL,
    PRIMARY KEY (what, topic_arn)
) WITHOUT ROWID;
CREATE TRIGGER count_buried AFTER INSERT ON dead_letters
BEGIN
    INSERT INTO counts (what, topic_arn, messages) VALUES ('buried', new.topic_arn, 1)
    ON CONFLICT (what, topic_arn) DO UPDATE SET messages = messages + 1;
END;
CREATE TABLE leases (
    consumer TEXT PRIMARY KEY,
    holder   TEXT NOT NULL,
    until_ns INTEGER NOT NULL
) WITHOUT ROWID;
