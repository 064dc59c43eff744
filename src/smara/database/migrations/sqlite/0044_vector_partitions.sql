-- PostgreSQL divides its vectors by project; here their numbers, which begin with the shelf, do the same.
SELECT 1;
