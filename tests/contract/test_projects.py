"""What a project is: root commit and remote, then the git directory; never a path alone."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

import smara
from smara.config import load_settings
from smara.database.migrate import migrate
from smara.database.projects import Projects
from smara.errors import InvalidInputError, NotFoundError
from smara.memory import open_database
from smara.testing import CountingIds, FakeClock

pytestmark = pytest.mark.usefixtures("by_folder")
REMOTE = "https://example.com/ann/app.git"


def git(folder: Path, *arguments: str) -> str:
    names = ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL")
    environment = {**os.environ, **dict.fromkeys(names, "me@example.org")}
    done = subprocess.run(
        ["git", "-c", "protocol.file.allow=always", *arguments],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
        env=environment,
    )
    return done.stdout.strip()


def new_repository(folder: Path, remote: str | None = None, commit: str | None = "first") -> Path:
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    if commit is not None:
        git(folder, "commit", "-q", "--allow-empty", "-m", f"{commit} {os.urandom(8).hex()}")
    if remote is not None:
        git(folder, "remote", "add", "origin", remote)
    return folder


def clone(source: Path, folder: Path, *options: str, remote: str | None = None) -> Path:
    folder.parent.mkdir(parents=True, exist_ok=True)
    git(source, "clone", "-q", *options, f"file://{source}", str(folder))
    git(
        folder, *(("remote", "set-url", "origin", remote) if remote else ("remote", "rm", "origin"))
    )
    return folder


@pytest.fixture
def project(where, monkeypatch):
    """The project of a folder, as a program that is started there finds it."""

    def find(folder: Path) -> str:
        monkeypatch.chdir(folder)
        with smara.open(where, embedder="off") as memory:
            return memory.project

    return find


@pytest.fixture
def app(tmp_path):
    return new_repository(tmp_path / "app", REMOTE)


def test_repository_is_one_project_wherever_one_stands_in_it(project, app):
    (app / "packages" / "web").mkdir(parents=True)
    assert project(app) == project(app / "packages" / "web") == project(app)
    assert project(app).startswith("app-")


def test_two_repositories_of_one_named_store_are_two_projects(project, app, tmp_path):
    assert project(app) != project(new_repository(tmp_path / "other"))


def test_another_repository_at_the_path_of_a_former_one_is_another_project(project, app, tmp_path):
    before = project(app)
    app.rename(tmp_path / "away")
    new_repository(app)
    after = project(app)
    assert after != before
    assert project(tmp_path / "away") == before
    assert project(app) == after


def test_another_repository_at_a_path_is_another_project_with_the_remote_of_the_former(
    project, app
):
    before = project(app)
    shutil.rmtree(app)
    assert project(new_repository(app, REMOTE, "another first")) != before


def test_two_clones_that_are_both_there_are_one_project(project, app, tmp_path):
    other = clone(app, tmp_path / "b" / "elsewhere", remote="git@example.com:Ann/app")
    assert project(app) == project(other) == project(app)


def test_clone_with_joined_and_separate_histories_is_the_same_project(project, app, tmp_path):
    git(app, "checkout", "-q", "--orphan", "pages")
    git(app, "commit", "-q", "--allow-empty", "-m", "pages")
    before = project(app)
    git(app, "checkout", "-q", "main")
    git(app, "merge", "-q", "--allow-unrelated-histories", "-m", "joined", "pages")
    assert project(app) == before
    assert project(clone(app, tmp_path / "b", "--single-branch", remote=REMOTE)) == before


def test_fork_is_another_project(project, app, tmp_path):
    fork = clone(app, tmp_path / "fork", remote="https://example.com/bob/app.git")
    assert project(app) != project(fork)


def test_remote_alone_joins_nothing(project, app, tmp_path):
    before = project(app)
    assert project(new_repository(tmp_path / "forged", REMOTE)) != before
    assert project(new_repository(tmp_path / "empty", REMOTE, commit=None)) != before


def test_remote_that_was_added_or_renamed_later_changes_nothing(project, tmp_path):
    repository = new_repository(tmp_path / "app")
    before = project(repository)
    git(repository, "remote", "add", "origin", REMOTE)
    assert project(repository) == before
    git(repository, "remote", "set-url", "origin", "https://example.com/ann/renamed")
    assert project(repository) == before
    assert (
        project(clone(repository, tmp_path / "b", remote="https://example.com/ann/renamed"))
        == before
    )


def test_repository_without_a_remote_that_was_moved_is_found_again(project, tmp_path):
    before = project(new_repository(tmp_path / "app"))
    (tmp_path / "app").rename(tmp_path / "moved")
    assert project(tmp_path / "moved") == before


def test_copy_of_a_repository_without_a_remote_is_another_project_while_both_are_there(
    project, tmp_path
):
    repository = new_repository(tmp_path / "app")
    before = project(repository)
    assert project(clone(repository, tmp_path / "copy")) != before


def test_repository_without_commits_stays_the_same_when_it_gets_some(project, tmp_path):
    repository = new_repository(tmp_path / "app", commit=None)
    before = project(repository)
    git(repository, "commit", "-q", "--allow-empty", "-m", "first")
    git(repository, "remote", "add", "origin", REMOTE)
    assert project(repository) == before
    assert project(clone(repository, tmp_path / "b", remote=REMOTE)) == before


def test_repository_without_commits_is_not_another_without_commits(project, tmp_path):
    before = project(new_repository(tmp_path / "app", commit=None))
    shutil.rmtree(tmp_path / "app")
    assert project(new_repository(tmp_path / "app", commit=None)) != before


def test_shallow_clone_joins_by_a_commit_that_both_have(project, app, tmp_path):
    git(app, "commit", "-q", "--allow-empty", "-m", "second")
    before = project(app)
    shallow = clone(app, tmp_path / "b", "--depth", "1", remote=REMOTE)
    assert project(shallow) == before
    git(shallow, "fetch", "-q", "--unshallow", f"file://{app}")
    assert project(shallow) == before


def test_full_clone_joins_the_shallow_one_that_came_first(project, app, tmp_path):
    git(app, "commit", "-q", "--allow-empty", "-m", "second")
    shallow = clone(app, tmp_path / "b", "--depth", "1", remote=REMOTE)
    assert project(shallow) == project(app)


def test_shallow_clone_of_another_history_is_another_project(project, app, tmp_path):
    before = project(app)
    other = new_repository(tmp_path / "other")
    git(other, "commit", "-q", "--allow-empty", "-m", "second")
    assert project(clone(other, tmp_path / "b", "--depth", "1", remote=REMOTE)) != before


def test_worktrees_share_a_project_and_a_submodule_has_its_own(project, app, tmp_path):
    part = new_repository(tmp_path / "part")
    git(app, "submodule", "--quiet", "add", str(part), "part")
    git(app, "worktree", "add", "-q", str(tmp_path / "tree"))
    assert project(tmp_path / "tree") == project(app) != project(app / "part")


def test_rewritten_history_is_still_the_same_repository(project, app):
    before = project(app)
    git(app, "commit", "-q", "--amend", "--allow-empty", "-m", "rewritten")
    git(app, "reflog", "expire", "--expire=now", "--all")
    git(app, "gc", "-q", "--prune=now")
    assert project(app) == before


def test_outside_git_the_nearest_folder_that_was_named_counts(project, where, tmp_path):
    for name in ("notes/deep", "elsewhere", "notes-2"):
        (tmp_path / name).mkdir(parents=True)
    assert project(tmp_path / "notes") == project(tmp_path / "elsewhere") == "default"
    with smara.open(where) as memory:
        named = memory.projects.add_folder(str(tmp_path / "notes")).project_id
        assert memory.projects.add_folder(str(tmp_path / "notes")).project_id == named
        assert memory.projects.at(str(tmp_path / "elsewhere")) is None
    assert project(tmp_path / "notes" / "deep") == project(tmp_path / "notes") == named
    assert project(tmp_path / "notes-2") == "default"
    assert project(new_repository(tmp_path / "notes" / "app")).startswith("app-")


def test_project_that_was_adopted_is_the_repository_and_the_former_keeps_its_name(
    project, where, app
):
    before = project(app)
    with smara.open(where) as memory:
        memory.projects.named("older")
        with pytest.raises(NotFoundError, match="nowhere"):
            memory.projects.adopt("nowhere", str(app))
        with pytest.raises(InvalidInputError, match="no git repository"):
            memory.projects.adopt("older", "/")
        memory.projects.adopt("older", str(app))
        assert [before in note for note in memory.projects.notes("older")] == [True]
    assert project(app) == "older"


def test_name_that_is_no_name_is_refused(where):
    with smara.open(where, project="alpha") as memory:
        for bad in ("", " ", "a\nb", "x" * 513):
            with pytest.raises(InvalidInputError, match="project"):
                memory.projects.named(bad)
        assert [each.id for each in memory.projects.list()] == ["alpha"]


def test_two_processes_that_meet_a_repository_at_once_make_one_project(where, app, monkeypatch):
    """Both have looked, and found nothing, before either writes."""
    from threading import Barrier, Thread

    from smara.core.git import find_repository

    meeting, found = Barrier(2), []

    def look() -> None:
        with smara.open(where, project="x", embedder="off") as memory:
            meeting.wait(60)
            found.append(memory.projects.of_repository(find_repository(app)))

    threads = [Thread(target=look) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(set(found)) == 1


# stores of older versions


@pytest.fixture
def old(where_empty):
    """A store of the version before; gives a way to put projects into it."""
    database = open_database(load_settings(db=where_empty))
    migrate(database, FakeClock(), target=24)

    def put(name: str, folder: Path | None, first: str | None, threads: list[str]) -> None:
        common = str(folder / ".git") if folder else None
        with database.write() as session:
            [no] = session.one(
                "INSERT INTO projects (id, name, git_common_dir, first_commit, remote, created_at)"
                " VALUES (?, ?, ?, ?, ?, ?) RETURNING no",
                (name, name, common, first, REMOTE if folder else None, 4_102_444_800_000),
            )
            for place in threads:
                session.run(
                    "INSERT INTO threads (project_no, id, resource_id, kind, metadata, created_at,"
                    " updated_at) VALUES (?, ?, 'default', 'conversation', ?, 0, 0)",
                    (no, place, f'{{"cwd": "{place}"}}'),
                )

    yield put
    database.close()


@pytest.fixture
def where_empty(where, request, tmp_path):
    """A place for a store that has no table yet."""
    if where.startswith("postgresql"):
        from tests import postgres

        with postgres.fresh_schema() as url:
            yield url
    else:
        yield str(tmp_path / "old.db")


@pytest.fixture
def upgraded(where_empty, monkeypatch):
    def find(folder: Path) -> tuple[str, list[str]]:
        monkeypatch.chdir(folder)
        with smara.open(where_empty, embedder="off") as memory:
            return memory.project, memory.projects.notes(memory.project)

    return find


def test_project_of_an_old_store_stays_the_repository_that_it_was(old, upgraded, app, tmp_path):
    old("app-old", app, git(app, "rev-parse", "HEAD"), [])
    assert upgraded(app) == ("app-old", [])
    assert upgraded(clone(app, tmp_path / "b", remote="git@example.com:ann/app")) == ("app-old", [])


def test_project_of_an_old_store_that_was_seen_before_its_first_commit_stays(old, upgraded, app):
    old("app-old", app, None, [])
    assert upgraded(app) == ("app-old", [])


def test_another_repository_at_a_path_of_an_old_store_is_told_what_became_of_it(old, upgraded, app):
    old("app-old", app, "c0ffee" * 6 + "beef", [])
    name, notes = upgraded(app)
    assert name != "app-old"
    assert [("app-old" in note, "adopt app-old" in note) for note in notes] == [(True, True)]


def test_old_project_that_one_repository_filled_alone_becomes_its_project(old, upgraded, app):
    old("default", None, None, [str(app), str(app / "sub")])
    name, notes = upgraded(app)
    assert name == "default"
    assert notes == ["It was default, which held sessions of this repository alone."]
    assert upgraded(app) == (name, notes)


def test_old_project_of_several_repositories_is_left_alone_and_each_is_told_where_it_is(
    old, upgraded, app, tmp_path
):
    other = new_repository(tmp_path / "other")
    old("default", None, None, [str(app), str(other)])
    names = {upgraded(folder)[0] for folder in (app, other)}
    assert len(names) == 2
    assert "default" not in names
    [note] = upgraded(app)[1]
    assert "smara --project default status" in note


def test_old_project_without_a_word_of_where_it_was_is_left_alone(old, upgraded, app):
    old("default", None, None, [""])
    assert upgraded(app)[0] != "default"


def test_ids_of_old_projects_are_still_taken(old, where_empty, app):
    old("app-old", app, None, [])
    with smara.open(where_empty, project="app-old", new_id=CountingIds()) as memory:
        assert (memory.project, len(memory.projects.list())) == ("app-old", 1)
    assert isinstance(memory.projects, Projects)


TOKEN = "ghp_" + "wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx"


PLACES = "projects", "project_places", "memories", "code_trees", "code_anchors", "line_notes"


def rows(memory) -> str:
    """Every row of the tables that know where things are, as text."""
    with memory.internals.database.read() as session:
        return "\n".join(
            str(row) for table in PLACES for row in session.all(f"SELECT * FROM {table}")
        )


def test_a_repository_below_a_folder_with_a_secret_in_its_name_is_known_without_it(
    project, where, tmp_path
):
    shop = new_repository(tmp_path / TOKEN / "shop", commit=None)
    (shop / "cart.py").write_text("def total():\n    return 1\n")
    git(shop, "add", "-A")
    git(shop, "commit", "-q", "-m", "Round totals down because the bank does")
    (shop / "sub").mkdir()
    assert project(shop) == project(shop / "sub")
    with smara.open(where, embedder="off") as memory:
        memory.commits.update()
        memory.commits.write_notes()
        memory.memories.remember("`total` in cart.py rounds down", files=["cart.py"])
        with pytest.raises(InvalidInputError, match="holds a secret"):
            memory.code.index(shop)
        assert TOKEN not in rows(memory)


def test_a_folder_with_a_secret_in_its_name_is_a_project_with_all_below_it(
    project, where, tmp_path, monkeypatch
):
    folder = tmp_path / TOKEN
    (folder / "notes" / "old").mkdir(parents=True)
    monkeypatch.chdir(folder)
    with smara.open(where, embedder="off") as memory:
        memory.projects.add_folder(str(folder))
        assert TOKEN not in rows(memory)
    assert project(folder) == project(folder / "notes" / "old") != project(tmp_path)
