"""An epic planned by one agent, begun, cut off, and finished by another: nothing is done twice or
forgotten.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import smara
from smara.errors import TaskBlockedError, TaskClaimedError
from smara.tasks.models import TaskProgress, TaskTotals
from smara.testing import FakeClock

HOUR = 3_600


def titles(tasks):
    return [task.title for task in tasks]


def printed(nodes, depth=0):
    """A tree as text: a mark for what is done, in work or waiting, and the title."""
    lines = []
    for node in nodes:
        mark = {"closed": "x", "in_progress": ">"}.get(
            node.task.status, "!" if node.is_blocked else " "
        )
        lines.append(f"{'  ' * depth}[{mark}] {node.relation} {node.task.title}")
        lines += printed(node.nodes, depth + 1)
    return lines


class Epic:
    """The store, the two agents that share it, and the epic with its three steps; each part of the
    story a method.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.clock = path, FakeClock()
        self.first = smara.open(path, clock=self.clock, actor="ann", session="morning")
        self.second = smara.open(path, clock=self.clock, actor="bob", session="evening")

    def say(self, memory, text):
        self.clock.advance(60)
        thread_id = "plan" if memory is self.first else "resume"
        return memory.messages.add(thread_id=thread_id, role="assistant", content=text)

    def add(self, title, **given):
        self.clock.advance(1)
        return self.first.tasks.add(title, **given)

    def is_planned(self):
        self.epic = self.add("Log in with a password", type="epic", priority=1)
        self.schema = self.add("Write the schema", parent=self.epic.id, labels=["auth"])
        self.tokens = self.add(
            "Store refresh_tokens",
            parent=self.epic.id,
            depends_on=[self.schema.id],
            labels=["auth"],
        )
        self.form = self.add("Show the form", parent=self.epic.id, depends_on=[self.tokens.id])
        assert titles(self.first.tasks.ready()) == ["Write the schema"]
        steps = (self.schema, self.tokens, self.form, self.epic)
        assert titles(self.first.tasks.critical_path()) == titles(steps)

    def first_step_is_done(self):
        self.first.links.claim(self.schema.short_id, thread_id="plan")
        said = self.say(self.first, "LoginSchema goes to src/schemas/auth.ts")
        assert said.task_id == self.schema.id
        self.first.tasks.close(
            self.schema.id, "LoginSchema in src/schemas/auth.ts, email and password"
        )
        assert self.say(self.first, "What is next?").task_id is None

    def second_step_is_cut_off(self):
        assert self.first.links.claim(self.tokens.id, thread_id="plan").holder == "morning"
        self.hint = self.say(
            self.first,
            "The table refresh_tokens lacks an index on expires_at; add it before the query",
        )
        assert self.first.links.active("plan").id == self.tokens.id

    def nobody_else_may_begin(self):
        self.clock.advance(HOUR)
        with pytest.raises(TaskClaimedError) as held:
            self.second.links.claim(self.tokens.id, thread_id="resume")
        assert (held.value.holder, held.value.brief) == (
            "morning",
            "Already claimed by session morning",
        )
        for waiting in (self.form, self.epic):
            with pytest.raises(TaskBlockedError):
                self.second.tasks.claim(waiting.id)
        assert self.second.tasks.claim_next() is None

    def second_agent_resumes(self):
        self.clock.advance(4 * HOUR)
        assert titles(self.second.tasks.ready()) == ["Store refresh_tokens"]
        assert self.second.links.claim(self.tokens.id, thread_id="resume").holder == "evening"
        assert [linked.message.id for linked in self.second.links.messages(self.tokens.id)] == [
            self.hint.id
        ]
        found = self.second.search("what about expires_at?", task_id=self.tokens.id)
        assert "index on expires_at" in found[0].content

    def first_agent_is_too_late(self):
        with pytest.raises(TaskClaimedError) as lost:
            self.first.tasks.close(self.tokens.id, "Thought it was still mine")
        assert lost.value.holder == "evening"
        assert self.say(self.first, "Am I still on it?").task_id is None

    def second_agent_finishes(self):
        tasks = self.second.tasks
        said = self.say(self.second, "Index on expires_at is there; the query uses it")
        assert said.task_id == self.tokens.id
        tasks.close(self.tokens.id, "refresh_tokens with an index on expires_at")
        assert tasks.progress(self.epic.id) == TaskProgress(2, 3)
        assert titles(tasks.ready()) == ["Show the form"]
        self.second.links.claim(tasks.ready()[0].id, thread_id="resume")
        tasks.close(self.form.id, "LoginForm in src/ui/login.tsx")
        assert titles(tasks.ready()) == ["Log in with a password"]
        tasks.close(self.epic.id, "Users log in with email and password")

    def is_closed(self):
        self.first.close()
        self.second.close()

    def tree_is_told(self, memory):
        assert memory.tasks.totals() == TaskTotals(closed=4)
        assert printed(memory.tasks.tree(self.epic.id))[:2] == [
            "[x] root Log in with a password",
            "  [x] child Write the schema",
        ]

    def history_is_told(self, memory):
        told = [
            (event.kind, event.session_id)
            for event in reversed(memory.tasks.history(self.tokens.id))
        ]
        assert [kind for kind, _ in told] == ["created", "claimed", "expired", "claimed", "closed"]
        assert [session for kind, session in told if kind != "expired"] == [
            "morning",
            "morning",
            "evening",
            "evening",
        ]

    def words_are_found(self, memory):
        spoken = [linked.message.raw_content for linked in memory.links.messages(self.tokens.id)]
        assert [text.split(";")[0] for text in spoken] == [
            "The table refresh_tokens lacks an index on expires_at",
            "Index on expires_at is there",
        ]
        found = memory.search_tasks("refresh tokens expires_at", limit=1).hits
        assert titles(hit.task for hit in found) == [self.tokens.title]


def test_an_epic_is_handed_on_from_an_agent_that_was_cut_off_to_one_that_finishes_it(tmp_path):
    """
    1. Morning: an agent plans an epic with three steps, each needing the one before.
    2. It claims the first step in its conversation, works, and closes it with a summary.
    3. It claims the second, says what it found, and is cut off in the middle.
    4. Another agent starts: the step is still held, and it is told by whom; the epic and the last
      step have to wait.
    5. Hours later the silent session has lost its claim. The second agent resumes with what the
      first had said.
    6. The first one comes back too late: it is told who has the step, and what it says belongs to
      no task.
    7. The second agent finishes everything. The epic was ready only when its steps were done.
    8. Evening: tree, history and search tell the whole story, also from a store opened anew.
    """
    epic = Epic(tmp_path / "smara.db")
    epic.is_planned()  # 1
    epic.first_step_is_done()  # 2
    epic.second_step_is_cut_off()  # 3
    epic.nobody_else_may_begin()  # 4
    epic.second_agent_resumes()  # 5
    epic.first_agent_is_too_late()  # 6
    epic.second_agent_finishes()  # 7
    epic.is_closed()
    with smara.open(epic.path, clock=epic.clock) as memory:  # 8
        epic.tree_is_told(memory)
        epic.history_is_told(memory)
        epic.words_are_found(memory)
        assert memory.internals.database.integrity() == []
