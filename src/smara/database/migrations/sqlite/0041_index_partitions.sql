-- PostgreSQL divides its text indexes by project; here a term of the project does the same.
SELECT 1;
