"""``python -m tests.conformance [NAME …]``: run all suites, or those whose names contain a word."""

from __future__ import annotations

import sys

from tests import postgres
from tests.conformance.run import PAGE, Run, page, run_ours, run_suite, servers
from tests.conformance.suites import all_suites


def main(names: list[str]) -> int:
    """Run suites, write the page, and return the exit code."""
    every = all_suites()
    suites = [
        suite for suite in every if not names or any(name in suite.name.lower() for name in names)
    ]
    without = postgres.missing()
    runs: list[Run] = []
    failures: list[str] = []
    with servers(database for suite in suites for database in suite.databases):
        for suite in suites:
            for database in suite.databases:
                if database == "postgres" and without:
                    _say(f"{suite.name} on postgres: not run: {without}")
                    continue
                runs.append(run := run_suite(suite, database))
                _say(run.row)
                for problem in run.problems:
                    _say(f"  {problem}")
            if failure := run_ours(suite):
                failures.append(failure)
                _say(f"{suite.name}: our own tests fail\n{failure}")
    is_whole = bool(runs) and not failures and not any(run.problems for run in runs)
    if is_whole:
        before = PAGE.read_text("utf-8") if PAGE.exists() else ""
        PAGE.write_text(page(every, runs, before), "utf-8")
        _say(f"wrote {PAGE}")
    return 0 if is_whole else 1


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main([name.lower() for name in sys.argv[1:]]))
