"""The per-user store: a project for each git repository, in the user's data folder, nothing in the
repository.
"""

from __future__ import annotations

import json
import os
import stat
import subprocess
from pathlib import Path

import pytest

from tests.surfaces.shell import smara, spawn

ADD = ("messages", "add", "--thread", "t", "--role", "user", "--content")


def git(folder: Path, *arguments: str) -> str:
    names = ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL")
    done = subprocess.run(
        ["git", *arguments],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, **dict.fromkeys(names, "me@example.org")},
    )
    return done.stdout


@pytest.fixture
def data(by_folder: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's data folder, empty."""
    monkeypatch.delenv("SMARA_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path / "data"


@pytest.fixture
def repository(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "app"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    git(folder, "commit", "-q", "--allow-empty", "-m", "first")
    monkeypatch.chdir(folder)
    return folder


def project() -> str:
    name = smara("status", "--json").data["project"]
    assert isinstance(name, str)
    return name


def test_init_makes_a_project_of_the_repository_and_says_where(data, repository):
    said = spawn("init")
    assert said.code == 0
    lines = said.out.splitlines()
    assert lines[0] == f"Folder   {repository}"
    assert lines[1].startswith("Project  app-")
    assert lines[2] == f"Store    {data / 'smara' / 'smara.db'}"
    assert project().startswith("app-")


def test_nothing_is_written_into_the_repository(data, repository):
    before = sorted(str(path) for path in repository.rglob("*"))
    smara("init")
    smara(*ADD, "hello")
    assert sorted(str(path) for path in repository.rglob("*")) == before
    assert git(repository, "status", "--porcelain", "--ignored") == ""


def test_only_the_user_can_read_the_store(data, repository):
    before = os.umask(0)
    try:
        smara(*ADD, "hello")
    finally:
        os.umask(before)
    folder = data / "smara"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}


def test_without_a_data_folder_of_its_own_the_home_folder_is_used(
    data, repository, tmp_path, monkeypatch
):
    monkeypatch.delenv("XDG_DATA_HOME")
    smara("init")
    assert (tmp_path / "home" / ".local" / "share" / "smara" / "smara.db").exists()


def test_init_twice_is_init_once(data, repository):
    first, second = smara("init", "--json").data, smara("init", "--json").data
    assert first["project"] == second["project"]
    assert len(smara("projects", "--json").data) == 1


def test_folder_inside_the_repository_is_the_same_project(data, repository, monkeypatch):
    name = project()
    (repository / "src" / "deep").mkdir(parents=True)
    monkeypatch.chdir(repository / "src" / "deep")
    assert project() == name


def test_worktrees_share_a_project(data, repository, tmp_path, monkeypatch):
    smara(*ADD, "said in the main tree")
    git(repository, "worktree", "add", "-q", str(tmp_path / "feature"))
    monkeypatch.chdir(tmp_path / "feature")
    assert [hit["content"] for hit in smara("search", "main tree", "--json").data["results"]] == [
        "said in the main tree"
    ]


def test_moved_clone_is_recognized(data, repository, tmp_path, monkeypatch):
    name = project()
    smara(*ADD, "said before the move")
    repository.rename(tmp_path / "renamed")
    monkeypatch.chdir(tmp_path / "renamed")
    assert project() == name
    assert smara("search", "move", "--json").data["totalHits"] == 1


def test_two_repositories_do_not_see_each_other(data, repository, tmp_path, monkeypatch):
    smara(*ADD, "the secret plan")
    other = tmp_path / "other" / "app"
    other.mkdir(parents=True)
    git(other, "init", "-q")
    monkeypatch.chdir(other)
    assert smara("search", "secret plan", "--json").data["totalHits"] == 0
    assert len(smara("projects", "--json").data) == 2


def test_outside_a_repository_the_project_is_default(data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert project() == "default"


def test_named_store_is_divided_by_repository_as_well(data, repository, tmp_path, monkeypatch):
    monkeypatch.setenv("SMARA_DB", str(tmp_path / "x.db"))
    smara(*ADD, "the secret plan")
    assert project().startswith("app-")
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    git(tmp_path / "other", "init", "-q")
    assert smara("search", "secret plan", "--json").data["totalHits"] == 0
    assert "secret" not in smara("context", "preview").out


def start(folder: Path) -> str:
    """What a session is told that starts in a folder."""
    payload = {"session_id": os.urandom(4).hex(), "cwd": str(folder), "source": "startup"}
    return spawn("hook", "claude", "SessionStart", stdin=json.dumps(payload).encode()).out


def test_another_repository_at_the_path_of_a_former_one_is_told_nothing_of_it(
    data, repository, tmp_path
):
    smara("remember", "Billing takes its HMAC keys from the vault", "--type", "decision")
    assert "HMAC" in start(repository)  # and a brief was written for the next one
    assert "HMAC" in start(repository)
    repository.rename(tmp_path / "away")
    repository.mkdir()
    git(repository, "init", "-q", "-b", "main")
    git(repository, "commit", "-q", "--allow-empty", "-m", "another")
    assert "HMAC" not in start(repository)
    assert "HMAC" in start(tmp_path / "away")


def test_hook_outside_git_keeps_and_says_nothing_until_the_folder_is_named(
    data, tmp_path, monkeypatch
):
    (tmp_path / "notes").mkdir()
    monkeypatch.chdir(tmp_path / "notes")
    smara("remember", "The shed is painted green", "--type", "decision")
    assert start(tmp_path / "notes") == ""
    prompt = {"session_id": "s", "cwd": str(tmp_path / "notes"), "prompt": "paint the fence"}
    spawn("hook", "claude", "UserPromptSubmit", stdin=json.dumps(prompt).encode())
    spawn("hook", "claude", "drain")
    assert smara("search", "fence", "--json").data["results"] == []
    assert not list((data / "smara" / "spool").glob("*.event"))
    assert smara("init", "--folder", str(tmp_path / "notes")).code == 0
    spawn("hook", "claude", "UserPromptSubmit", stdin=json.dumps(prompt).encode())
    spawn("hook", "claude", "drain")
    assert len(smara("search", "fence", "--json").data["results"]) == 1


def session(home: Path, name: str, cwd: Path, words: str) -> None:
    """Put a past session of Claude Code into a home folder."""
    cwd.mkdir(parents=True, exist_ok=True)
    path = home / ".claude" / "projects" / name / f"{name}.jsonl"
    path.parent.mkdir(parents=True)
    line = {"type": "user", "sessionId": name, "uuid": name, "cwd": str(cwd), "parentUuid": None}
    line |= {"timestamp": "2026-02-12T10:00:00Z", "message": {"role": "user", "content": words}}
    path.write_text(json.dumps(line) + "\n")


def test_init_in_the_home_folder_takes_and_writes_nothing_until_the_folder_is_named(
    data, repository, tmp_path, monkeypatch
):
    home = tmp_path / "home"
    session(home, "mine", home / "notes", "the shed in my notes")
    app = home / "app"
    session(home, "other", app, "the plan of another project")
    git(app, "init", "-q")
    monkeypatch.chdir(home)
    before = sorted(home.rglob("*"))
    refused = spawn("init", "--yes")
    assert refused.code == 2
    assert f"smara init --yes --folder {home}" in refused.err
    unasked = spawn("init")  # no terminal to ask at: the one step that helps here is to name it
    steps = unasked.out.partition("Next:")[2].splitlines()
    assert [step.split()[:4] for step in steps] == [["smara", "init", "--folder", str(home)]]
    assert sorted(home.rglob("*")) == before
    done = spawn("init", "--yes", "--folder", str(home))
    assert f"Folder   {home}\n" in done.out
    assert f"Found    1 past session of {home}" in done.out, done.out
    assert "--from git" not in done.out
    # The folder's own settings, never those of all repositories.
    assert [each.name for each in (home / ".claude").glob("settings*")] == ["settings.local.json"]
    assert [each["content"] for each in smara("search", "shed plan", "--json").data["results"]] == [
        "the shed in my notes"
    ]


def test_project_by_name_reaches_another_repository_from_anywhere(
    data, repository, tmp_path, monkeypatch
):
    name = project()
    smara(*ADD, "hello")
    monkeypatch.chdir(tmp_path)
    assert (
        smara("messages", "list", "--thread", "t", "--project", name, "--json").data[0]["content"]
        == "hello"
    )
