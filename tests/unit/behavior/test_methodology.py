"""Methodologies: phases, pieces of work, what is handed on, and the state of unfinished work."""

from __future__ import annotations

import pytest

from smara.behavior.methodology.plugin import (
    PHASES,
    ExecutionContext,
    Relay,
    tell_relay,
    tell_work_state,
    work_state,
)
from smara.behavior.methodology.registry import available_methodologies, find_methodology
from smara.errors import InvalidInputError
from smara.knowledge.kinds import KINDS
from smara.testing import open_temporary


@pytest.mark.parametrize(
    ("name", "phase", "expected"),
    [
        ("native", "planning", "define"), ("native", "QA-review", "validate"), ("native", "qa_fix", "refine"),
        ("native", "something", "explore"), ("tdd", "red", "define"), ("tdd", "green", "implement"),
        ("tdd", "refactor", "refine"), ("bmad", "Dev Story", "implement"), ("bmad", "retrospective", "reflect"),
    ],
)  # fmt: skip
def test_phases_of_a_methodology_become_one_of_six(name, phase, expected):
    assert find_methodology(name).phase_of(phase) == expected


def test_pieces_of_work_have_their_place_and_name():
    native = find_methodology("native").work_unit_of(ExecutionContext(spec="042", subtask="3"))
    assert (native.methodology, native.hierarchy, native.label) == ("native", ("042", "3"), "Spec 042 / Subtask 3")
    assert find_methodology("bmad").work_unit_of(ExecutionContext(epic="1")).label == "Epic 1"
    assert find_methodology("tdd").work_unit_of(ExecutionContext(cycle="4")).hierarchy == ("4",)


@pytest.mark.parametrize("name", ["native", "tdd", "bmad"])
def test_every_methodology_tells_what_it_must(name):
    method = find_methodology(name)
    assert method.id == name
    assert all(phase in PHASES for phase in method.phases.values())
    assert method.relays
    assert all(kind in KINDS for relay in method.relays for kind in relay.types)
    assert all(custom.base in KINDS and custom.tag == f"type:{custom.name}" for custom in method.custom_types)


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
    state = work_state("On branch fix/cards\n- [x] schema\n- [ ] migration\n☐ docs\n**Next:** write the migration\n")
    assert state == {
        "done": ["schema"], "remaining": ["migration", "docs"], "next_step": "write the migration",
        "branch": "fix/cards",
    }  # fmt: skip
    assert tell_work_state(state).splitlines()[0] == "Done: schema"
    assert work_state("nothing to see") == {}
