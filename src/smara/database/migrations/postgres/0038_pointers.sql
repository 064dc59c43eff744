-- Messages whose text is in an agent's transcript have a pointer in place of a layout.
CREATE INDEX messages_by_pointer ON messages (project_no) WHERE substr(parts, 1, 1) = '{';
