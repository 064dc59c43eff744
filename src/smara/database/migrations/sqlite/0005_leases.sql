CREATE TABLE leases (
  name         TEXT PRIMARY KEY,
  owner        TEXT,
  operation_id TEXT,
  fence        INTEGER NOT NULL,
  acquired_at  INTEGER NOT NULL,
  heartbeat_at INTEGER NOT NULL,
  expires_at   INTEGER NOT NULL
) STRICT;
