"""Sessions whose hosts keep a transcript without saying where are stored from it."""

from __future__ import annotations

import shutil

import pytest

import smara
from smara.adapters.hosts.drain import drain
from tests.unit.adapters.foreign import COPILOT, COPILOT_ID, opencode_database
from tests.unit.hosts.hooks import spooled


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("COPILOT_HOME", str(tmp_path / "copilot"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path


@pytest.fixture
def memory(tmp_path):
    with smara.open(tmp_path / "smara.db", durability="normal", token_model="estimate") as memory:
        yield memory


def roles(memory, thread_id):
    return [each.role for each in memory.messages.list(thread_id=thread_id)]


def test_a_session_of_copilot_is_read_from_its_events_in_their_order(memory, home):
    place = home / "copilot" / "session-state" / COPILOT_ID
    place.mkdir(parents=True)
    shutil.copy(COPILOT, place)
    session = {"sessionId": COPILOT_ID, "cwd": "/home/me/shop"}
    spooled(
        str(home / "spool"),
        ("copilot", "userPromptSubmitted", {**session, "prompt": "Make the check pass"}),
        ("copilot", "sessionEnd", {**session, "reason": "complete"}),
    )
    done = drain(memory, str(home / "spool"))
    assert (done.messages, done.jobs_done) == (
        0,
        2,
    )  # the transcript has the prompt, and in its place
    assert roles(memory, COPILOT_ID)[:4] == ["user", "assistant", "assistant", "tool"]


def test_a_session_of_opencode_is_read_from_its_database_and_no_other_one(memory, home):
    (home / "data" / "opencode").mkdir(parents=True)
    opencode_database(home / "data" / "opencode" / "opencode.db")
    session = {"sessionID": "ses_0001", "directory": "/home/me/shop"}
    spooled(
        str(home / "spool"),
        ("opencode", "chat.message", {**session, "prompt": "told by the database, too"}),
        ("opencode", "session.deleted", session),
    )
    assert drain(memory, str(home / "spool")).messages == 0
    assert len(roles(memory, "ses_0001")) > 2
    assert [thread.id for thread in memory.threads.list()] == ["ses_0001"]


def test_without_a_transcript_the_hooks_are_believed(memory, home):
    told = [
        ("copilot", "userPromptSubmitted", {"sessionId": "../elsewhere", "prompt": "one"}),
        ("opencode", "chat.message", {"sessionID": "ses_9", "prompt": "two"}),
    ]
    spooled(str(home / "spool"), *told)
    assert drain(memory, str(home / "spool")).messages == 2
