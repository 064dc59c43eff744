"""Stores of Mastra that are damaged anywhere: a clear error or what can be read, and never anything
else.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import smara
from smara.adapters.mastra import import_mastra
from smara.errors import SmaraError
from tests import mastra_stores
from tests.faults.sizes import IS_LARGE, SEED

ROUNDS = 400 if IS_LARGE else 40
_TABLES = ("mastra_threads", "mastra_messages", "mastra_resources", "mastra_observational_memory")


@pytest.fixture
def memory(tmp_path: Path) -> smara.Memory:
    with smara.open(
        tmp_path / "smara.db", embedder="off", durability="normal", token_model="estimate"
    ) as opened:
        yield opened


def _is_accounted_for(memory: smara.Memory, path: Path) -> bool:
    try:
        report = import_mastra(memory, path)
    except SmaraError as error:
        return bool(str(error))
    left = sum(report.left_out.values())
    assert (
        report.messages == report.stored + report.repeated + len(report.refused) + left
        or report.refused
    )
    return True


def test_a_file_that_is_damaged_or_cut_off_anywhere_gives_an_error_or_what_can_be_read(
    memory, tmp_path
):
    numbers = random.Random(SEED)
    whole = mastra_stores.new_file(tmp_path / "whole.db").read_bytes()
    broken = tmp_path / "broken.db"
    for _ in range(ROUNDS):
        data = bytearray(whole)
        if numbers.random() < 0.3:
            del data[numbers.randrange(len(data)) :]
        for _ in range(numbers.randrange(1, 40)):
            if data:
                data[numbers.randrange(len(data))] = numbers.randrange(256)
        if numbers.random() < 0.4 and len(data) > 8192:
            start = numbers.randrange(100, len(data) - 4096)
            data[start : start + 4096] = bytes(4096)
        broken.write_bytes(data)
        assert _is_accounted_for(memory, broken)


def test_tables_and_columns_that_are_missing_or_hold_anything_are_told_and_left_out(
    memory, tmp_path
):
    numbers = random.Random(f"{SEED} columns")
    odd = [
        None,
        "",
        "{",
        "[]",
        '{"parts": 7}',
        '{"format": 2, "parts": [1, null, {"type": 3}]}',
        12,
        1e300,
        b"\xff\x00",
        "\ufffd",
        "x" * 70_000,
    ]
    for number in range(ROUNDS):
        path = mastra_stores.new_file(tmp_path / f"odd-{number}.db")
        table = numbers.choice(_TABLES)
        if numbers.random() < 0.3:
            mastra_stores.change(path, f"DROP TABLE {table}")
        else:
            row = numbers.choice(mastra_stores.ROWS[table])
            column = numbers.choice([name for name in row if name != "id"])
            if numbers.random() < 0.4:
                mastra_stores.change(path, f'ALTER TABLE {table} DROP COLUMN "{column}"')
            else:
                mastra_stores.change(path, f"ALTER TABLE {table} ADD COLUMN other")
                statement = f'UPDATE {table} SET other = ?1, "{column}" = coalesce(?1, "{column}")'
                mastra_stores.change(path, statement, (numbers.choice(odd),))
        assert _is_accounted_for(memory, path)
        path.unlink()
