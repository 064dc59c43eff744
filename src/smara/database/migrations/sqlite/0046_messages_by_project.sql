-- PostgreSQL finds all messages of a project by an index; a file has few projects, and writes less without.
SELECT 1;
