CREATE TABLE identity (
    one  boolean PRIMARY KEY CHECK (one),
    uuid text NOT NULL
);
INSERT INTO identity (one, uuid) VALUES (true, gen_random_uuid()::text);
