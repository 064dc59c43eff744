"""A long run that was interrupted goes on where it was."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TESTS = """
import os, pytest

@pytest.fixture
def taken_down(request):
    yield
    assert request.node.callspec.params["n"] != 3 or "WELL" in os.environ

@pytest.mark.parametrize("n", range(5))
def test_it(n, taken_down):
    assert n != 2 or "WELL" in os.environ
"""


@pytest.mark.parametrize("jobs", ["0", "2"])
def test_what_has_passed_on_a_commit_is_left_out_until_something_changes(tmp_path, jobs):
    (tmp_path / "test_some.py").write_text(TESTS)
    (tmp_path / ".gitignore").write_text(".faults\n__pycache__\n.pytest_cache\n")
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@localhost"]
    for call in (["init", "-q"], ["add", "."], ["commit", "-qm", "begin"]):
        subprocess.run([*git, *call], cwd=tmp_path, check=True)

    def run(*words: str, expected: str = "", **variables: str) -> str:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
        options = ["-p", "tests.resume", "-n", jobs, "--rootdir", str(tmp_path), *words]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *options],
            cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert expected in ("", str(done.returncode))
        return done.stdout

    run("-k", "nothing_is_called_so", expected="5")
    assert "1 failed, 4 passed, 1 error" in run()
    assert "3 tests passed before" in (again := run())
    assert "1 failed, 1 passed" in again
    assert "1 error" in again
    assert "2 passed" in run(WELL="1")
    assert "5 tests passed before" in run(WELL="1", expected="0")
    assert "1 failed, 4 passed, 1 error" in run(SMARA_TEST_POOLER="1"), "another kind of run"
    (tmp_path / "new.py").write_text("")
    assert "1 failed, 4 passed, 1 error" in run(), "something is changed"
