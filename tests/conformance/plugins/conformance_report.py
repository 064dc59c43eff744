"""Write what came of each case of a foreign test run, as lines of JSON.

A plugin of pytest that runs in the process of the foreign tests. It stands outside every package:
the foreign tests are a package called ``tests`` too.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


def _write(case: str, outcome: str, message: str) -> None:
    with open(Path(os.environ["CONFORMANCE_REPORT"]), "a", encoding="utf-8") as report:
        report.write(json.dumps({"case": case, "outcome": outcome, "message": message}) + "\n")


def pytest_runtest_logreport(report: Any) -> None:
    """Write the outcome of a test once: of its call, or of what kept it from being called."""
    if report.when == "call" or report.outcome != "passed":
        _write(report.nodeid, report.outcome, _last_line(report))


def pytest_collectreport(report: Any) -> None:
    """Write that a file could not be read."""
    if report.outcome == "failed":
        _write(report.nodeid, "failed", _last_line(report))


def _last_line(report: Any) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash is not None else str(report.longrepr or "")
    return " ".join(text.split())[:300]
