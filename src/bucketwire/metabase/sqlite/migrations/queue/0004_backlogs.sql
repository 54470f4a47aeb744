-- What waits for each topic, counted as it comes and goes: the limits of queues are looked at every second.
CREATE TABLE backlogs (
    topic_arn  TEXT PRIMARY KEY,
    entries    INTEGER NOT NULL,
    size_bytes INTEGER NOT NULL
) WITHOUT ROWID;
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
INSERT INTO backlogs (topic_arn, entries, size_bytes)
SELECT topic_arn, count(*), sum(size_bytes) FROM parked GROUP BY topic_arn;
