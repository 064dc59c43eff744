"""What became of files, by the folder and by git; and what nobody can say."""

from __future__ import annotations

import os
import subprocess

import pytest

from smara.codegraph.git import GitFiles
from smara.links.provenance import TreeFiles

DAY = 86_400_000
WHO = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]


def git(root, *arguments, at="2026-01-01T00:00:00Z"):
    dates = {"GIT_AUTHOR_DATE": at, "GIT_COMMITTER_DATE": at}
    done = subprocess.run(
        ["git", *WHO, *arguments],
        cwd=root,
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, **dates},
    )
    return done.stdout.strip()


@pytest.fixture
def root(tmp_path):
    git(tmp_path, "init", "-q", "-b", "main")
    for name in ("kept.py", "gone.py", "old name.py"):
        (tmp_path / name).write_text("".join(f"{name} = {number}\n" for number in range(20)))
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "first")
    return tmp_path


@pytest.fixture
def files(root):
    return TreeFiles(lambda: str(root))


def test_a_file_exists_is_gone_or_was_never_here(files, root):
    (root / "gone.py").unlink()
    assert (files.exists("kept.py"), files.exists("gone.py"), files.exists("never.py")) == (
        True,
        False,
        None,
    )


def test_whether_a_file_changed_since_a_commit_is_seen_in_the_folder(files, root):
    first = git(root, "rev-parse", "HEAD")
    assert files.changed_since("kept.py", first) is False
    (root / "kept.py").write_text("other = 1\n")
    assert TreeFiles(lambda: str(root)).changed_since("kept.py", first[:10]) is True
    assert files.changed_since("kept.py", "deadbeef00") is None


def test_a_file_was_written_when_a_commit_wrote_it_not_when_it_was_checked_out(files, root):
    os.utime(root / "kept.py")
    assert files.modified_at("kept.py") == 1_767_225_600_000
    assert files.modified_at("never.py") is None


def test_outside_of_a_repository_the_time_of_the_file_counts(tmp_path):
    (tmp_path / "a.py").write_text("x = 1\n")
    os.utime(tmp_path / "a.py", ns=(5 * DAY * 1_000_000, 5 * DAY * 1_000_000))
    files = TreeFiles(lambda: str(tmp_path))
    assert (
        files.modified_at("a.py"),
        files.exists("b.py"),
        files.changed_since("a.py", "abcdef12"),
    ) == (5 * DAY, None, None)


def test_without_a_folder_and_outside_of_it_nobody_knows(root):
    assert TreeFiles(lambda: None).exists("kept.py") is None
    files = TreeFiles(lambda: str(root))
    assert (files.exists("/etc/passwd"), files.exists("../kept.py")) == (None, None)


def test_when_git_has_had_its_time_nobody_knows_and_nothing_waits(root):
    (root / "gone.py").unlink()
    assert TreeFiles(lambda: str(root), allowed_seconds=0).exists("gone.py") is None


# the past itself


def test_the_past_reads_files_as_they_were_and_knows_what_they_are_called_now(root):
    past, first = GitFiles(str(root)), git(root, "rev-parse", "HEAD")
    git(root, "mv", "old name.py", "new name.py")
    git(root, "commit", "-qm", "second", at="2026-02-01T00:00:00Z")
    assert past.read(first, "old name.py").startswith(b"old name.py = 0")
    assert past.read(first, "new name.py") is None
    assert past.renamed_to(first, "old name.py") == "new name.py"
    assert past.commit_at(1_768_000_000_000) == first
    assert past.head() == git(root, "rev-parse", "HEAD")


@pytest.mark.parametrize("name", [None, "", "HEAD", "--all", "main", "abc;ls", "zzzz"])
def test_only_the_hash_of_a_commit_is_taken_for_one(root, name):
    assert GitFiles(str(root)).commit(name) is None


def test_a_folder_without_git_has_no_past(tmp_path):
    past = GitFiles(str(tmp_path))
    assert (past.head(), past.commit("abcdef12"), past.knows("a"), past.commit_at(1)) == (
        None,
        None,
        None,
        None,
    )
