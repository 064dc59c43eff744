"""`smara init` reads in stages: here or in the background, resumable, one run at a time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from smara.memory import open_memory
from smara.surfaces.cli.commands.worker import hold_instance
from smara.surfaces.terminal.stage_record import StageRecord, stage_line
from smara.surfaces.terminal.stages import InitRun
from tests.surfaces.shell import command, environment, on_terminal, plain, smara, spawn

MANY = 100_000


@pytest.fixture
def work(db: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a repository with code, history and an instruction file."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("SMARA_PROJECT", "auto")
    (folder / "cart.py").write_text("def total():\n    return 1\n")
    (folder / "AGENTS.md").write_text("# Rules\n\n- Always run the tests with `make test`.\n")
    who = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "Add the cart"]):
        subprocess.run(["git", *who, *words], check=True)
    return folder


def currency() -> dict[str, Any]:
    return spawn("status", "--json").data["currency"]


def record() -> StageRecord:
    with open_memory() as memory:
        return StageRecord(memory.project)


def test_in_the_background_the_prompt_is_back_and_the_process_ends_by_itself(work):
    said = spawn("init", "--yes", "--background")
    assert (said.code, said.err) == (0, "")
    assert "Reading in the background (just started)" in said.out
    assert "smara import" not in said.out, "the sessions are being read already"
    for _ in range(MANY):
        now = currency()
        if now["code"]["state"] == "ready" and now["reading"] is None:
            break
    assert (now["code"]["files"], now["commits"]) == (2, {"total": 1, "behind": 0})


def test_a_run_that_was_killed_is_gone_on_with_at_once(work):
    process = subprocess.Popen(
        command("init", "--reading"), stdout=subprocess.DEVNULL, env=environment()
    )
    path = Path(record().path)
    for _ in range(MANY):
        if path.exists() or process.poll() is not None:
            break
    process.send_signal(signal.SIGKILL)
    process.wait()
    said = spawn("init", "--yes")
    assert said.code == 0
    assert "Reading in the background" not in said.out
    now = currency()
    assert (now["code"]["state"], now["reading"]) == ("ready", None)


def test_status_says_where_a_run_that_is_not_renewed_stopped(work):
    place = record()
    place.put({"stage": "code", "done": 5, "total": 10, "left": ["vectors"], "error": ""})
    assert "reading\tcode, 50 %, then vectors\n" in smara("status").out
    facts = json.loads(Path(place.path).read_text())
    facts["updatedAt"] -= 60_000
    Path(place.path).write_text(json.dumps(facts))
    assert "reading\tstopped at code, 50 %; `smara init` goes on\n" in smara("status").out
    assert smara("init", "--yes").code == 0
    assert "reading" not in smara("status").out


def test_a_second_run_leaves_the_reading_to_the_first(work):
    with open_memory() as memory, hold_instance(
        memory, "init", threading.Event(), project=memory.project
    ):  # fmt: skip
        said = spawn("init", "--yes")
    assert "Reading in the background (just started)" in said.out
    assert currency()["code"]["state"] == "none"


def test_an_interrupt_keeps_what_was_read_and_is_told(work, monkeypatch):
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(InitRun, "read_history", interrupt)
    said = smara("init", "--yes")
    assert said.code == 0
    assert "Stopped. What was read stays" in said.out
    assert "reading\tstopped at history (interrupted); `smara init` goes on" in smara("status").out
    assert currency()["code"]["state"] == "ready"


def test_instruction_files_are_offered_and_imported_only_on_request(work):
    said = smara("init", "--yes", "--no-read")
    assert "Found    AGENTS.md (1 new statement)" in said.out
    assert "smara memories import" in said.out
    assert smara("memories", "list", "--json").data["memories"] == []
    seen = plain(on_terminal("init", typed="y\ny\n", cwd=str(work)).out)
    assert "Import 1 statement of AGENTS.md, for review? [y/N]:" in seen
    assert "Imported 1 statement to review." in seen
    assert len(smara("memories", "list", "--json").data["memories"]) == 1
    assert "AGENTS.md (imported)" in smara("init", "--yes").out


def test_a_stage_ends_within_its_bound(work, tmp_path, monkeypatch):
    """Sessions are imported twenty at a time; after the bound no further twenty are begun."""
    folder = tmp_path / "home/.claude/projects/work"
    folder.mkdir(parents=True)
    for number in range(45):
        name = f"5e55{number:04d}-0000-4000-8000-00000000000a"
        line = {
            "type": "user", "sessionId": name, "uuid": name, "cwd": os.getcwd(), "version": "2.1",
            "timestamp": "2026-02-03T10:01:00.000Z",
            "message": {"role": "user", "content": f"Question {number}"},
        }  # fmt: skip
        (folder / f"{name}.jsonl").write_text(json.dumps(line) + "\n")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "home/.claude"))
    ticks = iter(range(0, 10**9, 1_000))
    with pytest.MonkeyPatch.context() as clock:
        clock.setattr(time, "monotonic", lambda: next(ticks))
        assert smara("init", "--yes").code == 0
    assert smara("status", "--json").data["messages"] == 20
    assert smara("init", "--yes").code == 0
    assert smara("status", "--json").data["messages"] == 45


def test_a_line_tells_the_stage_its_share_and_what_follows():
    facts = {"stage": "vectors", "done": 0, "total": 0, "left": [], "error": "", "isRunning": True}
    assert stage_line(facts) == "vectors"
    assert stage_line({**facts, "isRunning": False, "error": "no space left"}) == (
        "stopped at vectors (no space left); `smara init` goes on"
    )


def _write_talk(place: Path, number: int, cwd: Path, turns: Sequence[tuple[str, str]]) -> None:
    rows = [
        {
            "type": role,
            "sessionId": f"{number:08}-0000-4000-8000-000000000000",
            "uuid": f"{number:08}-0000-4000-8000-{place_of:012}",
            "timestamp": f"2026-03-{number:02}T09:{place_of:02}:00.000Z",
            "cwd": str(cwd),
            "message": {"role": role, "content": text},
        }
        for place_of, (role, text) in enumerate(turns)
    ]
    name = place / f"{rows[0]['sessionId']}.jsonl"
    name.write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def test_decisions_are_read_when_all_sessions_are_in_so_that_amendments_come_after(
    work, monkeypatch
):
    place = Path(os.environ["HOME"]) / ".claude" / "projects" / str(work).replace("/", "-")
    place.mkdir(parents=True)
    first = (
        ("user", "We settle how hide_rows treats a mark before the move of the archive."),
        ("assistant", "hide_rows drops every marked row today. Is the case of a mark telling?"),
        ("user", "Never fold the case, the auditors match it exactly. The marks are deliberate."),
        ("assistant", "Then marks keep their case. Does a mark drop the row for all lists?"),
        ("user", "Yes, hidden means hidden, everywhere. A mark that matches nothing is fine."),
        ("assistant", "Settled: hide_rows keeps the case, and a marked row is hidden everywhere."),
    )
    second = (
        ("user", "hide_rows has to change: the head office loses rows that a branch has marked."),
        ("assistant", "Shall a mark count for the branch alone?"),
        ("user", "It counts for the lists below the branch only, never for those above it."),
        (
            "assistant",
            "Amended rule in full, superseding the original: hide_rows keeps the case, and a mark"
            " counts only for lists below its branch.",
        ),
        ("user", "Yes, that is the rule."),
    )
    _write_talk(place, 1, work, first)
    for number in range(2, 25):
        _write_talk(place, number, work, (("user", "Hello."), ("assistant", "Hello.")))
    _write_talk(place, 25, work, second)

    def interrupt(self: InitRun, tell: Any = None) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(InitRun, "read_history", interrupt)  # the sessions are in by then
        smara("init", "--yes")
    with open_memory() as memory:
        assert len(list(memory.threads.list(limit=50))) == 25
        assert not memory.decisions.list()
    assert spawn("init", "--yes").code == 0
    rules = " ".join(
        text
        for each in spawn("decisions", "list", "--json").data
        for text in (each["rule"], *each["quotations"])
    )
    assert "below its branch" in rules
    assert "hidden means hidden" not in rules


@pytest.mark.parametrize("what", ["--whole-project", "--thread"])
def test_what_was_erased_does_not_come_back_by_another_init(work, what):
    place = Path(os.environ["HOME"]) / ".claude" / "projects" / str(work).replace("/", "-")
    place.mkdir(parents=True)
    talk = (("user", "Where is the cellar key?"), ("assistant", "Behind the fuse box."))
    _write_talk(place, 1, work, talk)
    assert spawn("init", "--yes").code == 0
    with open_memory() as memory:
        (thread,) = memory.threads.list()
    words = ["--whole-project"] if what == "--whole-project" else ["--thread", thread.id]
    assert spawn("erase", *words, "--yes").code == 0
    _write_talk(place, 2, work, (("user", "What is new?"), ("assistant", "Nothing.")))
    assert spawn("init", "--yes").code == 0
    with open_memory() as memory:
        assert [each.title for each in memory.threads.list()] == ["What is new?"]
        assert not memory.search("cellar key fuse box")
