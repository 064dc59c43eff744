"""The OpenAI Agents SDK: its tests of sessions, against ours."""

from __future__ import annotations

from tests.conformance.suite import Source, Suite

_SHA256 = "4b4b285f4fed81fdf1b4ac426a9101658d9cd29b4fb1aaeee18f639b77e704e3"
_COVERS = "`smara.adapters.sdk.openai_agents.SmaraSession`"
_CONNECTIONS = "looks at the connections that `SQLiteSession` keeps; ours belong to the memory"
_TABLES = "writes to the tables of `SQLiteSession`"
_LOCKS = "looks at the lock of `SQLiteSession`; ours takes turns in the database"
_JSON = f"{_TABLES} what is no JSON; ours stores nothing else"
_PAUSES = "pauses a connection of `SQLiteSession`; our own test pauses ours"


def _suite(name: str, *files: str, **not_applicable: str) -> Suite:
    return Suite(
        f"OpenAI Agents SDK: {name}",
        package="openai-agents",
        version="0.24.0",
        covers=_COVERS,
        source=Source(_SHA256, tuple(files), plugin="conformance_openai_agents"),
        not_applicable={f"{files[0]}::{case}": why for case, why in not_applicable.items()},
    )


SUITES = (
    _suite(
        "sessions",
        "tests/memory/test_session.py",
        "tests/memory/test_session_limit.py",
        test_sqlite_session_close_closes_worker_thread_connections=_CONNECTIONS,
        test_sqlite_session_reaps_connections_from_exited_worker_threads=_CONNECTIONS,
        test_sqlite_session_closes_retired_connections_before_the_next_allocation=_CONNECTIONS,
        test_sqlite_session_keeps_connections_of_live_worker_threads=_CONNECTIONS,
        test_sqlite_session_rollback_failure_evicts_connection=_CONNECTIONS,
        test_sqlite_session_close_retries_quarantined_connection=_CONNECTIONS,
        test_sqlite_session_pop_item_skips_corrupt_most_recent=_JSON,
        test_sqlite_session_pop_item_returns_none_after_dropping_only_corrupt_rows=_JSON,
        test_sqlite_session_get_items_limit_skips_corrupt_newest_rows=_JSON,
        test_sqlite_session_get_items_session_settings_limit_skips_corrupt_rows=_JSON,
        test_sqlite_session_file_lock_is_shared_across_instances=_LOCKS,
        test_sqlite_session_failed_add_items_releases_write_lock=_TABLES,
        test_sqlite_session_failed_clear_session_rolls_back=_TABLES,
        test_sqlite_session_failed_pop_item_releases_write_lock=_TABLES,
        test_sqlite_session_post_commit_cancellation_propagates_after_known_outcome=_PAUSES,
    ),
    _suite("deferred writes", "tests/deferred_session_writes"),
    _suite("a person in the loop", "tests/test_hitl_session_scenario.py"),
)
