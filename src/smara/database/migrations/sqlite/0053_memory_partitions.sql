-- PostgreSQL divides its memories by project.
SELECT 1;
