-- New terms wait in a list that every search reads whole, and that the planner prices so high when
-- it is long (4 MB) that it reads the table instead. Short, it is emptied more often and read at once.
ALTER INDEX message_index_by_terms SET (gin_pending_list_limit = 128);
ALTER INDEX record_index_by_terms SET (gin_pending_list_limit = 128);
ALTER INDEX code_index_by_terms SET (gin_pending_list_limit = 128);
ALTER INDEX words_by_trigram SET (gin_pending_list_limit = 128);
SELECT gin_clean_pending_list('message_index_by_terms'), gin_clean_pending_list('record_index_by_terms'),
  gin_clean_pending_list('code_index_by_terms'), gin_clean_pending_list('words_by_trigram');
