"""The history of a repository becomes memories: with commit and quotation, tainted, newest first,
once.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from smara.adapters.git_history import import_history, warm_up
from smara.errors import InvalidInputError
from tests.contract.both import EACH_DATABASE

pytestmark = EACH_DATABASE

WHY = "Text mode breaks on Windows, because line ends are changed there."
TOKEN = "ghp_0123456789abcdefghijklmnopqrstuvwxyzAB"


class Repository:
    """A git repository with commits at given times."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir()
        self._git("init", "-q", "-b", "main")
        self._days = 0

    def commit(self, message: str, *files: str, by: str = "ann@example.org") -> str:
        for name in files:
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a", encoding="utf-8") as file:
                file.write(f"{message}\n{name}\n")
        self._days += 1
        self._git("add", "-A")
        self._git(
            "-c",
            f"user.email={by}",
            "-c",
            "user.name=Ann",
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            message,
            date=f"2026-01-{self._days:02}T12:00:00Z",
        )
        return self._git("rev-parse", "HEAD").strip()

    def config(self, name: str, value: str) -> None:
        self._git("config", name, value)

    def _git(self, *arguments: str, date: str = "") -> str:
        environment = {
            **os.environ,
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_SYSTEM": os.devnull,
        }
        if date:
            environment |= {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.root,
            capture_output=True,
            check=True,
            text=True,
            env=environment,
        )
        return done.stdout


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository(tmp_path / "shop")
    made.commit("Begin", "src/till.py", "docs/page.md")
    return made


@pytest.fixture
def bring(memory: Any, repository: Repository) -> Callable[..., Any]:
    return lambda **given: import_history(memory, repository.root, **given)


def test_a_commit_that_says_why_becomes_a_memory_that_cites_it(memory, repository, bring):
    sha = repository.commit(
        f"Open the file in binary mode\n\n{WHY} The key was {TOKEN}.", "src/till.py"
    )
    report = bring()
    assert report.counts == {"added": 1}
    (kept,) = memory.memories.list()
    assert (kept.type, kept.source, kept.commit, kept.files) == (
        "gotcha",
        "commit_auto",
        sha,
        ("src/till.py",),
    )
    assert kept.content == f"Open the file in binary mode: {WHY}"
    assert [(each.commit, WHY in (each.quote or "")) for each in kept.evidence] == [(sha, True)]
    assert TOKEN not in repr(kept)
    assert (kept.is_verified, kept.needs_review) == (False, True)


def test_what_others_wrote_is_tainted_as_theirs(memory, repository, bring):
    repository.config("user.email", "ann@example.org")
    repository.commit(f"Open the file in binary mode\n\n{WHY}", "src/till.py")
    repository.commit(
        "Close the till at night\n\nIt must be closed by then, because nobody closes it later and "
        "a handle leaks.",
        "src/till.py",
        by="bob@example.org",
    )
    bring()
    tainted = {each.content.split(" ")[0]: "other" in each.taint for each in memory.memories.list()}
    assert tainted == {"Open": False, "Close": True}


def test_reverts_and_chains_of_fixes_are_told(memory, repository, bring):
    repository.commit("Round prices down", "src/price.py")
    for message in (
        "Fix rounding of small prices",
        "Fix rounding of small prices in euros",
        "Fix rounding of prices",
    ):
        repository.commit(message, "src/price.py")
    for number in range(12):
        repository.commit(f"Add thing {number}", f"src/thing{number}.py")
    repository.commit(
        'Revert "Share the cache"\n\nTwo workers wrote to it at once, which led to corrupted '
        "pages.",
        "src/price.py",
    )
    bring()
    kept = {each.type: each for each in memory.memories.list()}
    assert set(kept) == {"gotcha", "dead_end"}
    assert kept["dead_end"].data["approach_tried"] == "Share the cache"
    assert kept["gotcha"].content.startswith("`src/price.py` had to be fixed 3 times within 3 days")
    assert len(kept["gotcha"].evidence) == 3


def test_a_chain_that_goes_on_takes_the_place_of_the_shorter_one(memory, repository, bring):
    for number in range(12):
        repository.commit(f"Add thing {number}", f"src/thing{number}.py")
    for message in (
        "Fix rounding of small prices",
        "Fix rounding of small prices in euros",
        "Fix rounding of prices",
    ):
        repository.commit(message, "src/price.py")
    bring()
    repository.commit("Fix rounding of small prices in yen", "src/price.py")
    assert bring().counts == {"added": 1}
    (kept,) = memory.memories.list()
    assert kept.content.startswith("`src/price.py` had to be fixed 4 times")
    assert bring().counts == {"known": 1}
    memory.memories.reject(kept.id, "no")
    repository.commit("Fix rounding of small prices in won", "src/price.py")
    assert bring().counts == {"known": 1}


def test_importing_again_adds_nothing_and_new_commits_are_taken(memory, repository, bring):
    repository.commit(f"Open the file in binary mode\n\n{WHY}", "src/till.py")
    bring()
    before = [(each, memory.memories.history(each.id)) for each in memory.memories.export()]
    again = bring()
    assert again.counts == {"known": 1}
    assert [(each, memory.memories.history(each.id)) for each in memory.memories.export()] == before
    repository.commit(
        "Lock the till\n\nTwo clerks must not open it at once, as it doesn't count twice.",
        "src/till.py",
    )
    assert bring().counts == {"added": 1, "known": 1}


def test_what_a_person_put_aside_does_not_come_back(memory, repository, bring):
    repository.commit(f"Open the file in binary mode\n\n{WHY}", "src/till.py")
    bring()
    (kept,) = memory.memories.list()
    memory.memories.reject(kept.id, "no")
    assert bring().counts == {"known": 1}
    assert list(memory.memories.list()) == []


def test_a_commit_whose_lines_were_changed_since_says_nothing_that_holds(repository, bring):
    repository.commit(f"Open the file in binary mode\n\n{WHY}", "src/till.py")
    (repository.root / "src/till.py").write_text("TILL = 1\n")
    repository.commit("Write the till again", "docs/page.md")
    report = bring()
    assert report.changes == []
    assert report.left_out == {"most of its lines were changed since": 1}


def test_the_newest_come_first_and_no_more_than_wanted(memory, repository, bring):
    for number in range(6):
        repository.commit(
            f"Guard the drawer number {number}\n\nDrawer {number} must not be forced: wood swells "
            f"{number} mm.",
            "src/till.py",
        )
    report = bring(limit=2)
    assert [each.content.split(":")[0][-1] for each in report.changes] == ["5", "4"]
    assert report.cut == 4
    assert bring(limit=2).counts == {"known": 2}
    assert bring(limit=2, most_commits=1).counts == {"known": 1}
    assert not bring(most_commits=2).is_all


def test_a_dry_run_says_what_would_come_and_stores_nothing(memory, repository, bring):
    repository.commit(f"Open the file in binary mode\n\n{WHY}", "src/till.py")
    assert bring(is_dry_run=True).counts == {"added": 1}
    assert list(memory.memories.list()) == []


def test_commits_about_pages_tests_and_files_that_are_gone_are_left_out(memory, repository, bring):
    repository.commit(f"Say how to open it\n\n{WHY}", "docs/page.md")
    repository.commit(f"Open the box in binary mode\n\n{WHY}", "src/box.py")
    (repository.root / "src/box.py").unlink()
    repository.commit("Drop the box")
    report = bring()
    assert report.counts == {}
    assert dict(report.left_out) == {
        "it changed only tests, pages or settings": 1,
        "its files are not there any more": 1,
    }


def test_messages_in_any_bytes_and_files_of_any_name_are_read(memory, repository, bring):
    repository.config("i18n.commitEncoding", "latin-1")
    repository.commit(f"Öffne die Datei binär \x1f mit Zeichen\n\n{WHY}", "src/tänze\nund mehr.py")
    assert bring().counts == {"added": 1}


def test_a_folder_without_history_is_refused_with_what_to_do(memory, tmp_path):
    with pytest.raises(InvalidInputError, match="no git repository with commits"):
        import_history(memory, tmp_path)


def test_a_new_project_starts_warm_with_what_changes_together(memory, repository):
    for number in range(3):
        repository.commit(f"Change both {number}", "src/till.py", "src/drawer.py")
    report = import_history(memory, repository.root)
    warm_up(memory, report)
    assert report.warmed_commits == 4
    assert [each.path for each in memory.code.asking(repository.root).cochange("src/till.py")] == [
        "src/drawer.py"
    ]
    warm_up(memory, report)
    assert report.warmed_commits == 0


def test_a_bare_repository_gives_memories_but_no_files_that_change_together(
    memory, repository, tmp_path
):
    repository.commit(f"Open the file in binary mode\n\n{WHY}", "src/till.py")
    bare = tmp_path / "bare.git"
    subprocess.run(
        ["git", "clone", "-q", "--bare", str(repository.root), str(bare)],
        check=True,
        capture_output=True,
    )
    report = import_history(memory, bare)
    warm_up(memory, report, code=True)
    assert (report.counts, report.warmed_commits) == ({"added": 1}, None)


def test_a_dry_run_indexes_nothing_even_when_asked(memory, repository, bring):
    warm_up(memory, bring(is_dry_run=True), code=True)
    assert memory.code.status(repository.root).state == "none"
