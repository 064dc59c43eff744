"""Methodologies: pieces of work, what is handed on, and the state of unfinished work."""

from __future__ import annotations

import importlib

import pytest

from smara.behavior.methodology import (
    ExecutionContext,
    Relay,
    WorkUnitResult,
    available_methodologies,
    find_methodology,
    tell_relay,
    tell_work_state,
    work_state,
)
from smara.errors import ConfigError, InvalidInputError
from smara.knowledge.kinds import KINDS
from smara.testing import open_temporary
from tests.agent_events import Script


def test_pieces_of_work_have_their_place_and_name():
    native = find_methodology("native").work_unit_of(ExecutionContext(spec="042", subtask="3"))
    assert (native.methodology, native.hierarchy, native.label) == (
        "native",
        ("042", "3"),
        "Spec 042 / Subtask 3",
    )
    assert find_methodology("bmad").work_unit_of(ExecutionContext(epic="1")).label == "Epic 1"
    assert find_methodology("tdd").work_unit_of(ExecutionContext(cycle="4")).hierarchy == ("4",)


@pytest.mark.parametrize("name", ["native", "tdd", "bmad"])
def test_every_methodology_tells_what_it_must(name):
    method = find_methodology(name)
    assert method.id == name
    assert method.relays
    assert all(kind in KINDS for relay in method.relays for kind in relay.types)
    assert all(
        custom.base in KINDS and custom.tag == f"type:{custom.name}"
        for custom in method.custom_types
    )


def test_an_unknown_methodology_is_answered_with_the_list():
    assert available_methodologies()[:1] == ["bmad"]
    with pytest.raises(InvalidInputError, match="bmad, native, tdd"):
        find_methodology("waterfall")


def test_only_what_the_next_stage_needs_is_handed_on():
    with open_temporary() as memory:
        memory.memories.remember("Cards must not expire silently", type="requirement")
        memory.memories.remember("We decided for tabs", type="decision")
        told = tell_relay(Relay("qa", "dev", ("requirement",)), list(memory.memories.list()))
    assert "Cards must not expire silently" in told
    assert "tabs" not in told
    assert tell_relay(Relay("a", "b", ("gotcha",)), []) == ""


def test_the_state_of_unfinished_work_is_read_and_told():
    state = work_state(
        "On branch fix/cards\n- [x] schema\n- [ ] migration\n☐ docs\n**Next:** write the "
        "migration\n"
    )
    assert state == {
        "done": ["schema"],
        "remaining": ["migration", "docs"],
        "next_step": "write the migration",
        "branch": "fix/cards",
    }
    assert tell_work_state(state).splitlines()[0] == "Done: schema"
    assert work_state("nothing to see") == {}


OTHERS = """
from smara.behavior.methodology import NATIVE
from smara.behavior.methodology import CustomType, Relay, WorkUnit

class Kanban:
    id, name = "kanban", "Kanban"
    relays = (Relay("doing", "review", ("gotcha",)),)
    custom_types = (CustomType("swimlane", "decision", "who works where"),)
    done = []
    def work_unit_of(self, context):
        return WorkUnit("kanban", (context.extra["card"],), "Card " + context.extra["card"])
    def work_state_of(self, output):
        return {"remaining": [line[4:] for line in output.splitlines() if line.startswith(">>> ")]}
    def tell_work_state(self, state):
        return "Still on the board: " + ", ".join(state["remaining"])
    def tell_relay(self, relay, memories):
        return relay.target + " gets " + "; ".join(memory.content for memory in memories)
    def on_complete(self, context, result, memories):
        self.done.append((context.extra["card"], result.ended))
"""


@pytest.fixture
def kanban(tmp_path, monkeypatch):
    """A methodology that another package brings."""
    (tmp_path / "others_kanban.py").write_text(OTHERS, encoding="utf-8")
    info = tmp_path / "others_kanban-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: others-kanban\nVersion: 1.0\n", encoding="utf-8"
    )
    (info / "entry_points.txt").write_text(
        "[smara.methodologies]\nkanban = others_kanban:Kanban\n", encoding="utf-8"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    return find_methodology("kanban")


def test_another_package_brings_a_methodology_with_its_own_words_types_and_end(kanban):
    assert "kanban" in available_methodologies()
    assert tell_work_state({"remaining": ["paint"]}, "kanban") == "Still on the board: paint"
    context = ExecutionContext("s1", extra={"card": "7"})
    with open_temporary() as memory:
        memory.behavior.observe_batch(Script("s1").edit("src/a.py").events)
        added = memory.behavior.work_unit_done("kanban", context, WorkUnitResult("success"))
        assert added.memory.content == "Card 7 was finished."
        assert type(kanban).done[-1] == ("7", "success")
        lane = memory.behavior.remember_as(
            "kanban", "swimlane", "Payments are done by the blue team", session_id="s1"
        )
        assert (lane.memory.type, "type:swimlane" in lane.memory.tags) == ("decision", True)
        memory.memories.remember("The paint dries slowly in winter", type="gotcha")
        assert (
            memory.behavior.relay("kanban", "doing", "review")
            == "review gets The paint dries slowly in winter"
        )
        kept = memory.behavior.keep_work_state("s1", ">>> paint the door", methodology="kanban")
        assert kept.memory.data["remaining"] == ["paint the door"]


def test_a_methodology_that_lacks_something_or_is_gone_is_said_so_and_stops_nobody(
    tmp_path, monkeypatch
):
    (tmp_path / "half.py").write_text("class Half:\n    id = 'half'\n", encoding="utf-8")
    info = tmp_path / "half-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: half\nVersion: 1.0\n", encoding="utf-8"
    )
    (info / "entry_points.txt").write_text(
        "[smara.methodologies]\nhalf = half:Half\n", encoding="utf-8"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    with pytest.raises(ConfigError, match="has no name, relays"):
        find_methodology("half")
    assert tell_work_state({"next_step": "go on"}, "half") == "Next: go on"
    assert tell_work_state({"next_step": "go on"}, "gone") == "Next: go on"


def test_what_a_methodology_does_not_have_is_answered_with_what_it_has():
    with open_temporary() as memory:
        with pytest.raises(InvalidInputError, match="planner → coder"):
            memory.behavior.relay("native", "coder", "planner")
        with pytest.raises(InvalidInputError, match="test_case"):
            memory.behavior.remember_as("tdd", "swimlane", "x", session_id="s1")
