"""LangGraph: the tests of its SQLite store, and its conformance package for checkpointers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import smara
from tests.conformance.suite import CaseResult, Source, Suite

_SQLITE = {
    "package": "langgraph-checkpoint-sqlite",
    "version": "3.1.2",
    "covers": "`smara.adapters.sdk.langgraph.SmaraStore`",
}
_SHA256 = "4e3f376fa6f192d6ad2a1a4643b039986f1593552ef870e9e45281575de6fbf2"
_PLUGIN = "conformance_langgraph_store"


def check_saver(address: str) -> Iterator[CaseResult]:
    """Run LangGraph's conformance package against the checkpointer."""
    from langgraph.checkpoint.conformance import checkpointer_test, validate
    from langgraph.checkpoint.conformance.report import ProgressCallbacks

    from smara.adapters.sdk.langgraph import SmaraSaver

    results: list[CaseResult] = []

    def note(capability: str, name: str, passed: bool, error: str | None) -> None:
        outcome = "passed" if passed else "failed"
        results.append(CaseResult(f"{capability}::{name}", outcome, (error or "")[-300:]))

    with smara.open(address, project="conformance", durability="normal") as memory:

        @checkpointer_test(name="Smara")
        async def saver() -> AsyncIterator[SmaraSaver]:
            yield SmaraSaver(memory)

        report = asyncio.run(validate(saver, progress=ProgressCallbacks(on_test_result=note)))
    for capability, result in report.results.items():
        if not result.detected:
            results.append(CaseResult(capability, "failed", "not implemented"))
    yield from results


SUITES = (
    Suite(
        "LangGraph checkpointer",
        package="langgraph-checkpoint-conformance",
        covers="`smara.adapters.sdk.langgraph.SmaraSaver`",
        check=check_saver,
    ),
    Suite(
        "LangGraph checkpointer, tests of its SQLite one",
        **{**_SQLITE, "covers": "`smara.adapters.sdk.langgraph.SmaraSaver`"},
        source=Source(
            _SHA256,
            (
                "tests/test_sqlite.py",
                "tests/test_aiosqlite.py",
                "tests/test_get_delta_channel_history.py",
                "tests/test_delta_channel_migration.py",
                "tests/test_delta_parent_walk.py",
            ),
            "conformance_langgraph_saver",
        ),
        not_applicable={
            "tests/test_sqlite.py::TestSqliteSaver::test_informative_async_errors": "asks for "
            "errors of the async methods that their sync class lacks; ours has them",
            "tests/test_delta_parent_walk.py::test_walk_step_looks_up_the_parent_by_primary_key": (
                "reads the query plan of a statement of theirs"
            ),
        },
        remark="Three of the cases that pass look at functions of theirs alone "
        "(`test_search_where`, `test_metadata_predicate`, "
        "`test_metadata_predicate_sql_injection_prevention`).",
    ),
    Suite(
        "LangGraph store",
        **_SQLITE,
        source=Source(_SHA256, ("tests/test_store.py",), _PLUGIN),
        not_applicable={
            "tests/test_store.py::test_vector_store_initialization": "asks SQLite for the names "
            "of its tables, over a connection that the store would have to give away",
            "tests/test_store.py::test_nonnull_migrations": "reads the migrations of their "
            "tables; ours have tests of their own",
        },
        remark="Three of the cases that pass look at functions of theirs alone "
        "(`test_escape_glob_literal`, `test_namespace_match_pattern`, "
        "`test_list_namespaces_prefix_uses_indexable_condition`).",
    ),
    Suite(
        "LangGraph store, async",
        **_SQLITE,
        source=Source(_SHA256, ("tests/test_async_store.py",), _PLUGIN),
    ),
    Suite(
        "LangGraph store, time to live",
        **_SQLITE,
        source=Source(_SHA256, ("tests/test_ttl.py",), _PLUGIN),
    ),
)
