"""What was erased does not come back, by whichever way it is told again."""

from __future__ import annotations

import json
import os

import pytest

from smara.adapters.git_history import import_history
from smara.adapters.hosts import spool
from smara.adapters.hosts.drain import drain
from smara.adapters.importer import Importer
from smara.adapters.replay import Learner
from smara.core.events import HostEvent
from smara.errors import NotFoundError
from smara.tasks.models import NewTask
from tests.contract.both import EACH_DATABASE
from tests.contract.filled_tables import fill
from tests.contract.test_archives import checksums
from tests.contract.test_erasing import CANARY, leaks, say
from tests.contract.test_git_history_import import WHY, Repository

pytestmark = EACH_DATABASE
AT_MS = 1_772_442_000_000  # 2026-03-02T09:00:00Z


@pytest.fixture
def memory(place):
    place.clock.advance((AT_MS + 86_400_000 - place.clock.now_ms()) / 1000)
    return place.open(project="shop", embedder="off", models_enabled=False)


def transcript(path, session_id="s1", day=2):
    """A session of Codex in which a push fails by a canary, and another one works."""
    stamp = f"2026-03-{day:02}T09:00:"
    meta = {"id": session_id, "session_id": session_id, "cwd": "/home/me/shop"}
    words = [{"type": "input_text", "text": f"Push the branch of {CANARY}"}]
    lines = [
        ("session_meta", {**meta, "timestamp": f"{stamp}00Z"}),
        ("response_item", {"type": "message", "role": "user", "content": words}),
    ]
    steps = (
        ("git push", 128, f"fatal: The branch {CANARY} has no upstream branch."),
        (f"git push --set-upstream origin {CANARY}", 0, f"branch '{CANARY}' set up to track."),
    )
    for number, (command, code, output) in enumerate(steps):
        call_id = f"{session_id}-{number}"
        call = {"type": "function_call", "name": "exec_command", "call_id": call_id}
        call["arguments"] = json.dumps({"cmd": command})
        text = f"Wall time: 1.0 seconds\nProcess exited with code {code}\nOutput:\n{output}"
        result = {"type": "function_call_output", "call_id": call_id, "output": text}
        lines += [("response_item", call), ("response_item", result)]
    records = (
        {"timestamp": f"{stamp}{number:02}Z", "type": kind, "payload": payload}
        for number, (kind, payload) in enumerate(lines)
    )
    path.write_text("".join(json.dumps(each) + "\n" for each in records))
    return path


def read(memory, clock, *paths):
    learner = Learner(memory, clock=clock)
    reports = [Importer(memory, learner=learner).import_file(path) for path in paths]
    learner.finish()
    return reports


def test_a_transcript_that_is_read_again_brings_back_neither_words_nor_lessons(
    memory, clock, tmp_path
):
    paths = [transcript(tmp_path / f"{name}.jsonl", name) for name in ("s1", "s2")]
    read(memory, clock, *paths)
    assert memory.behavior.session("s1").state == "final"
    assert leaks(memory, CANARY)
    memory.privacy.erase(threads=["s1", "s2"])
    assert leaks(memory, CANARY) == []
    reports = read(memory, clock, *paths)
    assert leaks(memory, CANARY) == []
    assert memory.threads.list() == []
    with pytest.raises(NotFoundError):
        memory.behavior.session("s1")
    assert [each.stored for each in reports] == [0, 0]
    assert reports[0].counted["erased", "messages of an erased session"] == 5
    assert reports[0].refused == []


def test_a_session_that_goes_on_is_watched_again_from_then_on(memory, clock, tmp_path):
    read(memory, clock, transcript(tmp_path / "a.jsonl"))
    memory.privacy.erase(threads=["s1"])
    clock.advance(86_400)
    read(memory, clock, transcript(tmp_path / "b.jsonl", day=4))
    assert memory.behavior.session("s1").state
    assert memory.threads.get("s1").message_count == 5


def test_events_that_waited_in_the_spool_are_dropped_with_their_receipts(memory, tmp_path):
    folder = str(tmp_path / "spool")
    payload = {"session_id": "s1", "cwd": "/home/me/shop", "prompt": f"Ask {CANARY}"}
    told = {
        "point": "start", "text": f"Known: {CANARY}", "agent": "claude", "tokens": 3,
        "items": [{"kind": "memory", "id": "m1", "text": CANARY, "why": "", "tokens": 3}],
    }  # fmt: skip
    notice = {"session_id": "s1", "source": "startup", "told": told}
    say(memory, f"{CANARY} was here", "s1")
    spool.put(folder, "claude", "UserPromptSubmit", json.dumps(payload).encode(), "shop")
    spool.put(folder, "smara", "told", json.dumps(notice).encode(), "shop")
    for path in (tmp_path / "spool").glob("*.event"):  # as old as the session
        facts, _, rest = path.read_bytes().partition(b"\n")
        _, agent, event, _, *places = facts.split(b"\t")
        old = b"\t".join((spool.FORMAT, agent, event, str(AT_MS).encode(), *places))
        path.write_bytes(old + b"\n" + rest)
    memory.privacy.erase(threads=["s1"])
    drain(memory, folder)
    assert leaks(memory, CANARY) == []
    left = [name for _, _, files in os.walk(folder) for name in files if "round" not in name]
    assert left == []


def test_what_a_process_still_had_in_mind_is_not_written_after_the_erase(memory):
    say(memory, "Before", "s1")
    event = HostEvent("claude", "prompt", "s1", at_ms=AT_MS, prompt=CANARY, key="s1:prompt:1")
    memory.behavior.observe(event)
    memory.privacy.erase(threads=["s1"])
    memory.behavior.checkpoint("other")
    memory.behavior._watcher.flush()
    with pytest.raises(NotFoundError):
        memory.behavior.session("s1")


def test_a_message_that_a_hook_told_is_not_filled_from_the_transcript(memory, tmp_path):
    """A transcript has the same words under another id."""
    clean = f"Push the branch of {CANARY}"
    memory.threads.add("s1", metadata={"host": "codex", "told_by": "hooks"})
    given = {"client_id": "hook:1", "created_at": AT_MS, "metadata": {"source": "hook"}}
    message = say(memory, clean, "s1", **given)
    memory.privacy.erase(messages=[message.id])
    path = transcript(tmp_path / "a.jsonl")
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:2]))
    Importer(memory).import_file(path)
    assert leaks(memory, CANARY) == []
    assert memory.threads.get("s1").message_count == 1


def test_an_archive_adds_no_row_of_any_table_that_was_erased(memory, tmp_path):
    fill(memory)
    database = memory.internals.database
    with database.write() as session:
        for table, column in (
            ("observer_error_patterns", "error_message"), ("behavior_signals", "subject"),
            ("task_labels", "label"), ("memory_relations", "path"), ("memories", "content"),
            ("moment_items", "text"), ("working_memory_versions", "content"),
        ):  # fmt: skip
            known = "target_no IS NULL" if table == "memory_relations" else "1 = 1"
            session.run(f"UPDATE {table} SET {column} = ? WHERE {known}", (CANARY,))
    memory.privacy.export(tmp_path / "before.zip")
    memory.privacy.erase(text=CANARY)
    memory.privacy.export(tmp_path / "erased.zip")
    memory.privacy.import_archive(tmp_path / "before.zip")
    assert leaks(memory, CANARY) == []
    memory.privacy.export(tmp_path / "again.zip")
    assert checksums(tmp_path / "again.zip") == checksums(tmp_path / "erased.zip")


def test_an_archive_adds_nothing_of_before_to_a_thread_that_went_on(memory, clock, tmp_path):
    say(memory, f"{CANARY} said this")
    memory.observations.observe("t")
    memory.privacy.export(tmp_path / "a.zip")
    clock.advance(60)
    memory.privacy.erase(threads=["t"])
    clock.advance(60)
    say(memory, "A new beginning")
    memory.privacy.import_archive(tmp_path / "a.zip")
    assert leaks(memory, CANARY) == []
    assert [each.raw_content for each in memory.messages.list(thread_id="t")] == ["A new beginning"]


def test_a_memory_of_the_same_words_from_another_store_is_not_imported(place, memory, tmp_path):
    words = f"{CANARY} always pays late"
    other = place.open(project="bank", embedder="off")
    other.memories.add(words, type="gotcha", evidence=["src/pay.py:3"])
    other.privacy.export(tmp_path / "a.zip")
    added = memory.memories.add(words, type="gotcha", evidence=["src/pay.py:3"])
    other.privacy.erase(is_project=True)
    memory.privacy.erase(memories=[added.memory.id])
    memory.privacy.import_archive(tmp_path / "a.zip", project="shop")
    assert leaks(memory, CANARY) == []


def test_a_task_of_a_tracker_is_not_imported_again(memory):
    task = NewTask(f"Call {CANARY}", short_id="bd-7a2", created_at=AT_MS)
    memory.tasks.put_many([task])
    memory.privacy.erase(tasks=["bd-7a2"])
    done = memory.tasks.put_many([task, NewTask("Paint", short_id="bd-8", created_at=AT_MS)])
    assert done.added == 1
    assert [each.why for each in done.refused] == ["it was erased here"]
    assert leaks(memory, CANARY) == []


def test_a_lesson_of_the_history_of_a_repository_is_not_learned_again(memory, tmp_path):
    repository = Repository(tmp_path / "r")
    repository.commit("Begin", "src/till.py")
    repository.commit(f"Open the file in binary mode\n\n{WHY}", "src/till.py")
    import_history(memory, repository.root)
    (learned,) = memory.memories.list(state="all")
    memory.privacy.erase(memories=[learned.id])
    import_history(memory, repository.root)
    assert not memory.memories.list(state="all").memories
