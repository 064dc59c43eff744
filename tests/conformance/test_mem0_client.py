"""The real client of mem0 works unchanged; fetched by ``make conformance``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.conformance.mem0_client import archive
from tests.surfaces.http_server import http_site

ROOT = Path(__file__).parents[2]


def test_real_client_adds_searches_changes_and_deletes(tmp_path):
    wheel = archive(may_fetch=False)
    if wheel is None:
        pytest.skip("mem0's wheel is not here; make conformance fetches it")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(tmp_path / "package")
    package = str(tmp_path / "package")
    with http_site(str(tmp_path / "smara.db"), tmp_path, has_mem0=True) as site:
        done = subprocess.run(
            [sys.executable, "-m", "tests.conformance.mem0_client", package, site.url, site.key],
            cwd=ROOT,
            env={**os.environ, "MEM0_TELEMETRY": "false", "MEM0_DIR": str(tmp_path / "mem0")},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr[-2_000:]
    assert json.loads(done.stdout) == {
        "project": "default",
        "found": ["I am vegetarian and allergic to nuts"],
        "foreign": [],
        "listed": 1,
        "read": {"topic": "food"},
        "history": ["ADD", "UPDATE"],
        "users": ["alice", "bob"],
        "batch": "Successfully updated 1 memories",
        "deleted": True,
        "left": 0,
        "refused": "Error: A key is needed: Authorization: Bearer KEY.",
    }
