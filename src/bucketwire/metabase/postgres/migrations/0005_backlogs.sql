-- What waits for each topic is the sum of its rows here: the limits of queues are looked at every second. A row for
-- each statement that parks or takes away, because one a topic would make those wait for each other's commit.
CREATE TABLE backlogs (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    topic_arn  text COLLATE "C" NOT NULL,
    entries    bigint NOT NULL,
    size_bytes bigint NOT NULL
);
CREATE FUNCTION count_parked() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO backlogs (topic_arn, entries, size_bytes)
    SELECT topic_arn, count(*), sum(size_bytes) FROM added GROUP BY topic_arn;
    RETURN NULL;
END
$$;
CREATE FUNCTION count_unparked() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO backlogs (topic_arn, entries, size_bytes)
    SELECT topic_arn, -count(*), -sum(size_bytes) FROM gone GROUP BY topic_arn;
    RETURN NULL;
END
$$;
CREATE TRIGGER count_parked AFTER INSERT ON parked
    REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION count_parked();
CREATE TRIGGER count_unparked AFTER DELETE ON parked
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION count_unparked();
-- The triggers' lock keeps others from parking until the end, so that none is counted twice or not at all.
INSERT INTO backlogs (topic_arn, entries, size_bytes)
SELECT topic_arn, count(*), sum(size_bytes) FROM parked GROUP BY topic_arn;
