-- PostgreSQL divides its observations by project.
SELECT 1;
