-- When a command that is known to fail has last worked: what works again is not warned of.
ALTER TABLE observer_error_patterns ADD COLUMN last_worked_at INTEGER;
