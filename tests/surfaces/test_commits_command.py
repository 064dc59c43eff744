"""`smara commits`: the history as people see it."""

from __future__ import annotations

import pytest

from tests.contract.test_commits import REASON, RETRY, Repository
from tests.surfaces.shell import plain, smara


@pytest.fixture
def history(store, tmp_path, monkeypatch) -> list[str]:
    root = tmp_path / "shop"
    root.mkdir()
    monkeypatch.chdir(root)
    monkeypatch.setenv("COLUMNS", "80")
    repository = Repository(root)
    return [
        repository.commit(REASON, retry__py=RETRY.format(7)),
        repository.commit("perf: simplify", retry__py=RETRY.format(10)),
    ]


def lines(*words: str) -> list[str]:
    said = smara(*words, is_seen=True)
    assert said.code == 0, said.err
    return [line.rstrip() for line in plain(said.out).splitlines()]


def test_update_says_how_many_commits_are_new(history):
    assert "2 new commits; 2 in all." in lines("commits", "update")
    assert "0 new commits; 2 in all." in lines("commits", "update")


def test_the_list_shows_the_newest_first_and_one_file_on_request(history):
    assert lines("commits", "list") == ["No commits yet. `smara commits update` reads the history."]
    lines("commits", "update")
    shown = lines("commits", "list", "retry.py")
    assert [line.split()[0] for line in shown[2:]] == [sha[:9] for sha in reversed(history)]


def test_show_gives_message_files_and_functions(history):
    lines("commits", "update")
    shown = lines("commits", "show", history[0][:8])
    assert shown[0] == f"{history[0][:9]}  fix: retry 7 times"
    assert "files      retry.py" in shown
    assert "functions  retry" in shown
    assert shown[-1] == "The payment provider needs up to six tries at night."


def test_why_tells_the_reason_and_what_undid_it(history):
    shown = "\n".join(lines("commits", "why", "retry.py"))
    assert "The payment provider needs up to six tries at night." in shown
    assert (
        f"by {history[1][:9]} “perf: simplify”, whose message says no more than that."
        in " ".join(shown.split())
    )
    assert "    MAX_ATTEMPTS = 7" in shown
    assert lines("commits", "why", "retry.py", "--function", "other") == [
        "No commit states a reason for what stands there."
    ]


def test_a_commit_is_found_by_the_one_search(history):
    lines("commits", "update")
    shown = "\n".join(lines("search", "payment provider tries at night"))
    assert "fix: retry 7 times" in shown


@pytest.mark.parametrize("words", [("worker", "--once"), ("init",)])
def test_a_worker_and_init_read_the_history(history, words):
    lines(*words)
    shown = lines("commits", "list")
    assert [line.split()[0] for line in shown[2:]] == [sha[:9] for sha in reversed(history)]


def test_why_takes_a_function_behind_the_file(history, tmp_path):
    body = RETRY.format(10).replace("call()", "call(7)")
    Repository(tmp_path / "shop").commit(REASON, retry__py=body)
    assert "payment provider" in "\n".join(lines("commits", "why", "retry.py:retry()"))
    assert lines("commits", "why", "retry.py:other") == [
        "No commit states a reason for what stands there."
    ]


def test_a_file_outside_a_repository_is_refused_with_words(store, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = smara("commits", "why", "a.py")
    assert said.code == 2
    assert "Name a file inside of one." in said.err
