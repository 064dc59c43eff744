"""Every table of the store is described, for both databases."""

from __future__ import annotations

import pytest

import smara
from smara.privacy.retention import KINDS
from smara.privacy.rows import RowReader, Selection
from smara.privacy.tables import BY_NAME, JSON_COLUMNS, RECORDS, TABLES
from smara.testing import FakeClock


@pytest.fixture
def columns(where):
    with smara.open(where, embedder="off") as memory:
        database = memory.internals.database
        with database.read() as session:
            yield {
                name: {column.name for column in found}
                for name, found in database.tables(session).items()
            }


def test_every_table_of_a_store_is_described(columns):
    """A migration that adds a table adds its description, or export and erase would miss it."""
    described = {table.name for table in TABLES}
    only_sqlite = {"word_trigrams"}
    assert columns.keys() - described == set()
    assert described - columns.keys() <= only_sqlite


def test_descriptions_name_columns_that_are_there(columns):
    for table in RECORDS:
        named = {
            *table.key, *table.refs, *table.times, *table.people, *table.omitted,
            *filter(None, (table.owner, table.session)),
        }  # fmt: skip
        assert named - columns[table.name] == set(), table.name
        assert "project_no" in columns[table.name]


def test_every_number_of_another_row_is_a_reference(columns):
    for table in RECORDS:
        numbers = {name for name in columns[table.name] if name.endswith("_no")} - {"project_no"}
        assert numbers <= set(table.refs), table.name


def test_a_row_comes_after_those_that_it_names():
    order = [table.name for table in TABLES]
    for table in RECORDS:
        for target in table.refs.values():
            for name in (target,) if isinstance(target, str) else target.values():
                assert order.index(name) <= order.index(table.name)
                assert not set(BY_NAME[name].key) & set(BY_NAME[name].refs)


def test_columns_of_json_are_columns_of_records(columns):
    assert set().union(*(columns[table.name] for table in RECORDS)) >= JSON_COLUMNS


def test_no_large_table_is_sorted_in_memory_to_be_exported(tmp_path):
    """Rows are read in the order of their numbers, however many there are."""
    with smara.open(tmp_path / "smara.db", embedder="off") as memory:
        database = memory.internals.database
        with database.snapshot() as session:
            reader = RowReader(database, session, memory.internals.scope)
            for name in ("messages", "observations", "memories", "memory_events", "task_events"):
                statement, values, _ = reader.statement(BY_NAME[name], Selection(viewer="ann"))
                plan = session.all(f"EXPLAIN QUERY PLAN {statement}", values)
                assert "TEMP B-TREE" not in str(plan), name


def test_every_table_has_a_rule_or_says_what_bounds_it():
    """A journal that a migration adds does not grow for ever because its author did not think."""
    for table in TABLES:
        owner = table.refs.get(table.owner or "")
        if table.keep is None:
            assert table.holds == "copies" or owner, table.name
        elif table.keep.kind:
            assert table.keep.at, table.name
        else:
            assert table.keep.why, table.name


def test_rules_name_columns_that_are_there(where):
    """Every kind can be measured, and has rows that are past a rule or none."""
    everything = "; ".join(f"{kind}_{unit}=9" for kind in KINDS for unit in ("days", "rows", "mib"))
    with smara.open(where, embedder="off", retention=everything) as memory:
        assert [each.kind for each in memory.retention.list()] == list(KINDS)
        assert memory.retention.plan() == {}


def test_finding_what_expires_does_not_take_longer_for_what_is_kept(tmp_path):
    """20 conversations are past their time; the steps of SQLite are counted."""
    few, many = (_steps(tmp_path / f"{kept}.db", kept) for kept in (40, 400))
    assert many < 1.5 * few


def _steps(path, kept: int) -> int:
    clock, steps = FakeClock(), []
    rules = "messages_days=30; tool_outputs_days=30; condensed_observations_days=30"
    with smara.open(path, embedder="off", retention=rules, clock=clock, project="shop") as memory:
        for number in range(20):
            memory.messages.add(thread_id=f"old{number}", role="tool", content="An old story.")
        clock.advance(90 * 86_400)
        for number in range(kept):
            message = memory.messages.add(thread_id=f"new{number}", role="tool", content="News.")
            if number % 10 == 0:
                text, evidence = f"Fact {number} is so", [f"message:{message.id}"]
                memory.memories.add(text, type="gotcha", evidence=evidence)
        with memory.internals.database.read() as session:
            session.connection.set_progress_handler(lambda: bool(steps.append(1)), 10)
        assert memory.retention.plan()["messages"].gone == 20
    return len(steps)
