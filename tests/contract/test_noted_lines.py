"""Hooks tell what commits decided about the lines at hand, from what was prepared, on both
databases.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import smara
from smara.adapters.hosts import reply
from smara.adapters.hosts.hook_store import drain_in_background
from smara.environment import spool_folder
from tests.contract.test_commits import REASON, TWO, Repository
from tests.unit.hosts.hooks import claude, spooled

CART = "def total(prices):\n    return sum(prices)\n"
WHY = "six tries at night"
PATCH = "*** Begin Patch\n*** Update File: retry.py\n"
OLD, NEW = "MAX_ATTEMPTS = 10", "MAX_ATTEMPTS = 4"


@pytest.fixture
def repository(where, tmp_path, monkeypatch) -> Repository:
    root = tmp_path / "shop"
    root.mkdir()
    monkeypatch.chdir(root)
    monkeypatch.setenv("SMARA_DB", where)
    monkeypatch.setenv("SMARA_HOME", str(tmp_path / "home"))
    repository = Repository(root)
    repository.commit("feat: retry", retry__py=TWO.format(3), cart__py=CART)
    repository.commit(REASON, retry__py=TWO.format(7))
    repository.commit("perf: simplify", retry__py=TWO.format(10))
    return repository


@pytest.fixture
def folder(repository) -> str:
    """The spool of a store whose background work was done once."""
    with smara.open():
        pass
    return drained(spool_folder())


def drained(folder: str) -> str:
    spooled(folder, claude("Stop", last_assistant_message="x", cwd=str(Path.cwd())))
    drain_in_background(folder)
    return folder


def hooked(folder: str, event: str, tool: str, session_id: str = "s1", **given: object) -> str:
    call = {
        "tool_name": tool,
        "tool_input": {"file_path": str(Path("retry.py").resolve()), **given},
    }
    payload = {"session_id": session_id, "cwd": str(Path.cwd()), **call}
    said = reply.answer("claude", event, json.dumps(payload).encode(), folder=folder)
    return json.loads(said)["hookSpecificOutput"]["additionalContext"] if said else ""


def edit(folder: str, session_id: str = "s1", old: str = OLD, new: str = NEW) -> str:
    return hooked(folder, "PreToolUse", "Edit", session_id, old_string=old, new_string=new)


def test_what_was_undone_is_told_when_the_file_is_opened_or_changed(folder):
    assert WHY in hooked(folder, "PostToolUse", "Read")
    assert edit(folder) == ""
    assert WHY in edit(folder, "s2")
    drained(folder)
    with smara.open() as memory:
        found = [(each.session_id, each.point) for each in memory.moments.receipts()]
    assert sorted(found) == [("s1", "after_tool"), ("s2", "before_tool")]


def test_it_is_told_without_asking_git_or_the_rooms(folder, where, monkeypatch):
    if "://" in where:
        pytest.skip("a store that is no file is asked")
    monkeypatch.setattr("smara.adapters.hosts.hook_store.speak", None)
    assert WHY in hooked(folder, "PostToolUse", "Read")
    assert WHY in edit(folder, "s2")
    assert edit(folder, "s3", "    return call() or None", "    return None") == ""
    assert hooked(folder, "PostToolUse", "Read", "s4", file_path="cart.py") == ""


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("Write", {"content": "MAX_ATTEMPTS = 1\n"}),
        ("MultiEdit", {"edits": [{"old_string": OLD, "new_string": NEW}]}),
        ("apply_patch", {"file_path": "", "patch": f"{PATCH}@@\n-{OLD}\n+{NEW}\n"}),
    ],
)  # fmt: skip
def test_every_way_of_changing_a_file_is_understood(folder, tool, given):
    assert WHY in hooked(folder, "PreToolUse", tool, **given)


def test_a_branch_without_these_commits_is_told_nothing(folder, repository):
    repository.git("checkout", "-q", "-b", "before", "HEAD~2")
    (repository.root / "retry.py").write_text(TWO.format(10))
    assert edit(folder) == hooked(folder, "PostToolUse", "Read", "s2") == ""
    drained(folder)
    assert edit(folder, "s3") == ""


def test_a_commit_made_meanwhile_does_not_silence_the_hook(folder, repository):
    repository.commit("docs: a page", page__md="words\n")
    assert WHY in edit(folder)


def test_a_worktree_is_told_what_its_own_branch_decided(folder, repository, tmp_path, monkeypatch):
    repository.git("worktree", "add", "-q", str(tmp_path / "tree"), "HEAD")
    repository.git("worktree", "add", "-q", "-b", "before", str(tmp_path / "old"), "HEAD~2")
    for name, is_said in (("tree", True), ("old", False)):
        monkeypatch.chdir(tmp_path / name)
        (tmp_path / name / "retry.py").write_text(TWO.format(10))
        drained(folder)
        assert (WHY in hooked(folder, "PostToolUse", "Read", name)) is is_said


def test_hooks_run_no_program_that_a_repository_names(folder, repository, tmp_path):
    mark = tmp_path / "ran"
    for name in ("core.fsmonitor", "diff.external", "core.pager", "log.follow"):
        repository.git("config", name, f"touch {mark}")
    repository.git("config", "--unset", "log.follow")
    (repository.root / ".gitattributes").write_text("*.py diff=evil\n")
    repository.git("config", "diff.evil.textconv", f"touch {mark}; cat")
    repository.commit(
        "fix: more\n\nIt must be so because of the provider.", retry__py=TWO.format(11)
    )
    mark.unlink(missing_ok=True)
    drained(folder)
    assert not mark.exists()
