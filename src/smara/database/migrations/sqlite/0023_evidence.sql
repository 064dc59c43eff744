-- What the events of a session show of its work. An outcome is named after its evidence: of earlier sessions that have
-- "passed" it is not known by what, and those that had nothing to prove have no outcome.
ALTER TABLE behavior_sessions ADD COLUMN evidence TEXT NOT NULL DEFAULT '';
UPDATE behavior_sessions SET outcome = 'unknown' WHERE outcome IN ('passed', 'unproven');
