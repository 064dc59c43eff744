"""A memory, and a toolbox for one agent's session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import smara
from smara.testing import FakeClock
from smara.tools import Toolbox, ToolContext
from tests.stores import new_file
from tests.unit.tools.asking import Asking


@pytest.fixture
def memory(tmp_path: Path, clock: FakeClock) -> Iterator[smara.Memory]:
    with smara.open(new_file(tmp_path / "smara.db"), clock=clock, durability="normal") as opened:
        yield opened


@pytest.fixture
def box(memory: smara.Memory) -> Toolbox:
    return Toolbox(memory, ToolContext(session_id="abc-123", thread_id="talk", actor="agent"))


@pytest.fixture
def ask(box: Toolbox) -> Asking:
    return Asking(box)
