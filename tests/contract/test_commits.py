"""Commits as records, and the reasons behind a file's lines, on both databases."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from smara.errors import NotFoundError
from tests.contract.both import ON_BOTH

pytestmark = ON_BOTH

RETRY = (
    "MAX_ATTEMPTS = {}\n\n\ndef retry(call):\n    for _ in range(MAX_ATTEMPTS):\n        call()\n"
)
REASON = "fix: retry 7 times\n\nThe payment provider needs up to six tries at night."


class Repository:
    """A git repository in which commits are made by days."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.day = 0
        self.git("init", "-q", "-b", "main")

    def git(self, *words: str) -> str:
        self.day += 1
        when = f"2024-03-{self.day:02}T12:00:00Z"
        names = {"GIT_AUTHOR_NAME": "Ann", "GIT_AUTHOR_EMAIL": "ann@example.com"}
        names |= {"GIT_COMMITTER_NAME": "Ann", "GIT_COMMITTER_EMAIL": "ann@example.com"}
        days = {"GIT_AUTHOR_DATE": when, "GIT_COMMITTER_DATE": when}
        done = subprocess.run(
            ["git", "-C", str(self.root), *words],
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, **names, **days},
        )
        return done.stdout.strip()

    def commit(self, message: str, **files: str) -> str:
        for name, text in files.items():
            (self.root / name.replace("__", ".")).write_text(text, encoding="utf-8")
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path, monkeypatch) -> Repository:
    root = tmp_path / "shop"
    root.mkdir()
    monkeypatch.chdir(root)
    return Repository(root)


@pytest.fixture
def memory(place, repository):
    return place.open()


def undone(memory, path="retry.py"):
    """What was undone without a reason: the commit that set it, and the one that took it away."""
    return [
        (each.commit.subject, each.undone_by.subject)
        for each in memory.commits.why(path)
        if each.undone_by is not None
    ]


def test_every_commit_is_a_record_and_is_read_once(memory, repository):
    repository.commit("feat: retry", retry__py=RETRY.format(3))
    sha = repository.commit(REASON, retry__py=RETRY.format(7))
    assert memory.commits.update().added == 2
    assert memory.commits.update().added == 0
    found = memory.commits.get(sha[:7])
    assert found.subject == "fix: retry 7 times"
    assert found.reason == "The payment provider needs up to six tries at night."
    assert found.files == ("retry.py",)
    assert [each.subject for each in memory.commits.list()] == [
        "fix: retry 7 times",
        "feat: retry",
    ]


def test_search_finds_a_commit_by_its_words_and_its_functions(memory, repository):
    repository.commit("feat: begin", till__py="def put(coin):\n    pass\n")
    repository.commit(REASON, retry__py=RETRY.format(7))
    memory.commits.update()
    assert memory.commits.name_functions() == 2
    for query in ("payment provider tries at night", "retry"):
        hits = memory.search(query, sources=["commits"]).hits
        assert hits[0].source == "commit"
        assert hits[0].title == "fix: retry 7 times"


def test_a_change_without_a_reason_that_undoes_a_reasoned_one_is_pointed_out(memory, repository):
    repository.commit("feat: retry", retry__py=RETRY.format(3))
    repository.commit(REASON, retry__py=RETRY.format(7))
    repository.commit("docs: a page", page__md="words\n")
    repository.commit("perf: simplify", retry__py=RETRY.format(10))
    memory.commits.update()
    assert undone(memory) == [("fix: retry 7 times", "perf: simplify")]


@pytest.mark.parametrize(
    "later",
    [
        "fix: retry ten times\n\nMeasured in May: nine tries were needed in one of 900 payments.",
        "perf: MAX_ATTEMPTS is no longer 7",
    ],
)
def test_a_change_that_says_why_or_what_undoes_nothing(memory, repository, later):
    repository.commit(REASON, retry__py=RETRY.format(7))
    repository.commit(later, retry__py=RETRY.format(10))
    memory.commits.update()
    assert undone(memory) == []


def test_lines_that_were_moved_or_set_in_again_are_not_undone(memory, repository):
    repository.commit(REASON, retry__py=RETRY.format(7))
    body = RETRY.format(7)
    repository.commit("refactor: move", retry__py="import tries\n", tries__py=body)
    repository.commit("style: format", tries__py=body.replace("    ", "  "))
    memory.commits.update()
    assert undone(memory) == []
    assert undone(memory, "tries.py") == []


def test_a_file_is_followed_over_its_rename(memory, repository):
    repository.commit(REASON, retry__py=RETRY.format(7))
    repository.git("mv", "retry.py", "again.py")
    repository.commit("refactor: rename")
    repository.commit("perf: simplify", again__py=RETRY.format(10))
    memory.commits.update()
    assert undone(memory, "again.py") == [("fix: retry 7 times", "perf: simplify")]


def test_branches_side_by_side_undo_nothing(memory, repository):
    repository.commit("feat: begin", retry__py="A = 1\n\n\n\n\n\n\nB = 1\n")
    repository.git("checkout", "-q", "-b", "topic")
    repository.commit(REASON, retry__py="A = 7  # tries\n\n\n\n\n\n\nB = 1\n")
    repository.git("checkout", "-q", "main")
    repository.commit("feat: more", retry__py="A = 1\n\n\n\n\n\n\nB = 2\n")
    repository.git("merge", "-q", "--no-edit", "topic")
    memory.commits.update()
    assert undone(memory) == []
    assert [each.lines for each in memory.commits.why("retry.py")] == [(1,)]


def test_commits_of_a_rewritten_history_are_dropped(memory, repository):
    repository.commit("feat: retry", retry__py=RETRY.format(3))
    old = repository.commit("feat: tries", retry__py=RETRY.format(7))
    memory.commits.update()
    repository.git("commit", "-q", "--amend", "-m", "feat: seven tries")
    report = memory.commits.update()
    assert (report.added, report.dropped, report.total) == (1, 1, 2)
    with pytest.raises(NotFoundError):
        memory.commits.get(old)


def test_secrets_in_a_message_are_not_stored(memory, repository):
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    sha = repository.commit(f"fix: use {token}\n\nThe key {token} is the one of staging.")
    memory.commits.update()
    assert token not in memory.commits.get(sha).message


def test_another_project_sees_none_of_it(memory, repository, place):
    sha = repository.commit(REASON, retry__py=RETRY.format(7))
    memory.commits.update()
    other = place.open(project="elsewhere")
    assert other.commits.list() == []
    assert other.search("payment provider", sources=["commits"]).hits == ()
    with pytest.raises(NotFoundError):
        other.commits.get(sha)


def test_the_index_is_rebuilt_with_the_commits(memory, repository):
    repository.commit(REASON, retry__py=RETRY.format(7))
    memory.commits.update()
    memory.internals.index.rebuild()
    assert memory.search("payment provider tries", sources=["commits"]).hits
    assert memory.internals.index.problems(deep=True) == []


def test_outside_a_repository_there_is_nothing_to_read(place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    memory = place.open()
    assert memory.commits.update().total == 0
    assert memory.commits.why("a.py") == []
