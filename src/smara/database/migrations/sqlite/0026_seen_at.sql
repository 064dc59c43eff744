-- When what a memory rests on was seen, if that was before it was made: what is imported fades from then.
ALTER TABLE memories ADD COLUMN seen_at INTEGER;
