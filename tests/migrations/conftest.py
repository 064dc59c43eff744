"""Both databases, empty: the migrations must do the same to each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from smara.database.database import Database
from tests import postgres


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Where an empty database is, of each kind."""
    if request.param == "sqlite":
        yield str(tmp_path / "smara.db")
        return
    reason = postgres.missing()
    if reason:
        pytest.skip(reason)
    with postgres.fresh_schema() as url:
        yield url


@pytest.fixture
def open_database(request: pytest.FixtureRequest) -> Iterator[Callable[[str], Database]]:
    """Opens a database without migrating it; all are closed at the end."""
    from smara.config import Settings
    from smara.memory import open_database as open_it

    opened: list[Any] = []

    def start(where: str) -> Database:
        opened.append(open_it(Settings(db=where, durability="normal")))
        return opened[-1]

    yield start
    for database in opened:
        database.close()
