-- The end of the last claim on a topic: as long as `retry_at_ns` is the same, that is a claim and no pause.
ALTER TABLE health ADD COLUMN claimed_until_ns bigint NOT NULL DEFAULT 0;
