"""Read what agents do: commands, outcomes, exit codes, tests, failures, paths.

Host events and message parts are read by the same functions into the same frozen records, so
that every room above learns the same from them. `intake` ingests host events exactly once and
says when a session is over.
"""
