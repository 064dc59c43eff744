"""Both databases, migrated and empty."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from smara.config import Settings
from smara.database.database import Database
from smara.database.migrate import migrate
from smara.memory import open_database
from smara.testing import FakeClock
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
def database(address: str) -> Iterator[Database]:
    """An open database with its tables."""
    found = open_database(Settings(db=address, durability="normal", busy_timeout_seconds=5))
    migrate(found, FakeClock())
    yield found
    found.close()
