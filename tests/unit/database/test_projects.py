"""Projects: known by their repository's common directory, found again after a move."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from smara.database.projects import Projects
from smara.errors import InvalidInputError
from smara.testing import CountingIds, FakeClock


@dataclass(frozen=True)
class KnownRepository:
    """A repository whose facts are given, not read from git."""

    common_dir: str
    first_commit: str | None = "c0ffee"
    remote: str | None = "https://example.com/app.git"
    name: str = "app"


@pytest.fixture
def projects(database):
    return Projects(database, FakeClock(), CountingIds())


def test_a_named_project_is_made_once(projects):
    assert projects.named("alpha") == projects.named("alpha")
    assert [project.id for project in projects.list()] == ["alpha"]


def test_two_names_are_two_projects(projects):
    assert projects.named("alpha").project_no != projects.named("beta").project_no


def test_a_name_that_is_no_name_is_refused(projects):
    for bad in ("", " ", "a\nb", "x" * 513):
        with pytest.raises(InvalidInputError, match="project"):
            projects.named(bad)
    assert projects.list() == []


def test_a_repository_is_one_project(projects, tmp_path):
    repository = KnownRepository(str(tmp_path))
    assert projects.of_repository(repository) == projects.of_repository(repository)
    assert [(project.name, project.git_common_dir) for project in projects.list()] == [
        ("app", str(tmp_path))
    ]


def test_two_clones_that_are_both_there_are_two_projects(projects, tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    first, second = (projects.of_repository(KnownRepository(str(tmp_path / name))) for name in "ab")
    assert first.project_no != second.project_no


def test_a_clone_that_moved_is_found_again(projects, tmp_path):
    before = projects.of_repository(KnownRepository(str(tmp_path / "gone")))
    (tmp_path / "new").mkdir()
    assert projects.of_repository(KnownRepository(str(tmp_path / "new"))) == before
    assert [project.git_common_dir for project in projects.list()] == [str(tmp_path / "new")]


def test_another_repository_with_the_same_folder_name_is_another_project(projects, tmp_path):
    before = projects.of_repository(KnownRepository(str(tmp_path / "gone")))
    other = KnownRepository(str(tmp_path), first_commit="deadbeef")
    assert projects.of_repository(other).project_no != before.project_no


def test_a_fork_with_another_remote_is_another_project(projects, tmp_path):
    before = projects.of_repository(KnownRepository(str(tmp_path / "gone")))
    fork = KnownRepository(str(tmp_path), remote="https://example.com/fork.git")
    assert projects.of_repository(fork).project_no != before.project_no


def test_a_repository_without_commits_is_known_by_its_folder_alone(projects, tmp_path):
    before = projects.of_repository(KnownRepository(str(tmp_path / "gone"), first_commit=None))
    assert (
        projects.of_repository(KnownRepository(str(tmp_path), first_commit=None)).project_no
        != before.project_no
    )
