"""Put `SmaraStorage` in place of CrewAI's LanceDB storage.

Their tests name a folder; a second storage of the same folder must see what the first stored. On
PostgreSQL each folder is a project of its own instead.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path
from typing import Any

import crewai.memory.storage.lancedb_storage as theirs

import smara
from smara.adapters.sdk.crewai import SmaraStorage


class StandIn(SmaraStorage):
    def __init__(self, path: str | Path | None = None, **unused: Any) -> None:
        del unused  # the size of vectors is that of the first one
        folder, url = str(path or tempfile.mkdtemp()), os.environ["CONFORMANCE_STORE"]
        if not url:
            os.makedirs(folder, exist_ok=True)
        project = hashlib.sha256(folder.encode()).hexdigest()[:32]
        place = url or os.path.join(folder, "memory.db")
        super().__init__(smara.open(place, project=project, durability="normal", embedder="off"))


theirs.LanceDBStorage = StandIn
