-- One table holds the keys of ingested events; behavior had hashes of its own.
INSERT INTO intake_events (project_no, stem, at_ms, session_id, taken_at)
SELECT s.project_no, 'hash:' || encode(s.key, 'hex'), 0, b.session_id, b.last_event_at
FROM behavior_seen s JOIN behavior_sessions b ON b.no = s.session_no
WHERE b.state <> 'final'
ON CONFLICT DO NOTHING;

DROP TABLE behavior_seen;
