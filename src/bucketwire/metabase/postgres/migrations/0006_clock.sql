-- The last time at which a consumer was alive; it stays when `alive_at_ns` is set to 0.
ALTER TABLE cursors ADD COLUMN last_alive_at_ns bigint NOT NULL DEFAULT 0;
