"""Put our session in place of ``SQLiteSession`` and of the session that lives in a list."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import agents
import agents.memory
import agents.memory.sqlite_session

import smara
from smara.adapters.sdk.openai_agents import SmaraSession
from smara.frameworks.models import NewEntry

_OPEN: dict[str, smara.Memory] = {}
_FOLDER = tempfile.mkdtemp(prefix="smara-openai-agents-")


def _memory(place: object) -> smara.Memory:
    """Return the memory of a file: a store of its own, or a project of the server."""
    name = str(place)
    if name not in _OPEN:
        server = os.environ.get("CONFORMANCE_STORE")
        address = server or os.path.join(_FOLDER, f"{len(_OPEN)}.db")
        first = next(iter(_OPEN.values())) if server and _OPEN else None
        memory = first or smara.open(address, token_model="estimate")
        _OPEN[name] = memory.in_project(f"p{len(_OPEN)}")
    return _OPEN[name]


class SQLiteSession(SmaraSession):
    """Ours, made as theirs is: in a file, or in memory if none is named."""

    def __init__(self, session_id: str, db_path: str | Path = ":memory:", **given: Any) -> None:
        place = f"{id(self)} {session_id}" if str(db_path) == ":memory:" else db_path
        super().__init__(session_id, _memory(place), **given)


class SimpleListSession(SmaraSession):
    """Ours, made as the session of their tests is: with a history."""

    def __init__(self, session_id: str = "test", history: Iterable[Any] | None = None) -> None:
        super().__init__(session_id, _memory(f"list {id(self)} {len(_OPEN)}"))
        self._ignore_ids_for_matching = False
        if history:
            entries = [NewEntry(item, may_repeat=True) for item in history]
            self._streams.append(session_id, entries, thread=self._thread)


agents.SQLiteSession = agents.memory.SQLiteSession = SQLiteSession  # type: ignore[misc]
agents.memory.sqlite_session.SQLiteSession = SQLiteSession  # type: ignore[misc]


def pytest_collection(session: Any) -> None:
    """Replace the list before any test imports it; it is in the tests' own folder."""
    from tests.utils import simple_session

    simple_session.SimpleListSession = SimpleListSession
