"""What agents are told of decisions and of reasons in commits stands in what was said.

Talks are played through the hooks, real ones are those of SMARA_EVAL_DATA; every line that comes
of them is read by `tests.truth_decisions`, which shares nothing with what wrote it.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import smara
from smara.messages.models import NewMessage, NewThread
from tests.faults.sizes import count
from tests.stores import new_file
from tests.stories.test_truth import Play, Stage, stage
from tests.truth import World, false_statements
from tests.truth_decisions import ALL_SHAPES, DECISION_SHAPES, History
from tests.truth_doors import rows_of

__all__ = ["stage"]
DATA = Path(os.environ.get("SMARA_EVAL_DATA", "/nonexistent")) / "decisions"
DAY_MS = 86_400_000
PROMPT = "late_fee of an invoice is far too high when it was forgotten for a year. Please fix it."


def talk(stage: Stage) -> None:
    """Two talks about one function, of which the second changes one number."""
    play = Play(stage, "first", "late_fee in fees.py grows without end. What do we want there?")
    play.answer("It adds 2 euros a day. Should I cap it, or stop it after a month?")
    play.say("Cap it. A late fee is never more than 40 euros per invoice, whatever the days.")
    play.answer("Got it: late_fee is capped at 40 euros per invoice. And small invoices?")
    play.say("Invoices under 10 euros never get a late fee at all, the letter costs more.")
    play.end("Settled: at most 40 euros per invoice, none for invoices under 10 euros.")
    stage.clock.advance(30 * DAY_MS / 1000)
    play = Play(stage, "second", "About late_fee again: the cap is 60 euros now, not 40.")
    play.end("Understood: late_fee is capped at 60 euros per invoice from now on.")
    stage.clock.advance(DAY_MS / 1000)
    for name in ("first", "second"):
        stage.memory.decisions.read(name)


def lines_of(stage: Stage) -> str:
    """Everything that is told of the talks: at a start, with a message, before a change."""
    moments = stage.memory.moments
    file = str(stage.folder / "shop" / "fees.py")
    texts = [
        stage.told(),
        moments.first_message("third", PROMPT),
        moments.before_tool("fourth", "Edit", {"file_path": file, "old_string": "late_fee"}),
    ]
    return "\n".join(getattr(each, "text", each) or "" for each in texts)


def test_what_a_person_is_said_to_have_decided_stands_in_their_words(stage):
    talk(stage)
    text = lines_of(stage)
    assert "Said by a person on" in text
    assert "60 euros" in text
    assert false_statements(stage.world, text, ALL_SHAPES) == []


@pytest.mark.parametrize(
    ("true", "false"),
    [
        ("60 euros", "90 euros"),
        ("[Memory #m-", "[Memory #m-x"),
        ("Thread second", "Thread first"),
        ("Said by a person on 2", "Said by a person on 1"),
        ("letter costs more", "letter costs nothing"),
    ],
)
def test_a_false_decision_is_caught(stage, true, false):
    talk(stage)
    text = lines_of(stage)
    assert true in text
    assert false_statements(stage.world, text.replace(true, false), ALL_SHAPES)


def rows(name: str) -> list[dict[str, Any]]:
    if not DATA.is_dir():
        return []
    with gzip.open(DATA / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def chats() -> Iterator[list[dict[str, str]]]:
    """Yield the talks of the development data, decoys too."""
    for row in (*rows("tasks"), *rows("decoys")):
        yield from row.get("chats") or ([row["turns"]] if "turns" in row else ())


@pytest.mark.skipif(not DATA.is_dir(), reason="SMARA_EVAL_DATA has no talks")
def test_every_decision_of_real_talks_stands_in_them(tmp_path):
    world, base = World(), 1_760_000_000_000
    found = list(chats())
    some = found[: count(25, len(found))]
    with smara.open(new_file(tmp_path / "store.db"), project="x", embedder="off") as memory:
        for number, turns in enumerate(some):
            at, name = base + number * DAY_MS, f"talk-{number}"
            messages = [
                NewMessage(each["role"], each["text"], f"{name}-{turn}", created_at=at + turn)
                for turn, each in enumerate(turns)
            ]
            memory.messages.append_batch(NewThread(name), messages, compact=False)
            for turn, each in enumerate(turns):
                is_own = each["role"] == "user"
                field = "prompt" if is_own else "last_assistant_message"
                event = "UserPromptSubmit" if is_own else "Stop"
                world.add(at + turn, event, {"session_id": name, field: each["text"]})
            memory.decisions.read(name)
    store = tmp_path / "store.db"
    world.memories = {row["short_id"]: row for row in rows_of(store, "SELECT * FROM memories")}
    lines = [
        row["line"]
        for row in rows_of(
            store,
            "SELECT d.line FROM decisions d JOIN memories m ON m.no = d.memory_no"
            " WHERE m.deprecated_at IS NULL",
        )
    ]
    assert len(lines) >= len(some) // 10
    assert false_statements(world, "\n".join(lines), DECISION_SHAPES) == []


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[History, str]:
    """A repository with a reason that stands and one that was undone, and what is told of them."""
    root = tmp_path / "shop"
    root.mkdir()
    monkeypatch.chdir(root)
    monkeypatch.setenv("GIT_AUTHOR_DATE", "2024-03-02T23:30:00-05:00")
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2024-03-02T23:30:00-05:00")

    def commit(text: str, message: str) -> None:
        (root / "retry.py").write_text(text)
        subprocess.run(["git", "add", "."], check=True)
        person = ["-c", "user.name=Ann", "-c", "user.email=ann@example.com"]
        subprocess.run(["git", *person, "commit", "-qm", message], check=True)

    subprocess.run(["git", "init", "-q"], check=True)
    commit("MAX_ATTEMPTS = 3\nWAIT = 1\n", "Begin")
    commit(
        "MAX_ATTEMPTS = 7\nWAIT = 1\n",
        "fix: retry 7 times\n\nBecause the payment provider needs up to six tries at night.\n",
    )
    commit(
        "MAX_ATTEMPTS = 7\nWAIT = 4\n",
        "Wait four seconds\n\n- The provider locks us out for three seconds after a failure, so"
        " that a shorter\n  pause makes it worse\n- `WAIT` is in seconds because the provider"
        " counts so",
    )
    commit("MAX_ATTEMPTS = 10\nWAIT = 4\n", "perf: simplify")
    with smara.open(new_file(tmp_path / "store.db"), embedder="off") as memory:
        memory.commits.keep_up(60.0)
    notes = [
        note
        for row in rows_of(tmp_path / "store.db", "SELECT facts FROM line_notes")
        for note in json.loads(row["facts"])
    ]
    assert {note["is_undone"] for note in notes} == {True, False}
    return History(root), "\n".join(note["line"] for note in notes)


def test_what_is_told_of_commits_is_what_git_says(history):
    git, text = history
    assert "2024-03-03" in text  # in Greenwich
    assert false_statements(World(), text, git.shapes()) == []


@pytest.mark.parametrize(
    ("true", "false"),
    [
        ("six tries", "nine tries"),
        ("`MAX_ATTEMPTS = 7`", "`MAX_ATTEMPTS = 8`"),
        ("2024-03-03", "2024-03-04"),
        ('"perf: simplify"', '"perf: speed"'),
        ("`MAX_ATTEMPTS = 10` stands", "`MAX_ATTEMPTS = 11` stands"),
        ("counts so", "counts so today"),
    ],
)
def test_a_false_reason_is_caught(history, true, false):
    git, text = history
    assert true in text
    assert false_statements(World(), text.replace(true, false), git.shapes())
