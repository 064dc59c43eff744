CREATE TABLE leases (
  name         TEXT PRIMARY KEY,
  owner        TEXT,
  operation_id TEXT,
  fence        BIGINT NOT NULL,
  acquired_at  BIGINT NOT NULL,
  heartbeat_at BIGINT NOT NULL,
  expires_at   BIGINT NOT NULL
);
