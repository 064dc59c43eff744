"""``smara import --from``: git, Mastra, and the notes of agents, as a person calls them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from smara.adapters.host_specs.claude import slug
from tests import mastra_stores
from tests.surfaces.shell import on_terminal, plain, smara, spawn

FIXTURES = Path(__file__).parents[1] / "fixtures" / "vendor_memories"
WHY = "Text mode breaks on Windows, because line ends are changed there."


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with one commit that says why, as the current folder."""
    root = tmp_path / "shop"
    root.mkdir()
    (root / "till.py").write_text("def put():\n    pass\n")
    for words in (
        ["init", "-q"],
        ["add", "-A"],
        ["commit", "-q", "-m", f"Open the file in binary mode\n\n{WHY}"],
    ):
        known = ["-c", "user.email=ann@example.org", "-c", "user.name=Ann"]
        subprocess.run(["git", *known, *words], cwd=root, check=True, capture_output=True)
    monkeypatch.chdir(root)
    return root


def test_git_makes_memories_of_commits_that_say_why(db, repository):
    (told,) = spawn("import", "--from", "git", "--json").data["repositories"]
    assert (told["commits"], told["counts"], told["countedTogether"]) == (1, {"added": 1}, 1)
    (made,) = told["memories"]
    assert (made["type"], made["kind"], made["content"]) == (
        "gotcha",
        "reason",
        f"Open the file in binary mode: {WHY}",
    )
    assert smara("memories", "show", made["id"], "--json").data["commit"] == made["commit"]
    again = smara("import", "--from", "git", "--json").data["repositories"][0]
    assert again["counts"] == {"known": 1}


def test_a_dry_run_of_git_stores_nothing(db, repository):
    assert smara("import", "--from", "git", "--dry-run", "--json").data["repositories"][0][
        "counts"
    ] == {"added": 1}
    assert smara("memories", "list", "--json").data["memories"] == []
    assert smara("code", "status", "--json").data["state"] == "none"


def test_the_code_is_indexed_or_not_as_asked(db, repository, monkeypatch):
    from smara.adapters import git_history

    (told,) = smara("import", "--from", "git", "--no-code", "--json").data["repositories"]
    assert (told["countedTogether"], told["filesNotIndexed"]) == (None, None)
    monkeypatch.setattr(git_history, "MOST_FILES_UNASKED", 0)
    (told,) = smara("import", "--from", "git", "--json").data["repositories"]
    assert (told["countedTogether"], told["filesNotIndexed"]) == (None, 1)
    assert smara("code", "status", "--json").data["state"] == "none"
    (told,) = smara("import", "--from", "git", "--code", "--json").data["repositories"]
    assert (told["countedTogether"], told["filesNotIndexed"]) == (1, None)
    # What has an index is kept up, however large it is.
    assert (
        smara("import", "--from", "git", "--json").data["repositories"][0]["filesNotIndexed"]
        is None
    )


def test_a_person_is_told_what_came_and_where_to_review_it(db, repository):
    said = plain(on_terminal("import", "--from", "git").out)
    assert "Created 1 memory from 1 commit; 0 already known." in said
    assert "smara memories review" in said


def test_a_folder_that_is_no_repository_is_refused(db, tmp_path):
    said = smara("import", "--from", "git", str(tmp_path), "--json")
    assert (said.code, said.envelope["error"]["code"]) == (2, "invalid_input")


def test_a_store_of_mastra_comes_in_and_is_accounted_for(db, tmp_path):
    path = str(mastra_stores.new_file(tmp_path / "mastra.db"))
    (told,) = spawn("import", "--from", "mastra", path, "--json").data["stores"]
    assert (
        told["threads"],
        told["messages"],
        told["stored"],
        told["pages"],
        told["observations"],
    ) == (4, 8, 7, 2, 3)
    (again,) = smara("import", "--from", "mastra", path, "--json").data["stores"]
    assert (again["stored"], again["repeated"], again["grown"]) == (0, 7, 0)
    lines = smara("import", "--from", "mastra", path).out.splitlines()
    assert lines[0].split("\t")[:4] == ["store", "threads", "messages", "stored"]


def test_mastra_needs_the_name_of_a_store(db):
    said = smara("import", "--from", "mastra")
    assert said.code == 2
    assert "smara import --from mastra FILE" in said.err


def test_notes_of_agents_are_found_and_wait_for_review(db, repository, tmp_path, monkeypatch):
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    shutil.copytree(
        FIXTURES / "claude", tmp_path / "claude" / "projects" / slug(str(repository)) / "memory"
    )
    told = smara("import", "--from", "claude-memory", "--json").data
    assert told["counts"]["added"] == len(told["statements"]) >= 3
    assert smara("import", "--from", "agent-memories", "--json").data["isNothingNew"]
    listed = smara("memories", "list", "--json").data["memories"]
    assert {each["source"] for each in listed} == {"imported"}
    assert smara("import", "--from", "claude-memory").out.startswith("outcome\t")


def test_where_no_notes_are_it_says_so(db, repository, tmp_path, monkeypatch):
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "none"))
    assert "No notes of codex" in smara("import", "--from", "codex-memory").out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--from", "claude-memory", "note.md"], "smara memories import FILE"),
        (["--from", "mastra", "--limit", "3", "x.db"], "are for --from git"),
        (["--no-code"], "are for --from git"),
    ],
)
def test_what_does_not_fit_together_is_refused_with_what_does(db, words, told):
    said = smara("import", *words)
    assert said.code == 2
    assert told in said.err
