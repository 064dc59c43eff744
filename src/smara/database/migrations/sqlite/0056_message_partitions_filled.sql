-- See the step before.
SELECT 1;
