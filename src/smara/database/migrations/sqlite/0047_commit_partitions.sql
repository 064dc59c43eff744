-- PostgreSQL divides its commits by project; a file has few projects, and is read by the keys it has.
SELECT 1;
