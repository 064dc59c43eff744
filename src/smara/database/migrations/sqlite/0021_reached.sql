-- When what was said stood in the record that the host keeps of the session: in the context of its model.
ALTER TABLE moment_receipts ADD COLUMN reached_at INTEGER;
