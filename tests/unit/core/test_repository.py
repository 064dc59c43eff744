"""Which repository a folder belongs to: by its git common directory, never by its name."""

from __future__ import annotations

import os
import subprocess

import pytest

from smara.core.git import Repository, find_repository


def git(folder, *arguments):
    identity = {
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@b",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@b",
    }
    done = subprocess.run(
        ["git", *arguments],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, **identity},
    )
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "app"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    git(folder, "commit", "-q", "--allow-empty", "-m", "first")
    return folder


def test_a_folder_outside_any_repository_has_none(tmp_path):
    assert find_repository(tmp_path) is None


def test_a_folder_deep_inside_belongs_to_the_repository_around_it(repository):
    deep = repository / "src" / "auth"
    deep.mkdir(parents=True)
    assert find_repository(deep) == find_repository(repository)


def test_a_repository_is_named_after_its_folder(repository):
    assert find_repository(repository).name == "app"


def test_the_first_commit_is_the_root_of_the_history(repository):
    first = git(repository, "rev-parse", "HEAD")
    git(repository, "commit", "-q", "--allow-empty", "-m", "second")
    assert find_repository(repository).root_commits == (first,)


def test_a_repository_without_commits_has_no_first_commit(tmp_path):
    git(tmp_path, "init", "-q")
    assert find_repository(tmp_path).root_commits == ()


def test_worktrees_share_one_repository(repository, tmp_path):
    git(repository, "worktree", "add", "-q", str(tmp_path / "feature"), "-b", "feature")
    assert (
        find_repository(tmp_path / "feature").common_dir == find_repository(repository).common_dir
    )


def test_a_submodule_is_a_repository_of_its_own(repository, tmp_path):
    other = tmp_path / "lib"
    other.mkdir()
    git(other, "init", "-q")
    git(other, "commit", "-q", "--allow-empty", "-m", "lib")
    git(repository, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other), "lib")
    assert find_repository(repository / "lib").common_dir != find_repository(repository).common_dir


def test_a_path_through_a_link_is_the_same_repository(repository, tmp_path):
    (tmp_path / "link").symlink_to(repository)
    assert find_repository(tmp_path / "link").common_dir == find_repository(repository).common_dir


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://ann:s3cret@example.com/a/app.git", "example.com/a/app"),
        ("https://example.com/a/app.git", "example.com/a/app"),
        ("git@example.com:a/app.git", "example.com/a/app"),
    ],
)
def test_a_remote_is_known_without_its_password(repository, url, shown):
    git(repository, "remote", "add", "origin", url)
    assert find_repository(repository).remote == shown


def test_a_broken_git_file_is_no_repository(tmp_path):
    (tmp_path / ".git").write_text("not a pointer")
    assert find_repository(tmp_path) is None


def test_a_git_file_that_is_not_text_is_no_repository(tmp_path):
    (tmp_path / ".git").write_bytes(b"gitdir: \xff\xfe\x00")
    assert find_repository(tmp_path) is None or find_repository(tmp_path).common_dir


def test_a_bare_repository_is_named_without_its_suffix():
    assert Repository("/srv/app.git", "/srv/app.git").name == "app"


def test_without_git_the_facts_are_unknown_and_nothing_breaks(repository, monkeypatch):
    monkeypatch.setenv("PATH", "")
    found = find_repository(repository)
    assert (found.root_commits, found.remote, found.head) == ((), None, None)


def test_a_forged_pointer_does_not_make_a_folder_part_of_a_repository(repository, tmp_path):
    forged = tmp_path / "stranger"
    forged.mkdir()
    for target in ("../app/.git", str(repository / ".git"), "../app/.git/../.git"):
        (forged / ".git").write_text(f"gitdir: {target}\n")
        assert find_repository(forged) is None


def test_a_forged_pointer_to_the_worktree_of_another_is_refused(repository, tmp_path):
    git(repository, "worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    forged = tmp_path / "stranger"
    forged.mkdir()
    (forged / ".git").write_text(f"gitdir: {repository}/.git/worktrees/side\n")
    assert find_repository(forged) is None
    assert find_repository(tmp_path / "side").common_dir == find_repository(repository).common_dir


def test_a_worktree_that_was_moved_by_hand_keeps_its_repository(repository, tmp_path):
    git(repository, "worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    (tmp_path / "side").rename(tmp_path / "moved")
    assert find_repository(tmp_path / "moved").common_dir == find_repository(repository).common_dir


def test_a_forged_pointer_to_the_submodule_of_another_is_refused(repository, tmp_path):
    library = tmp_path / "library"
    library.mkdir()
    git(library, "init", "-q")
    git(library, "commit", "-q", "--allow-empty", "-m", "first")
    allow = ("-c", "protocol.file.allow=always")
    git(repository, *allow, "submodule", "--quiet", "add", str(library), "lib")
    inside = find_repository(repository / "lib")
    assert inside.common_dir.endswith("modules/lib")
    forged = tmp_path / "stranger"
    forged.mkdir()
    (forged / ".git").write_text(f"gitdir: {inside.common_dir}\n")
    assert find_repository(forged) is None


def test_a_repository_whose_git_folder_lies_elsewhere_is_found(tmp_path):
    folder = tmp_path / "app"
    folder.mkdir()
    git(folder, "init", "-q", "--separate-git-dir", str(tmp_path / "app.git"))
    assert find_repository(folder).common_dir == str(tmp_path / "app.git")
