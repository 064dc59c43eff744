-- The divided table takes the place of the former; see the step before. To look a commit up in sixteen parts for each of
-- its files takes ten times as long as in one table. Files are written in the transaction of their commit and removed
-- before it, so that no key has to say that it is there.
LOCK TABLE commits, commit_files;
ALTER TABLE commit_files DROP CONSTRAINT commit_files_commit_no_fkey;
SELECT put_parts_in_place('commits');
