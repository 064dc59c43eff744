-- PostgreSQL divides its pieces of code by project.
SELECT 1;
