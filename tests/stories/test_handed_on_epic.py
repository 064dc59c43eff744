"""An epic planned by one agent, begun, cut off, and finished by another: nothing is done twice or forgotten."""

from __future__ import annotations

import pytest

import smara
from smara.errors import TaskBlockedError, TaskClaimedError
from smara.tasks.models import Progress, TaskTotals
from smara.testing import FakeClock

HOUR = 3_600


def titles(tasks):
    return [task.title for task in tasks]


def printed(nodes, depth=0):
    """A tree as text: a mark for what is done, in work or waiting, and the title."""
    lines = []
    for node in nodes:
        mark = {"closed": "x", "in_progress": ">"}.get(node.task.status, "!" if node.is_blocked else " ")
        lines.append(f"{'  ' * depth}[{mark}] {node.relation} {node.task.title}")
        lines += printed(node.nodes, depth + 1)
    return lines


def test_an_epic_is_handed_on_from_an_agent_that_was_cut_off_to_one_that_finishes_it(tmp_path):
    """
    1. Morning: an agent plans an epic with three steps, each needing the one before.
    2. It claims the first step in its conversation, works, and closes it with a summary.
    3. It claims the second, says what it found, and is cut off in the middle.
    4. Another agent starts: the step is still held, and it is told by whom; the epic and the last step have to wait.
    5. Hours later the silent session has lost its claim. The second agent resumes with what the first had said.
    6. The first one comes back too late: it is told who has the step, and what it says belongs to no task.
    7. The second agent finishes everything. The epic was ready only when its steps were done.
    8. Evening: tree, history and search tell the whole story, also from a store opened anew.
    """
    clock = FakeClock()
    path = tmp_path / "smara.db"
    first = smara.open(path, clock=clock, actor="ann", session="morning")
    second = smara.open(path, clock=clock, actor="bob", session="evening")

    def say(memory, text):
        clock.advance(60)
        thread_id = "plan" if memory is first else "resume"
        return memory.messages.add(thread_id=thread_id, role="assistant", content=text)

    # 1
    epic = first.tasks.add("Log in with a password", type="epic", priority=1)
    schema = first.tasks.add("Write the schema", parent=epic.id, labels=["auth"])
    clock.advance(1)
    tokens = first.tasks.add("Store refresh_tokens", parent=epic.id, depends_on=[schema.id], labels=["auth"])
    clock.advance(1)
    form = first.tasks.add("Show the form", parent=epic.id, depends_on=[tokens.id])
    assert titles(first.tasks.ready()) == ["Write the schema"]
    assert titles(first.tasks.critical_path()) == [schema.title, tokens.title, form.title, epic.title]

    # 2
    first.links.claim(schema.short_id, thread_id="plan")
    said = say(first, "LoginSchema goes to src/schemas/auth.ts")
    assert said.task_id == schema.id
    first.tasks.close(schema.id, "LoginSchema in src/schemas/auth.ts, email and password")
    assert say(first, "What is next?").task_id is None

    # 3
    assert first.links.claim(tokens.id, thread_id="plan").holder == "morning"
    hint = say(first, "The table refresh_tokens lacks an index on expires_at; add it before the query")
    assert first.links.active("plan").id == tokens.id

    # 4
    clock.advance(HOUR)
    with pytest.raises(TaskClaimedError) as held:
        second.links.claim(tokens.id, thread_id="resume")
    assert (held.value.holder, held.value.brief) == ("morning", "Already claimed by session morning")
    for waiting in (form, epic):
        with pytest.raises(TaskBlockedError):
            second.tasks.claim(waiting.id)
    assert second.tasks.claim_next() is None

    # 5
    clock.advance(4 * HOUR)
    assert titles(second.tasks.ready()) == ["Store refresh_tokens"]
    resumed = second.links.claim(tokens.id, thread_id="resume")
    assert resumed.holder == "evening"
    assert [linked.message.id for linked in second.links.messages(tokens.id)] == [hint.id]
    assert "index on expires_at" in second.search("what about expires_at?", task_id=tokens.id)[0].content

    # 6
    with pytest.raises(TaskClaimedError) as lost:
        first.tasks.close(tokens.id, "Thought it was still mine")
    assert lost.value.holder == "evening"
    assert say(first, "Am I still on it?").task_id is None

    # 7
    assert say(second, "Index on expires_at is there; the query uses it").task_id == tokens.id
    second.tasks.close(tokens.id, "refresh_tokens with an index on expires_at")
    assert second.tasks.progress(epic.id) == Progress(2, 3)
    assert titles(second.tasks.ready()) == ["Show the form"]
    second.links.claim(second.tasks.ready()[0].id, thread_id="resume")
    second.tasks.close(form.id, "LoginForm in src/ui/login.tsx")
    assert titles(second.tasks.ready()) == ["Log in with a password"]
    second.tasks.close(epic.id, "Users log in with email and password")
    first.close()
    second.close()

    # 8
    with smara.open(path, clock=clock) as memory:
        assert memory.tasks.totals() == TaskTotals(closed=4)
        assert printed(memory.tasks.tree(epic.id))[:2] == [
            "[x] root Log in with a password",
            "  [x] child Write the schema",
        ]
        told = [(event.kind, event.session_id) for event in reversed(memory.tasks.history(tokens.id))]
        kinds = ["created", "claimed", "expired", "claimed", "closed"]
        assert [kind for kind, _ in told] == kinds
        assert [session for kind, session in told if kind != "expired"] == ["morning", "morning", "evening", "evening"]
        spoken = [linked.message.raw_content for linked in memory.links.messages(tokens.id)]
        assert [text.split(";")[0] for text in spoken] == [
            "The table refresh_tokens lacks an index on expires_at",
            "Index on expires_at is there",
        ]
        assert titles(hit.task for hit in memory.search_tasks("refresh tokens expires_at", limit=1).hits) == [
            tokens.title
        ]
        assert memory.integrity() == []
