-- Processes that know this schema, or a later one, work with the file as it is now.
CREATE TABLE oldest_schema (
    one     INTEGER PRIMARY KEY CHECK (one = 1),
    version INTEGER NOT NULL
);
INSERT INTO oldest_schema (one, version) VALUES (1, 4);
