"""A rebuilt index has the tables that the migrations make: their definitions stand in two
places.
"""

from __future__ import annotations

import re

import smara
from tests.migrations.dump import schema_of


def objects(memory: smara.Memory) -> list[tuple[str, ...]]:
    """The schema without what carries no meaning: white space, and quotes around plain names."""
    found = schema_of(memory._rooms.database).get("objects", schema_of(memory._rooms.database))
    return [
        tuple(re.sub(r"\s+", "", str(field)).replace('"', "") for field in row) for row in found
    ]


def test_a_rebuilt_store_has_the_schema_of_a_fresh_one(address):
    with smara.open(address) as memory:
        memory.messages.add(thread_id="t", role="user", content="handle_it in src/auth.ts")
        fresh = objects(memory)
        memory.internals.index.rebuild()
        assert objects(memory) == fresh
