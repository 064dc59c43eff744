-- A line of observations may carry the end of its id, by which it is read.
CREATE INDEX observations_by_short_id ON observations (project_no, substr(id, 29));
