-- A scratchpad is kept as a whole, number 0, and what changed in it since, numbers 1 and on.
CREATE TABLE pads_by_number (
  session_no BIGINT NOT NULL REFERENCES behavior_sessions (no),
  part       TEXT COLLATE "C" NOT NULL,
  number     BIGINT NOT NULL,
  project_no BIGINT NOT NULL REFERENCES projects (no),
  pad        BYTEA NOT NULL,
  updated_at BIGINT NOT NULL,
  PRIMARY KEY (session_no, part, number)
);
INSERT INTO pads_by_number (session_no, part, number, project_no, pad, updated_at)
  SELECT session_no, part, 0, project_no, pad, updated_at FROM behavior_pads;
DROP TABLE behavior_pads;
ALTER TABLE pads_by_number RENAME TO behavior_pads;
