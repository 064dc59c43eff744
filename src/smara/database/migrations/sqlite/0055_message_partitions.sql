-- PostgreSQL divides its messages by project.
SELECT 1;
