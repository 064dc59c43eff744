"""Both databases, migrated and empty."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from smara.config import Settings
from smara.database.database import Database
from smara.memory import open_database


@pytest.fixture
def database(where: str) -> Iterator[Database]:
    """An open database with its tables."""
    found = open_database(Settings(db=where, durability="normal", busy_timeout_seconds=5))
    yield found
    found.close()
