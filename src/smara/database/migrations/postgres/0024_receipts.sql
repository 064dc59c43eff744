-- A use is a command that was recommended and worked, a citation, or a person's word. That a warned command did not come
-- again, or that a name or a file of a memory stood in later work, shows none; and only a failed call can be spared.
UPDATE moment_items SET saved_tokens = 0 WHERE kind <> 'failure' OR how <> '';
UPDATE moment_items SET outcome = NULL, settled_at = NULL WHERE how IN ('named', 'opened', 'avoided');
UPDATE moment_items SET how = '' WHERE how = 'avoided';
UPDATE moment_receipts SET used_at = NULL, used_how = '' WHERE used_how IN ('named', 'opened', 'avoided');
UPDATE moment_receipts SET
  used_at = (SELECT min(i.settled_at) FROM moment_items i WHERE i.receipt_no = moment_receipts.no AND i.outcome = 'used'),
  used_how = (SELECT min(i.how) FROM moment_items i WHERE i.receipt_no = moment_receipts.no AND i.outcome = 'used')
WHERE used_at IS NULL
  AND EXISTS (SELECT 1 FROM moment_items i WHERE i.receipt_no = moment_receipts.no AND i.outcome = 'used');
