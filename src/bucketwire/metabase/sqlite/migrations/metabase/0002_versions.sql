-- Versions, multipart uploads, owners and ACLs, documents of a bucket's configuration, users.

ALTER TABLE objects ADD COLUMN owner_id TEXT NOT NULL DEFAULT '';
ALTER TABLE objects ADD COLUMN acl TEXT NOT NULL DEFAULT 'private';
ALTER TABLE objects ADD COLUMN segments TEXT;
UPDATE objects SET owner_id = (SELECT owner_id FROM buckets WHERE buckets.id = objects.bucket_id);
UPDATE objects SET segments = json_array(json_object('blob', blob, 'size_bytes', size_bytes))
WHERE blob IS NOT NULL;
ALTER TABLE objects DROP COLUMN blob;
ALTER TABLE objects DROP COLUMN version_id;

CREATE TABLE uploads (
    id            TEXT PRIMARY KEY,
    bucket_id     TEXT NOT NULL,
    object_key    TEXT NOT NULL,
    created_at_ns INTEGER NOT NULL,
    upload        TEXT NOT NULL
);
CREATE UNIQUE INDEX uploads_by_key ON uploads (bucket_id, object_key, created_at_ns, id);

CREATE TABLE parts (
    upload_id     TEXT NOT NULL,
    number        INTEGER NOT NULL,
    blob          TEXT NOT NULL,
    part          TEXT NOT NULL,
    PRIMARY KEY (upload_id, number)
) WITHOUT ROWID;

-- Which objects and parts use a blob: to tell orphans from blobs that are in use.
CREATE TABLE used_blobs (
    name TEXT PRIMARY KEY
) WITHOUT ROWID;
INSERT INTO used_blobs SELECT json_extract(segments, '$[0].blob') FROM objects WHERE segments IS NOT NULL;

CREATE TABLE bucket_documents (
    bucket_id TEXT NOT NULL,
    kind      TEXT NOT NULL,
    document  TEXT NOT NULL,
    PRIMARY KEY (bucket_id, kind)
) WITHOUT ROWID;

CREATE TABLE users (
    id            TEXT PRIMARY KEY,
    name          TEXT NOT NULL,
    tenant        TEXT NOT NULL,
    created_at_ns INTEGER NOT NULL,
    UNIQUE (tenant, name)
);

CREATE TABLE keys (
    access_key TEXT PRIMARY KEY,
    secret_key TEXT NOT NULL,
    user_id    TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX keys_by_user ON keys (user_id);
