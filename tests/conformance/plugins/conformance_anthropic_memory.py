"""Put our memory tool in place of the one that keeps files on a disk.

Where a test looks at the disk, our files are written there first: ``base_path`` and ``memory_root``
are copies. What a test puts on the disk itself does not reach us.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
from pathlib import Path
from typing import Any

import anthropic.lib.tools._beta_builtin_memory_tool as theirs

import smara
from smara.adapters.sdk.anthropic_memory import MemoryFiles, SmaraAsyncMemoryTool, SmaraMemoryTool


def _memory() -> smara.Memory:
    """Return an empty memory: a file, or a project of the server."""
    place = os.environ["CONFORMANCE_STORE"] or os.path.join(tempfile.mkdtemp(), "memory.db")
    return smara.open(place, project=uuid.uuid4().hex, token_model="estimate")


def _copy(tree: MemoryFiles, folder: str) -> Path:
    root = Path(folder)
    shutil.rmtree(root / "memories", ignore_errors=True)
    (root / "memories").mkdir(parents=True)
    for path, text in tree.files().items():
        place = root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text.encode())
    return root


class StandIn(SmaraMemoryTool):
    def __init__(self, base_path: str = "./memory") -> None:
        super().__init__(_memory())
        self._folder = base_path

    @property
    def base_path(self) -> Path:
        return _copy(self.tree, self._folder)

    @property
    def memory_root(self) -> Path:
        return self.base_path / "memories"


class AsyncStandIn(SmaraAsyncMemoryTool):
    def __init__(self, base_path: str = "./memory") -> None:
        super().__init__(_memory())
        self._folder = base_path

    @property
    def base_path(self) -> Path:
        return _copy(self.tree, self._folder)

    @property
    def memory_root(self) -> Any:
        return theirs.AsyncPath(self.base_path / "memories")


theirs.BetaLocalFilesystemMemoryTool = StandIn  # type: ignore[misc, assignment]
theirs.BetaAsyncLocalFilesystemMemoryTool = AsyncStandIn  # type: ignore[misc, assignment]
