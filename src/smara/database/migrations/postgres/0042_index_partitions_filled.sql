-- What is left of the former text indexes, usually nothing; see the step before.
LOCK TABLE message_index_whole;
INSERT INTO message_index SELECT no, chunk, project_no, thread_no, resource, role, prose, code, array_to_tsvector(terms_of_project(project_no, tsvector_to_array(terms))) FROM message_index_whole ON CONFLICT DO NOTHING;
DROP TABLE message_index_whole;
LOCK TABLE record_index_whole;
INSERT INTO record_index SELECT kind, no, piece, project_no, head, body, array_to_tsvector(terms_of_project(project_no, tsvector_to_array(terms))) FROM record_index_whole ON CONFLICT DO NOTHING;
DROP TABLE record_index_whole;
LOCK TABLE code_index_whole;
INSERT INTO code_index SELECT kind, no, piece, project_no, head, body, array_to_tsvector(terms_of_project(project_no, tsvector_to_array(terms))) FROM code_index_whole ON CONFLICT DO NOTHING;
DROP TABLE code_index_whole;
LOCK TABLE words_whole;
INSERT INTO words SELECT project_no, word, terms_of_project(project_no, trigrams) FROM words_whole ON CONFLICT DO NOTHING;
DROP TABLE words_whole;
