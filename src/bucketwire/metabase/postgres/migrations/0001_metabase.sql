-- Keys are bytes: they sort as S3 sorts them whatever the database's collation, and may hold any character.

CREATE TABLE buckets (
    id            text COLLATE "C" PRIMARY KEY,
    name          text COLLATE "C" NOT NULL UNIQUE,
    owner_id      text COLLATE "C" NOT NULL,
    region        text NOT NULL,
    versioning    text NOT NULL,
    revision      bigint NOT NULL DEFAULT 0, -- when its rules last changed
    created_at_ns bigint NOT NULL
);
CREATE INDEX buckets_by_owner ON buckets (owner_id, name);

CREATE TABLE bucket_documents (
    bucket_id text COLLATE "C" NOT NULL,
    kind      text COLLATE "C" NOT NULL,
    document  text NOT NULL,
    PRIMARY KEY (bucket_id, kind)
);

CREATE TABLE objects (
    bucket_id     text COLLATE "C" NOT NULL,
    object_key    bytea NOT NULL,
    version       bigint NOT NULL,
    status        smallint NOT NULL,
    size_bytes    bigint NOT NULL,
    etag          text NOT NULL,
    owner_id      text NOT NULL,
    created_at_ns bigint NOT NULL,
    acl           text NOT NULL,
    content_type  text,
    described     text NOT NULL,
    segments      text,
    inline        bytea,
    PRIMARY KEY (bucket_id, object_key, version)
);

CREATE TABLE used_blobs (name text COLLATE "C" PRIMARY KEY);
CREATE TABLE dropped_blobs (name text COLLATE "C" PRIMARY KEY);

CREATE TABLE uploads (
    id         text COLLATE "C" PRIMARY KEY,
    bucket_id  text COLLATE "C" NOT NULL,
    object_key bytea NOT NULL,
    upload     text NOT NULL
);
CREATE UNIQUE INDEX uploads_by_key ON uploads (bucket_id, object_key, id);

CREATE TABLE parts (
    upload_id text COLLATE "C" NOT NULL,
    number    integer NOT NULL,
    blob      text NOT NULL,
    part      text NOT NULL,
    PRIMARY KEY (upload_id, number)
);

CREATE TABLE users (
    id            text COLLATE "C" PRIMARY KEY,
    name          text COLLATE "C" NOT NULL,
    tenant        text COLLATE "C" NOT NULL,
    created_at_ns bigint NOT NULL,
    UNIQUE (tenant, name)
);

CREATE TABLE keys (
    access_key text COLLATE "C" PRIMARY KEY,
    secret_key text NOT NULL,
    user_id    text COLLATE "C" NOT NULL
);
CREATE INDEX keys_by_user ON keys (user_id);

CREATE TABLE rules (
    bucket_id     text COLLATE "C" NOT NULL,
    added_at_ns   bigint NOT NULL,
    place         integer NOT NULL,
    retired_at_ns bigint,
    rule          text NOT NULL,
    PRIMARY KEY (bucket_id, added_at_ns, place)
);

CREATE TABLE topics (
    arn           text COLLATE "C" PRIMARY KEY,
    owner_id      text COLLATE "C" NOT NULL,
    topic         text NOT NULL,
    version       bigint NOT NULL,
    deleted_at_ns bigint
);
CREATE INDEX topics_by_owner ON topics (owner_id, arn);
CREATE INDEX topics_by_version ON topics (version);

-- The change stream, in the order of (xid, committed_at_ns): one partition an hour, dropped when it is passed.
CREATE TABLE changes (
    xid             xid8 NOT NULL DEFAULT pg_current_xact_id(),
    committed_at_ns bigint NOT NULL,
    change          bytea NOT NULL,
    PRIMARY KEY (xid, committed_at_ns)
) PARTITION BY RANGE (committed_at_ns);

CREATE TABLE trimmed (
    one             boolean PRIMARY KEY DEFAULT true CHECK (one),
    xid             xid8 NOT NULL,
    committed_at_ns bigint NOT NULL
) WITH (fillfactor = 10);
INSERT INTO trimmed (xid, committed_at_ns) VALUES ('0', 0);

CREATE TABLE cursors (
    consumer    text PRIMARY KEY,
    position    text NOT NULL,
    alive_at_ns bigint NOT NULL
) WITH (fillfactor = 10);

CREATE TABLE parked (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    topic_arn    text COLLATE "C" NOT NULL,
    event_id     text COLLATE "C" NOT NULL,
    attempts     integer NOT NULL,
    parked_at_ns bigint NOT NULL,
    due_at_ns    bigint NOT NULL,
    size_bytes   bigint NOT NULL,
    reason       text NOT NULL,
    message      bytea NOT NULL,
    UNIQUE (topic_arn, event_id)
);
CREATE INDEX parked_by_due ON parked (topic_arn, due_at_ns, id);

CREATE TABLE health (
    topic_arn   text COLLATE "C" PRIMARY KEY,
    failures    integer NOT NULL,
    retry_at_ns bigint NOT NULL,
    reason      text NOT NULL
);

CREATE TABLE dead_letters (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    topic_arn    text COLLATE "C" NOT NULL,
    event_id     text COLLATE "C" NOT NULL,
    buried_at_ns bigint NOT NULL,
    reason       text NOT NULL,
    message      bytea NOT NULL,
    UNIQUE (topic_arn, event_id)
);

-- The clock of all gateways. A sequence, because what it gives is never given back, also by a rollback.
CREATE SEQUENCE clock AS bigint;

-- The first of `count` times that were never given before. The transaction gets its id under the same lock, so
-- that ids and times are in one order. The lock is the session's, for the length of this call: held to the end
-- of the transaction it would make commits wait for each other.
CREATE FUNCTION stamp_ns(count bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    stamp bigint;
BEGIN
    PERFORM pg_advisory_lock(4850155862713171);
    PERFORM pg_current_xact_id();
    SELECT greatest((extract(epoch FROM clock_timestamp()) * 1000000)::bigint * 1000, last_value + 1)
        INTO stamp FROM clock;
    PERFORM setval('clock', stamp + count - 1);
    PERFORM pg_advisory_unlock(4850155862713171);
    RETURN stamp;
END
$$;

-- The name of the partition of that hour since 1970: names sort as their hours do.
CREATE FUNCTION changes_partition(hour bigint) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT 'changes_' || to_char(to_timestamp(hour * 3600) AT TIME ZONE 'UTC', 'YYYYMMDD_HH24')
$$;

-- Attached, not created in place: that would lock writers out. A lock on the table, not an advisory one, because
-- only that makes the second session see what the first has made.
CREATE FUNCTION make_changes_partition(hour bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    part text := changes_partition(hour);
    hour_ns bigint := 3600000000000;
BEGIN
    IF to_regclass(part) IS NOT NULL THEN
        RETURN;
    END IF;
    LOCK TABLE ONLY changes IN SHARE UPDATE EXCLUSIVE MODE;
    IF to_regclass(part) IS NULL THEN
        EXECUTE format('CREATE TABLE %I (LIKE changes INCLUDING ALL)', part);
        EXECUTE format('ALTER TABLE changes ATTACH PARTITION %I FOR VALUES FROM (%s) TO (%s)',
            part, hour * hour_ns, (hour + 1) * hour_ns);
    END IF;
END
$$;

-- Drops the partitions before that hour that hold nothing behind the trimmed mark. False when it would have to
-- wait for a lock, and writers behind it.
CREATE FUNCTION drop_changes_before(hour bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    part text;
    needed boolean;
BEGIN
    PERFORM set_config('lock_timeout', '200ms', true);
    FOR part IN
        SELECT relname FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
        WHERE inhparent = 'changes'::regclass AND relname COLLATE "C" < changes_partition(hour) ORDER BY relname
    LOOP
        EXECUTE format('LOCK TABLE ONLY changes, %I IN ACCESS EXCLUSIVE MODE', part);
        EXECUTE format('SELECT EXISTS (SELECT 1 FROM %I AS part, trimmed WHERE (part.xid, part.committed_at_ns) '
            '> (trimmed.xid, trimmed.committed_at_ns))', part) INTO needed;
        IF NOT needed THEN
            EXECUTE format('DROP TABLE %I', part);
        END IF;
    END LOOP;
    RETURN true;
EXCEPTION WHEN lock_not_available THEN
    RETURN false;
END
$$;

-- The bucket of that name, when its lock is held, shared. A statement sees what was committed before it began; so
-- waiting and reading are two statements, in one round trip.
CREATE FUNCTION enter_bucket(lock_number bigint, bucket_name text) RETURNS SETOF buckets LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(lock_number);
    RETURN QUERY SELECT * FROM buckets WHERE name = bucket_name;
END
$$;

-- Likewise for a key: a stamp, and what is current, if anything is.
CREATE FUNCTION enter_key(lock_number bigint, of_bucket text, of_key bytea, stamps bigint)
RETURNS TABLE (stamp bigint, latest objects) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(lock_number);
    SELECT * INTO latest FROM objects
        WHERE objects.bucket_id = of_bucket AND objects.object_key = of_key ORDER BY objects.version DESC LIMIT 1;
    stamp := stamp_ns(stamps);
    RETURN NEXT;
END
$$;
