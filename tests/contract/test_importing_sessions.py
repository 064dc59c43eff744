"""Transcripts of other agents are stored and learned from once, on both databases."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from smara.adapters.importer import Importer
from smara.adapters.replay import Learner
from smara.context.moments.draft import memory_line
from smara.core.events import HostEvent
from smara.knowledge.trust import Tellable
from smara.messages.models import NewMessage, NewThread
from tests.contract.both import ON_BOTH
from tests.unit.adapters.foreign import (
    CODEX,
    CODEX_AGENT,
    CODEX_ID,
    CODEX_SUB,
    ONE_OF_EACH,
    OPENCODE,
)

pytestmark = ON_BOTH

DAY_MS = 86_400_000
AT_MS = 1_772_442_000_000  # 2026-03-02, when the sessions of the fixtures were held


@pytest.fixture
def memory(place):
    place.clock.advance((AT_MS + DAY_MS - place.clock.now_ms()) / 1000)
    return place.open(models_enabled=False, embedder="off")


def session(number: int, *more: tuple[str, int, str]) -> str:
    """A session of Codex in which a push fails, and another one works."""
    meta = {
        "id": f"s{number}",
        "session_id": f"s{number}",
        "cwd": "/home/me/shop",
        "timestamp": "2026-03-02T09:00:00Z",
    }
    lines = [{"timestamp": "2026-03-02T09:00:00Z", "type": "session_meta", "payload": meta}]
    prompt = {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": "Push it"}],
    }
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
        lines += [
            {"timestamp": at, "type": "response_item", "payload": each} for each in (call, result)
        ]
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


def test_a_session_is_learned_from_whose_id_is_the_beginning_of_others(memory, place, tmp_path):
    for number in (1001, 1002, 100):
        path = tmp_path / f"rollout-2026-03-02T09-00-00-s{number}.jsonl"
        path.write_text(session(number))
        _, learned = run(memory, place.clock, path)
        assert (learned.sessions, learned.problems) == (1, [])
    assert memory.behavior.session("s100").session_id == "s100"


def test_what_is_imported_has_the_date_of_its_evidence_and_fades_from_there(
    memory, place, tmp_path
):
    place.clock.advance(60 * DAY_MS / 1000)
    paths = [tmp_path / f"rollout-2026-03-02T09-00-00-s{number}.jsonl" for number in (1, 2)]
    for number, path in enumerate(paths, 1):
        path.write_text(session(number))
    run(memory, place.clock, *paths)
    (found,) = memory.memories.list(state="all")
    assert "(noted 2026-03-02" in memory_line(Tellable(found, None, 1.0))
    why = memory.memories.why(found.id)
    told = "\n".join(why.lines())
    assert "60 days since it was seen" in told
    assert "to be reviewed: it comes from the output of tools\n" in told
    assert why.confidence.value < 0.55 * found.confidence
    (hit,) = memory.search("git push", sources=("memory",))
    assert (hit.created_at // DAY_MS, found.created_at // DAY_MS) == (20514, 20575)
    assert memory.memories.trust().sessions == 2
    run(memory, place.clock, *paths)
    assert memory.memories.trust().sessions == 2  # a session counts once


def test_a_session_that_went_on_is_learned_from_where_it_was_left(memory, place, tmp_path):
    path = tmp_path / "rollout-2026-03-02T09-00-00-s1.jsonl"
    path.write_text(session(1))
    run(memory, place.clock, path)
    events = memory.behavior.session("s1").events
    path.write_text(
        session(1, ("make", 2, "make: *** No rule to make target"), ("make all", 0, "done"))
    )
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
    hooked = NewMessage(
        "assistant",
        words,
        "hook:ses_0001:turn_end:x",
        created_at=AT_MS,
        task_id=None,
        metadata={"source": "hook"},
    )
    memory.messages.append_batch(told, [hooked])
    for stored in (9, 0):
        report = Importer(memory).import_file(OPENCODE)
        assert report.counted["repeat", "words that a hook has told already"] == 1
        assert (report.stored, report.stored + report.repeated) == (stored, 9)
    texts = [message.raw_content for message in memory.messages.list(thread_id="ses_0001")]
    assert texts.count(words) == 1


@pytest.mark.parametrize("agent", ["copilot", "gemini"])
def test_calls_that_hooks_told_of_without_an_id_are_not_counted_again(memory, place, agent):
    Importer(memory).import_file(ONE_OF_EACH[agent])
    (held,) = {each.metadata.get("session") or each.id for each in memory.threads.list()}
    last = max(each.created_at for each in memory.messages.list(thread_id=held))
    told = HostEvent(
        agent,
        "tool_post",
        held,
        at_ms=last + 1,
        tool="Bash",
        tool_input={"command": "make"},
        key="k",
    )
    memory.behavior.observe_batch([told])
    _, learned = run(memory, place.clock, ONE_OF_EACH[agent])
    assert learned.events == 0


def test_a_run_that_was_stopped_before_it_decided_is_made_up_for_by_the_next(
    memory, place, tmp_path
):
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


def planted(value, secret):
    """The same with a secret behind every text that is no name."""
    names = {
        "type",
        "role",
        "id",
        "sessionId",
        "session_id",
        "timestamp",
        "kind",
        "status",
        "messageID",
        "sessionID",
    }
    if isinstance(value, dict):
        return {key: each if key in names else planted(each, secret) for key, each in value.items()}
    if isinstance(value, list):
        return [planted(each, secret) for each in value]
    return f"{value} {secret}" if isinstance(value, str) and value else value


def planted_line(line, secret):
    try:
        return json.dumps(planted(json.loads(line), secret), indent=1 if "\n" in line else None)
    except ValueError:
        return line  # the fixtures have broken ones, too


def test_no_secret_of_a_transcript_is_stored_wherever_it_stands(memory, place, tmp_path):
    secret = "ghp_0123456789abcdefghijklmnopqrstuvwxyzAB"
    for name in sorted(set(ONE_OF_EACH) - {"opencode"}):
        text = ONE_OF_EACH[name].read_text(encoding="utf-8")
        path = tmp_path / ONE_OF_EACH[name].name
        lines = [text] if path.suffix == ".json" else text.splitlines()
        path.write_text("".join(planted_line(line, secret) + "\n" for line in lines))
        stored, _ = run(memory, place.clock, path)
        assert stored, name
    for thread in memory.threads.list():
        assert secret not in repr(
            (thread.title, thread.metadata, memory.messages.list(thread_id=thread.id))
        )


def test_two_imports_of_the_same_sessions_at_once_store_each_message_once(place, memory, tmp_path):
    paths = [tmp_path / f"rollout-2026-03-02T09-00-00-s{number}.jsonl" for number in range(4)]
    for number, path in enumerate(paths):
        path.write_text(session(number))
    others = [place.open(models_enabled=False, embedder="off") for _ in range(2)]
    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(lambda other: run(other, place.clock, *paths), others))
    assert (
        sum(stored for stored, _ in done)
        == sum(thread.message_count for thread in memory.threads.list())
        == 20
    )
    assert run(memory, place.clock, *paths)[0] == 0
    assert {each.state for each in memory.behavior.sessions()} == {"final"}


def test_a_file_that_grows_while_it_is_read_is_finished_by_the_next_import(memory, place, tmp_path):
    whole = session(1)
    path = tmp_path / "rollout-2026-03-02T09-00-00-s1.jsonl"
    for end in range(0, len(whole) + 97, 97):
        path.write_text(whole[:end])
        Importer(memory).import_file(path)
    (thread,) = memory.threads.list()
    texts = [message.raw_content for message in memory.messages.list(thread_id=thread.id)]
    assert len(texts) == 5
    other = place.open(project="other", models_enabled=False, embedder="off")
    Importer(other).import_file(path)
    assert [message.raw_content for message in other.messages.list(thread_id=thread.id)] == texts


def test_which_client_ids_a_thread_has_is_told_without_the_messages(memory):
    messages = [NewMessage("user", f"word {number}", f"id-{number}") for number in range(3)]
    memory.messages.append_batch(NewThread("t1"), messages)
    assert memory.messages.known_client_ids("t1", ["id-0", "id-2", "id-9"]) == {"id-0", "id-2"}
    assert (
        memory.messages.known_client_ids("t2", ["id-0"])
        == memory.messages.known_client_ids("t1", [])
        == set()
    )


SECRET = "ghp_" + "wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx"


def test_ids_that_hold_a_secret_are_not_stored_and_still_known_again(memory, tmp_path):
    path = tmp_path / "talk.jsonl"
    lines = [
        {
            "thread": f"run {SECRET}",
            "resource": SECRET,
            "parent": f"p-{SECRET}",
            "id": f"{SECRET}-{number}",
        }
        for number in (1, 2)
    ]
    path.write_text(
        "".join(
            json.dumps({**each, "role": "user", "content": "Hello there"}) + "\n" for each in lines
        )
    )
    first = Importer(memory).import_file(path)
    again = Importer(memory).import_file(path)
    assert (first.stored, again.stored, again.repeated) == (2, 0, 2)
    (thread,) = memory.threads.list()
    stored = memory.messages.list(thread_id=thread.id)
    told = json.dumps(
        [[thread.id, thread.resource_id, thread.parent_id], *([each.client_id] for each in stored)]
    )
    assert SECRET not in told
