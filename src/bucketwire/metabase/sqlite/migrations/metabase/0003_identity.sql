CREATE TABLE identity (
    one  INTEGER PRIMARY KEY CHECK (one = 1),
    uuid TEXT NOT NULL
);
WITH made (hex) AS (SELECT lower(hex(randomblob(16))))
INSERT INTO identity (one, uuid)
SELECT 1, substr(hex, 1, 8) || '-' || substr(hex, 9, 4) || '-4' || substr(hex, 14, 3) || '-a'
    || substr(hex, 18, 3) || '-' || substr(hex, 21, 12)
FROM made;
