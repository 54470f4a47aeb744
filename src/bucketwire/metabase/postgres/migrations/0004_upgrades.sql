-- Processes that know this schema, or a later one, work with the database as it is now.
CREATE TABLE oldest_schema (
    one     boolean PRIMARY KEY CHECK (one),
    version integer NOT NULL
);
INSERT INTO oldest_schema (one, version) VALUES (true, 4);
