"""What is for one person or one session alone is seen by no other, at any door."""

from __future__ import annotations

import pytest

import smara
from smara.errors import NotFoundError
from smara.knowledge.models import Evidence
from smara.tools import Toolbox
from tests.surfaces.shell import smara as command

WORDS = "Production deploys go through the quokka gateway on port 9431"
FILE = "src/deploy.py"


def opened(where, actor, session=None):
    return smara.open(where, actor=actor, session=session, embedder="off")


def stored(where, **more):
    with opened(where, "ann", "one") as memory:
        added = memory.memories.add(
            WORDS,
            type="gotcha",
            files=[FILE],
            by="person",
            confidence=0.95,
            evidence=[Evidence(quote="$ ssh -L 9431:gateway:22")],
            **more,
        )
        return added.memory.id


def seen(where, memory_id, actor, session=None):
    """Return the doors at which someone comes to see the memory."""
    doors = set()
    with opened(where, actor, session) as memory:
        answer = memory.search("quokka gateway port")
        texts = {
            "list": [each.content for each in memory.memories.list(state="all").memories],
            "find": getattr(memory.memories.find(memory_id), "content", ""),
            "files": [each.content for each in memory.memories.for_files([FILE])],
            "export": [each.content for each in memory.memories.export()],
            "search": [hit.content for hit in answer],
            "pack": memory.pack(answer).text,
            "search memories": [
                each.memory.content for each in memory.search_memories("quokka gateway")
            ],
            "pattern": str(memory.search_pattern("quokka gateway")),
            "start": str(memory.moments.start("other", agent="claude", cwd="/")),
            "preview": memory.moments.preview().text,
            "file touched": str(memory.moments.before_tool("other", "Edit", {"file_path": FILE})),
            "prepared": str(memory.moments.prepared(agent="claude", cwd="/")),
            "tools": Toolbox(memory).call(
                "memory-search", {"action": "search", "query": "quokka gateway port"}
            ),
        }
        doors |= {door for door, text in texts.items() if "9431" in str(text)}
        try:
            memory.memories.get(memory_id)
            memory.memories.why(memory_id)
            doors.add("get")
        except NotFoundError:
            pass
    return doors


@pytest.fixture
def as_bob(where, monkeypatch):
    monkeypatch.setenv("SMARA_DB", where)
    monkeypatch.setenv("SMARA_ACTOR", "bob")


def test_personal_memory_is_its_authors_at_every_door(where):
    memory_id = stored(where, visibility="personal")
    assert {"list", "find", "get", "search", "start", "export"} <= seen(where, memory_id, "ann")
    assert seen(where, memory_id, "bob") == set()


def test_personal_memory_is_not_shown_on_the_command_line_of_another(where, as_bob):
    memory_id = stored(where, visibility="personal")
    for call in (
        ("memories", "list"),
        ("search", "quokka gateway"),
        ("context", "preview"),
        ("memories", "show", memory_id),
        ("memories", "review"),
    ):
        said = command(*call)
        assert "9431" not in said.out + said.err, call


def test_another_cannot_change_a_personal_memory_nor_is_its_own_folded_into_it(where):
    memory_id = stored(where, visibility="personal")
    with opened(where, "bob") as memory:
        with pytest.raises(NotFoundError):
            memory.memories.forget(memory_id, by="person")
        own = memory.memories.remember(WORDS, type="gotcha", files=[FILE])
        assert (own.outcome, own.memory.created_by) == ("added", "bob")


@pytest.mark.parametrize("scope", ["session", "work_unit"])
def test_memory_of_a_session_or_a_unit_of_work_is_seen_in_that_session_alone(where, scope):
    memory_id = stored(where, scope=scope, session_id="one")
    assert {"list", "find", "get", "search"} <= seen(where, memory_id, "ann", "one")
    assert seen(where, memory_id, "ann", "two") == set()
    assert seen(where, memory_id, "ann") == set()


@pytest.mark.parametrize("more", [{}, {"visibility": "project"}, {"scope": "global"}])
def test_memory_of_the_project_is_seen_by_all(where, more):
    memory_id = stored(where, **more)
    assert {"list", "find", "get", "search", "start", "tools"} <= seen(where, memory_id, "bob")


def test_memory_that_is_written_for_another_is_answered_and_then_out_of_sight(where):
    with opened(where, "ann") as memory:
        added = memory.memories.remember(WORDS, visibility="personal", actor="bob")
        assert added.memory.created_by == "bob"
        assert memory.memories.find(added.memory.id) is None
