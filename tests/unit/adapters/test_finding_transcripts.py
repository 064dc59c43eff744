"""Where the agents keep their transcripts, and which of them belong to a folder."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest

from smara.adapters.host import Here
from smara.adapters.host_specs import TRANSCRIPTS
from smara.adapters.importer import expand, find
from smara.errors import InvalidInputError
from tests.unit.adapters.foreign import CODEX, GEMINI, GENERIC, opencode_database, put_homes, touch


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """A repository, and a home in which all agents have worked in it."""
    repository = tmp_path / "shop"
    repository.mkdir()
    subprocess.run(["git", "init", "-q", str(repository)], check=True)
    for name, value in put_homes(tmp_path / "home", str(repository)).items():
        monkeypatch.setenv(name, value)
    return repository


def test_each_agents_sessions_are_found_with_their_folder(shop):
    here = Here(str(shop))
    counts = {host: len(find([host], here)[0]) for host in TRANSCRIPTS}
    assert counts == {
        "claude-code": 1,
        "codex": 2,
        "gemini": 4,
        "copilot": 1,
        "opencode": 2,
        "pi": 1,
    }
    assert all(here.has(each.cwd) for host in TRANSCRIPTS for each in find([host], here)[0])


def test_those_of_other_folders_are_left_out_and_counted(shop, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    assert find(tuple(TRANSCRIPTS), Here(str(other))) == ([], 11)
    everything, left_out = find(tuple(TRANSCRIPTS), Here(str(other)), everywhere=True)
    assert (len(everything), left_out) == (11, 0)
    inside = shop / "src" / "deep"
    inside.mkdir(parents=True)
    assert len(find(tuple(TRANSCRIPTS), Here(str(inside)))[0]) == 11


def test_the_newest_session_comes_first_and_sub_agents_before_theirs(shop, tmp_path):
    folder = tmp_path / "home" / ".codex" / "sessions" / "2026" / "03" / "02"
    newest = folder / "rollout-2026-03-03T00-00-00-0195f3a1-7c00-7000-8000-0000000000ff.jsonl"
    meta = {
        "timestamp": "2026-03-03T00:00:00Z",
        "type": "session_meta",
        "payload": {"id": "newest", "cwd": str(shop)},
    }
    newest.write_text(json.dumps(meta) + "\n")
    for path in folder.iterdir():
        touch(path, 1_000)
    touch(newest, 2_000)
    found, _ = find(["codex"], Here(str(shop)), everywhere=True)
    assert [(each.session_id[-2:], each.is_subagent) for each in found] == [
        ("st", False),
        ("01", True),
        ("01", False),
    ]


def test_the_newest_comes_first_whichever_agent_it_is_of(shop, tmp_path):
    files = [path for path in (tmp_path / "home").rglob("*") if path.is_file()]
    for path in files:
        touch(path, 1_000)
    chat = next(path for path in files if path.name == GEMINI.name)
    touch(chat, 2_000)
    assert find(("claude-code", "codex", "gemini"), Here(str(shop)))[0][0].path == str(chat)


def test_sessions_that_moved_into_the_database_are_found_once(shop, tmp_path):
    home = tmp_path / "home" / "data" / "opencode"
    opencode_database(home / "opencode.db", home / "storage")
    found, _ = find(["opencode"], Here(str(shop)), everywhere=True)
    assert [(each.only, each.is_subagent) for each in found] == [
        ("ses_0002", True),
        ("ses_0001", False),
    ]
    assert {each.path for each in found} == {str(home / "opencode.db")}


def test_where_there_are_no_agents_nothing_is_found(tmp_path, monkeypatch):
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CONFIG_DIR", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "nowhere"))
    assert find(tuple(TRANSCRIPTS), Here(str(tmp_path))) == ([], 0)


def test_a_folder_stands_for_the_transcripts_in_it_and_for_nothing_else(tmp_path):
    for name, content in {
        "package.json": '{\n"name": "x"\n}',
        "talk.jsonl": '{"role": "user", "content": "x"}',
        "a.db": "x",
    }.items():
        (tmp_path / name).write_text(content)
    with pytest.raises(InvalidInputError, match="a folder without transcripts"):
        expand([str(tmp_path)])
    for number, sample in enumerate((CODEX, GEMINI)):
        shutil.copy(sample, tmp_path)
        touch(tmp_path / sample.name, 1_000 + number)
    (tmp_path / "node_modules").mkdir()
    shutil.copy(CODEX, tmp_path / "node_modules")
    named = str(GENERIC / "openai.json")
    assert expand([str(tmp_path), named]) == [
        str(tmp_path / GEMINI.name),
        str(tmp_path / CODEX.name),
        named,
    ]


def test_a_folder_without_a_repository_holds_what_is_below_it(tmp_path):
    here = Here(str(tmp_path))
    assert here.has(str(tmp_path / "below"))
    assert not here.has(str(tmp_path.parent))
    assert not here.has("")
