ALTER TABLE parked ADD COLUMN failures_when_parked integer NOT NULL DEFAULT 0;
CREATE TABLE counts (
    what      text NOT NULL,
    topic_arn text NOT NULL,
    messages  bigint NOT NULL,
    PRIMARY KEY (what, topic_arn)
);
CREATE FUNCTION count_buried() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO counts (what, topic_arn, messages)
    SELECT 'buried', topic_arn, count(*) FROM added GROUP BY topic_arn ORDER BY topic_arn
    ON CONFLICT (what, topic_arn) DO UPDATE SET messages = counts.messages + excluded.messages;
    RETURN NULL;
END
$$;
CREATE TRIGGER count_buried AFTER INSERT ON dead_letters
    REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION count_buried();
CREATE TABLE leases (
    consumer text PRIMARY KEY,
    holder   text NOT NULL,
    until_ns bigint NOT NULL
);
CREATE FUNCTION server_ns() RETURNS bigint LANGUAGE sql AS $$
    SELECT (extract(epoch FROM clock_timestamp()) * 1000000000)::bigint
$$;
