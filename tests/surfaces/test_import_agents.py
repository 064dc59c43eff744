"""``smara import`` of what other agents have kept: found by itself, or given as files."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from smara.adapters import lines
from tests.surfaces.shell import on_terminal, plain, smara, spawn
from tests.unit.adapters.foreign import (
    CODEX,
    CODEX_ID,
    FIXTURES,
    GEMINI,
    GEMINI_ID,
    GENERIC,
    OPENCODE,
    opencode_database,
    put_homes,
)


@pytest.fixture
def shop(db, tmp_path, monkeypatch) -> Path:
    """A repository in which all agents have worked, and the current folder."""
    repository = tmp_path / "shop"
    repository.mkdir()
    subprocess.run(["git", "init", "-q", str(repository)], check=True)
    for name, value in put_homes(tmp_path / "home", str(repository)).items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(repository)
    return repository


@pytest.mark.parametrize(
    ("path", "format", "thread", "words"),
    [
        (CODEX, "codex", CODEX_ID, "rounds to cents"),
        (GEMINI, "gemini", GEMINI_ID, "There is no ruff here"),
        (OPENCODE, "opencode", "ses_0001", "receipt.ts and till.ts"),
        (GENERIC / "openai.json", "json", "conv-1", "18 degrees in Paris"),
    ],
)
def test_a_file_is_known_by_its_looks_and_its_words_are_found(db, path, format, thread, words):
    report = smara("import", str(path), "--json").data["files"][0]
    counted = sum(each["lines"] for each in report["counted"])
    assert (report["format"], thread in report["threads"]) == (format, True)
    assert report["lines"] == report["stored"] + report["repeated"] + counted
    assert smara("search", words, "--json").data["results"][0]["threadId"] == thread
    assert smara("import", str(path), "--json").data["stored"] == 0


def test_a_database_is_a_file_too(db, tmp_path):
    database = opencode_database(tmp_path / "opencode.db")
    report = smara("import", str(database), "--json").data["files"][0]
    assert report["threads"] == {"ses_0001": "conversation", "ses_0002": "subagent"}


@pytest.mark.parametrize(
    ("source", "threads"),
    [("codex", 2), ("gemini", 4), ("opencode", 2), ("claude-code", 1), ("copilot", 2), ("pi", 1)],
)
def test_an_agents_sessions_of_this_repository_are_found(shop, source, threads):
    data = smara("import", "--from", source, "--json").data
    assert {each["format"] for each in data["files"]} == {source}
    assert len({thread for each in data["files"] for thread in each["threads"]}) == threads
    assert data["stored"] > 0
    assert smara("import", "--from", source, "--json").data["stored"] == 0


def test_without_a_file_all_agents_are_asked(shop):
    said = spawn("import")
    assert (said.code, said.err) == (0, "")
    table = said.out.split("\n\n")[0].splitlines()
    assert table[0] == "agent\tthreads\tlines\tstored\tknown\tskipped\trefused"
    assert [line.split("\t")[:2] for line in table[1:]] == [
        ["claude-code", "1"],
        ["codex", "2"],
        ["copilot", "2"],
        ["gemini", "4"],
        ["opencode", "2"],
        ["pi", "1"],
    ]


def test_a_dry_run_stores_nothing(shop):
    before = smara("import", "--dry-run", "--json").data
    assert (before["dryRun"], smara("status", "--json").data["messages"]) == (True, 0)
    assert smara("import", "--json").data["stored"] == before["stored"] > 30
    assert smara("import", "--dry-run", "--json").data["stored"] == 0
    assert "would store" in smara("import", "--dry-run").out


def test_sessions_of_other_folders_are_left_out_unless_all_are_wanted(shop, tmp_path, monkeypatch):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    said = smara("import").out
    assert "No transcripts of this folder found." in said
    assert "Skipped 11 transcripts of other folders" in said
    assert smara("import", "--all-projects", "--json").data["elsewhere"] == 0
    assert smara("status", "--json").data["messages"] > 30


def test_each_session_goes_into_the_project_of_its_folder(by_folder, shop, tmp_path, monkeypatch):
    monkeypatch.delenv("SMARA_DB", raising=False)
    monkeypatch.setenv("SMARA_HOME", str(tmp_path / "store"))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert smara("import", "--all-projects", "--json").data["stored"] > 30
    assert smara("status", "--json").data["messages"] == 0
    monkeypatch.chdir(shop)
    assert smara("status", "--json").data["messages"] > 30


def test_learning_is_told_and_can_be_left_out(shop):
    assert (
        smara("import", "--from", "codex", "--no-learn", "--json").data["learned"]["sessions"] == 0
    )
    assert smara("import", "--from", "codex", "--json").data["learned"]["sessions"] == 1
    assert [row[0] for row in smara("behavior", "sessions").rows] == [CODEX_ID]


def test_a_file_that_cannot_be_read_does_not_stop_the_others(shop, tmp_path):
    folder = tmp_path / "home" / ".codex" / "sessions" / "2026" / "03" / "02"
    meta = {
        "timestamp": "2026-03-02T09:00:00Z",
        "type": "session_meta",
        "payload": {"id": "x", "cwd": str(shop)},
    }
    good = folder / "rollout-2026-03-02T10-00-00-00000000-0000-4000-8000-000000000000.jsonl"
    good.write_text(json.dumps(meta) + "\n" + "\0" * 40 + "\n{broken\n")
    data = smara("import", "--from", "codex", "--json").data
    assert any(
        each["reason"] == "invalid JSON" for report in data["files"] for each in report["counted"]
    )
    assert data["stored"] > 10


@pytest.fixture
def cold(shop, tmp_path):
    """Two compressed transcripts that are cut off at their beginning."""
    folder = tmp_path / "home" / ".codex" / "sessions" / "2026" / "03" / "02"
    for number in (1, 2):
        (folder / f"rollout-2026-03-02T1{number}-00-00-cold.jsonl.zst").write_bytes(
            b"\x28\xb5\x2f\xfd" + b"\0" * 20
        )


def test_files_whose_compression_nothing_undoes_are_told_of(cold, monkeypatch):
    monkeypatch.setattr(lines, "_find_module", lambda name: None)
    data = smara("import", "--from", "codex", "--json").data
    assert [each["reason"][:39] for each in data["unread"]] == [
        "This file is compressed with zstd. Inst"
    ] * 2
    assert (
        "cold.jsonl.zst and 1 more: This file is compressed"
        in smara("import", "--from", "codex").out
    )


def test_compressed_files_that_are_damaged_are_told_of(cold):
    data = smara("import", "--from", "codex", "--json").data
    counted = [each["reason"] for report in data["files"] for each in report["counted"]]
    assert sum("damaged" in reason for reason in counted) == 2


def test_files_and_a_source_exclude_each_other(db):
    said = smara("import", str(CODEX), "--from", "codex")
    assert said.code == 2
    assert "Give files, or --from" in said.err


def test_a_folder_is_looked_through(db):
    seen = plain(on_terminal("import", str(FIXTURES / "codex"), columns=140).out)
    assert "all 4 files" in seen


def test_secrets_are_redacted_as_everywhere(db, tmp_path):
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    path = tmp_path / CODEX.name
    path.write_text(CODEX.read_text().replace("off by a cent", f"off by {secret}"))
    smara("import", str(path))
    stored = smara("messages", "list", "--thread", CODEX_ID, "--json").out
    assert secret not in stored
