"""Transcripts of other agents are stored and learned from once, on both databases."""

from __future__ import annotations

import json

import pytest

from smara.adapters.importing import Importer
from smara.adapters.warming import Learner
from smara.messages.models import NewMessage, NewThread
from tests.unit.adapters.foreign import CODEX, CODEX_AGENT, CODEX_ID, CODEX_SUB, OPENCODE

DAY_MS = 86_400_000
AT_MS = 1_772_442_000_000  # 2026-03-02, when the sessions of the fixtures were held


@pytest.fixture
def memory(place):
    if place.kind == "model":
        pytest.skip("the model imports nothing")
    place.clock.advance((AT_MS + DAY_MS - place.clock.now_ms()) / 1000)
    return place.open(models_enabled=False, embedder="off")


def session(number: int, *more: tuple[str, int, str]) -> str:
    """A session of Codex in which a push fails, and another one works."""
    meta = {"id": f"s{number}", "session_id": f"s{number}", "cwd": "/home/me/shop", "timestamp": "2026-03-02T09:00:00Z"}
    lines = [{"timestamp": "2026-03-02T09:00:00Z", "type": "session_meta", "payload": meta}]
    prompt = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Push it"}]}
    lines.append({"timestamp": "2026-03-02T09:00:01Z", "type": "response_item", "payload": prompt})
    steps = (
        ("git push", 128, "fatal: The current branch main has no upstream branch."),
        ("git push --set-upstream origin main", 0, "branch 'main' set up to track 'origin/main'."),
        *more,
    )
    for step, (command, code, output) in enumerate(steps, 2):
        call = {"type": "function_call", "name": "exec_command", "call_id": f"c{number}-{step}"}
        call["arguments"] = json.dumps({"cmd": command})
        text = f"Wall time: 1.0 seconds\nProcess exited with code {code}\nOutput:\n{output}"
        result = {"type": "function_call_output", "call_id": call["call_id"], "output": text}
        at = f"2026-03-02T09:00:{step * 5:02}Z"
        lines += [{"timestamp": at, "type": "response_item", "payload": each} for each in (call, result)]
    return "".join(json.dumps(line) + "\n" for line in lines)


def run(memory, clock, *paths, **bounds):
    learner = Learner(memory, clock=clock, **bounds)
    importer = Importer(memory, learner=learner)
    reports = [importer.import_file(path) for path in paths]
    return sum(report.stored for report in reports), learner.finish()


def test_a_second_import_stores_and_learns_nothing(memory, place):
    stored, learned = run(memory, place.clock, CODEX_SUB, CODEX)
    assert (stored, learned.sessions, learned.events > 10) == (19, 1, True)
    assert {thread.id: thread.kind for thread in memory.threads.list()} == {
        CODEX_ID: "conversation",
        CODEX_AGENT: "subagent",
    }
    before = memory.messages.list(thread_id=CODEX_ID)
    stored, learned = run(memory, place.clock, CODEX_SUB, CODEX)
    assert (stored, learned.sessions, learned.events) == (0, 0, 0)
    assert memory.messages.list(thread_id=CODEX_ID) == before


def test_a_dry_run_says_what_is_new_and_writes_nothing(memory):
    dry = Importer(memory, dry_run=True).import_file(CODEX)
    assert (dry.stored, dry.repeated, memory.threads.list()) == (15, 0, [])
    Importer(memory).import_file(CODEX)
    dry = Importer(memory, dry_run=True).import_file(CODEX)
    assert (dry.stored, dry.repeated) == (0, 15)


def test_what_a_past_session_shows_waits_for_review(memory, place, tmp_path):
    paths = [tmp_path / f"rollout-2026-03-02T09-00-00-s{number}.jsonl" for number in (1, 2)]
    for number, path in enumerate(paths, 1):
        path.write_text(session(number))
    _, learned = run(memory, place.clock, *paths)
    assert learned.memories == 1
    (found,) = memory.memories.list(state="all")
    assert "git push --set-upstream origin" in found.content
    assert found.needs_review


def test_a_session_that_went_on_is_learned_from_where_it_was_left(memory, place, tmp_path):
    path = tmp_path / "rollout-2026-03-02T09-00-00-s1.jsonl"
    path.write_text(session(1))
    run(memory, place.clock, path)
    events = memory.behavior.session("s1").events
    path.write_text(session(1, ("make", 2, "make: *** No rule to make target"), ("make all", 0, "done")))
    stored, learned = run(memory, place.clock, path)
    assert (stored, learned.events) == (4, 4)
    assert memory.behavior.session("s1").events == events + 4


def test_one_run_learns_from_so_many_sessions_and_the_next_from_the_rest(memory, place, tmp_path):
    paths = []
    for number in (1, 2, 3):
        paths.append(tmp_path / f"rollout-2026-03-02T09-00-00-s{number}.jsonl")
        paths[-1].write_text(session(number))
    _, learned = run(memory, place.clock, *paths, most_sessions=2)
    assert (learned.sessions, learned.left_out) == (2, 1)
    _, learned = run(memory, place.clock, *paths, most_sessions=2)
    assert (learned.sessions, learned.left_out) == (1, 0)


def test_words_that_hooks_have_told_are_not_stored_again(memory):
    told = NewThread("ses_0001", metadata={"host": "opencode", "told_by": "hooks"})
    words = "It is called from receipt.ts and till.ts."
    hooked = NewMessage("assistant", words, "hook:ses_0001:turn_end:x", AT_MS, None, {"source": "hook"})
    memory.messages.append_batch(told, [hooked])
    for stored in (9, 0):
        report = Importer(memory).import_file(OPENCODE)
        assert report.counted["repeat", "words that a hook has told already"] == 1
        assert (report.stored, report.stored + report.repeated) == (stored, 9)
    texts = [message.raw_content for message in memory.messages.list(thread_id="ses_0001")]
    assert texts.count(words) == 1


def test_a_run_that_was_stopped_before_it_decided_is_made_up_for_by_the_next(memory, place, tmp_path):
    paths = [tmp_path / f"rollout-2026-03-02T09-00-00-s{number}.jsonl" for number in (1, 2)]
    for number, path in enumerate(paths, 1):
        path.write_text(session(number))
    stopped = Importer(memory, learner=Learner(memory, clock=place.clock))
    for path in paths:
        stopped.import_file(path)
    assert {each.state for each in memory.behavior.sessions()} == {"open"}
    _, learned = run(memory, place.clock, *paths)
    assert (learned.events, learned.memories) == (0, 1)
    assert {each.state for each in memory.behavior.sessions()} == {"final"}


def test_a_session_that_may_go_on_is_watched_and_not_decided_on(memory, place, tmp_path):
    place.clock.advance((AT_MS + 60_000 - place.clock.now_ms()) / 1000)
    path = tmp_path / "rollout-2026-03-02T09-00-00-s1.jsonl"
    path.write_text(session(1))
    run(memory, place.clock, path)
    assert memory.behavior.session("s1").state == "open"
