"""The harness that runs frameworks' own tests, and the part of it that needs no download."""

from __future__ import annotations

import hashlib
import io
import tarfile
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.conformance.run import PAGE, Run, page, row_start, run_suite
from tests.conformance.suite import CaseResult, Source, Suite, judge
from tests.conformance.suites import all_suites

SUITES = all_suites()
CHECKS = [
    pytest.param(suite, database, id=f"{suite.name}-{database}",
                 marks=[pytest.mark.postgres] if database == "postgres" else [])
    for suite in SUITES if suite.check is not None for database in suite.databases
]  # fmt: skip
THEIRS = {
    "tests/__init__.py": "",
    "tests/stand_in.py": "import fractions\nclass Ours: pass\nfractions.Fraction = Ours\n",
    "tests/test_seam.py": """
import pytest
from fractions import Fraction

def test_ours_is_in_place():
    assert Fraction.__name__ == "Ours"

async def test_a_coroutine():
    assert Fraction.__name__ == "Ours"

@pytest.mark.parametrize("number", [1, 2])
def test_internals(number):
    assert Fraction(number) == number
""",
    "fractions.py": "raise SystemExit('only the tests are unpacked')",
}
INTERNALS = {"tests/test_seam.py::test_internals": "looks inside"}


def theirs(folder: Path, **given: object) -> Suite:
    """Put an invented source package where fetched ones are, and return a suite of it."""
    place = folder / f"pytest-{version('pytest')}"
    place.mkdir()
    archive = place / "pytest.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        for name, text in THEIRS.items():
            member = tarfile.TarInfo(f"pytest-1/{name}")
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text.encode()))
    sha256 = hashlib.sha256(archive.read_bytes()).hexdigest()
    source = Source(sha256, ("tests/test_seam.py",), plugin="tests.stand_in")
    wanted = {"version": version("pytest"), "source": source, "not_applicable": INTERNALS, **given}
    return Suite("Theirs", "pytest", "`ours`", **wanted)  # type: ignore[arg-type]


def test_our_class_stands_in_for_theirs_in_their_tests(tmp_path: Path) -> None:
    run = run_suite(theirs(tmp_path), "sqlite", tmp_path)

    assert [(each.case.split("::")[1], each.outcome) for each in run.results] == [
        ("test_ours_is_in_place", "passed"),
        ("test_a_coroutine", "passed"),
        ("test_internals[1]", "failed"),
        ("test_internals[2]", "failed"),
    ]
    assert run.problems == []
    assert run.row.endswith("| sqlite | 4 | 2 | 2 |")


def test_a_case_outside_the_list_that_fails_is_a_problem(tmp_path: Path) -> None:
    run = run_suite(theirs(tmp_path, not_applicable={}), "sqlite", tmp_path)

    assert [problem.split(" ")[:2] for problem in run.problems] == [
        ["tests/test_seam.py::test_internals[1]", "failed:"],
        ["tests/test_seam.py::test_internals[2]", "failed:"],
    ]


def test_a_listed_case_that_passes_is_a_problem(tmp_path: Path) -> None:
    listed = {**INTERNALS, "tests/test_seam.py::test_ours_is_in_place": "a guess"}
    run = run_suite(theirs(tmp_path, not_applicable=listed), "sqlite", tmp_path)

    assert run.problems == [
        "tests/test_seam.py::test_ours_is_in_place passes, though it is listed as not applicable"
    ]


def test_a_listed_case_that_is_gone_and_a_run_without_cases_are_problems() -> None:
    suite = Suite("Gone", "pytest", "`ours`", check=lambda _: (), not_applicable={"old": "why"})

    assert judge(suite, [CaseResult("new", "passed")]) == ["old is listed, but does not exist"]
    assert judge(suite, [])[0] == "no case was run"


def test_a_case_that_their_suite_skips_is_not_counted_as_passed() -> None:
    suite = Suite("Skips", "pytest", "`ours`", check=lambda _: ())

    assert judge(suite, [CaseResult("one", "skipped", "no network")]) == ["one skipped: no network"]


def test_an_archive_with_another_hash_is_refused_before_it_is_run(tmp_path: Path) -> None:
    suite = theirs(tmp_path)
    archive = next(tmp_path.rglob("*.tar.gz"))
    archive.write_bytes(archive.read_bytes() + b"\0")

    with pytest.raises(RuntimeError, match="SHA-256"):
        run_suite(suite, "sqlite", tmp_path)


def test_tests_of_another_version_than_the_installed_one_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"tests are of pytest 0\.1"):
        run_suite(theirs(tmp_path, version="0.1"), "sqlite", tmp_path)


def test_the_page_keeps_the_lines_of_suites_that_were_not_run() -> None:
    first, second = (
        Suite(name, "pytest", "`ours`", check=lambda _: (), databases=("sqlite",))
        for name in ("First", "Second")
    )
    both = [Run(suite, "sqlite", (CaseResult("one", "passed"),)) for suite in (first, second)]
    before = page([first, second], both)

    again = page([first, second], [Run(first, "sqlite", (CaseResult("1", "passed"),) * 2)], before)

    assert f"{row_start(first, 'sqlite')} 2 | 2 | 0 |" in again
    assert f"{row_start(second, 'sqlite')} 1 | 1 | 0 |" in again


@pytest.mark.parametrize(("suite", "database"), CHECKS)
def test_an_adapter_passes_the_suite_of_the_installed_package(suite: Suite, database: str) -> None:
    assert run_suite(suite, database).problems == []


def test_the_page_shows_every_suite_at_its_version_with_its_reasons() -> None:
    text = PAGE.read_text("utf-8")

    for suite in SUITES:
        for database in suite.databases:
            assert row_start(suite, database) in text, "run make conformance"
    assert page(SUITES, [], text) == text
