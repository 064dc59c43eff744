-- What an observer wrote and was left out, or could not do, and why: a list of sentences as JSON.
ALTER TABLE observation_batches ADD COLUMN warnings TEXT NOT NULL DEFAULT '[]';
