"""``pytest -p tests.resume``: a long run that was interrupted goes on where it was.

What has passed is written down by commit, in .faults; on the same commit, with nothing changed, it
is not run again. A change of anything begins a run from its start; so does `make faults` once all
have passed, since what fails now and then is found by repetition.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

FOLDER = ".faults"
_PASSED = "SMARA_PASSED_BEFORE"
"""Names a copy of the list as it was at the start: all workers must leave out the same tests."""
_KEYS = ("SMARA_FAULTS", "SMARA_TEST_POOLER")


def _list_of(root: Path) -> Path | None:
    """The list of this commit and kind of run; None where something is changed."""
    state = subprocess.run(
        ["git", "status", "--porcelain"], cwd=root, capture_output=True, text=True, check=False
    )
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=root, capture_output=True, text=True, check=False
    )
    if state.returncode or state.stdout.strip() or commit.returncode:
        return None
    kind = "-".join(os.environ.get(key, "") for key in _KEYS)
    return root / FOLDER / f"{commit.stdout.strip()[:12]}-{kind}.txt"


class _Record:
    """Write down each test that passed: its call and what takes it down."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._called: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed and not hasattr(report, "wasxfail"):
            self._called.add(report.nodeid)
        elif report.when == "teardown" and report.passed and report.nodeid in self._called:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(f"{report.nodeid}\n")


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput"):
        return
    os.environ.pop(_PASSED, None)
    if (path := _list_of(config.rootpath)) is None:
        return
    path.parent.mkdir(exist_ok=True)
    before = path.with_suffix(".before")
    before.write_text(path.read_text(encoding="utf-8") if path.exists() else "", encoding="utf-8")
    os.environ[_PASSED] = str(before)
    config.pluginmanager.register(_Record(path))


def pytest_report_header(config: pytest.Config) -> list[str]:
    before = os.environ.get(_PASSED)
    if before is None:
        return ["resume: something is changed, so every test is run and none is noted"]
    count = len(Path(before).read_text(encoding="utf-8").splitlines())
    return [f"resume: {count} tests passed before on this commit, and are not run again"]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    before = Path(os.environ.get(_PASSED, os.devnull))
    passed = set(before.read_text(encoding="utf-8").splitlines())
    config.hook.pytest_deselected(items=[each for each in items if each.nodeid in passed])
    items[:] = [each for each in items if each.nodeid not in passed]


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    before = Path(os.environ.get(_PASSED, os.devnull))
    is_empty = session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED
    if is_empty and before.read_text(encoding="utf-8"):
        session.exitstatus = pytest.ExitCode.OK  # all have passed before
