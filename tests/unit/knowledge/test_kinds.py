"""The table of types: each with its half-life, its reason and its shape."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from smara.errors import InvalidInputError
from smara.knowledge.kinds import KINDS, checked_data, half_life_of, subject_key
from smara.knowledge.models import SCOPES, TYPES

STATED_HALF_LIVES = {
    "work_state": 7, "e2e_observation": 30, "error_pattern": 60, "gotcha": 60, "module_insight": 90,
    "dead_end": 90,
    "causal_dependency": 120, "workflow_recipe": 120, "task_calibration": 180, "decision": None,
}  # fmt: skip
RECIPE = {"task_pattern": "adding a handler", "steps": ["write it", "register it"]}
SAMPLES = {
    "gotcha": {"symptom": "it hangs", "workaround": "set REDIS_URL"},
    "decision": {"rationale": "one file", "alternatives": ["a server"]},
    "preference": {"applies_to": "tests"},
    "pattern": {"when_to_use": "often", "example_file": "src/a.py", "example_line": 3},
    "requirement": {"kind": "functional", "acceptance": "a test passes"},
    "error_pattern": {"error": "EADDRINUSE", "fix": "kill it", "occurrences": 4},
    "module_insight": {"module": "auth", "purpose": "tokens"},
    "prefetch_pattern": {"module_trigger": "auth", "always_read_files": ["a.py"],
    "session_count": 9},
    "work_state": {"done": ["a"], "remaining": ["b"], "next_step": "c"},
    "causal_dependency": {"trigger_file": "a.py", "dependent_files": ["b.py"], "strength": 0.8},
    "task_calibration": {
        "module": "auth", "methodology": "native", "average_actual_steps": 12.5,
        "average_planned_steps": 10,
        "ratio": 1.25, "sample_count": 4,
    },
    "e2e_observation": {"observation_type": "timing"},
    "dead_end": {"approach_tried": "a cache", "why_it_failed": "it was stale"},
    "work_unit_outcome": {"outcome": "partial", "files_changed": ["a.py"]},
    "workflow_recipe": RECIPE,
    "context_cost": {"module": "auth", "average_tokens": 12_000, "session_count": 5},
}  # fmt: skip


def test_each_type_has_its_row():
    assert set(KINDS) == set(TYPES)


@pytest.mark.parametrize("type_", TYPES)
def test_every_row_says_why_it_fades_as_it_does(type_):
    kind = KINDS[type_]
    assert kind.because
    assert kind.meaning
    assert kind.scope in SCOPES
    assert all(field.meaning for field in kind.fields)


@pytest.mark.parametrize(("type_", "days"), STATED_HALF_LIVES.items())
def test_half_lives_that_are_stated_stand(type_, days):
    assert KINDS[type_].half_life_days == days


def test_an_own_half_life_counts_but_not_for_what_never_fades():
    assert half_life_of("gotcha", 5) == 5
    assert half_life_of("gotcha", None) == 60
    assert half_life_of("decision", 5) is None


@pytest.mark.parametrize("type_", TYPES)
def test_the_shape_of_every_type_can_be_filled(type_):
    checked = checked_data(type_, SAMPLES[type_], is_strict=True)
    assert set(SAMPLES[type_]) <= set(checked)
    assert json.loads(json.dumps(checked)) == checked


@pytest.mark.parametrize("type_", TYPES)
def test_a_person_may_leave_the_shape_out(type_):
    assert checked_data(type_, {}, is_strict=False) == {}


@pytest.mark.parametrize(
    "type_", [type_ for type_ in TYPES if any(f.is_needed for f in KINDS[type_].fields)]
)
def test_what_is_inferred_needs_the_needed_fields(type_):
    with pytest.raises(InvalidInputError, match="needs"):
        checked_data(type_, {}, is_strict=True)


def test_names_may_be_written_as_in_json():
    given = {
        "taskPattern": "x",
        "steps": [{"order": 2, "description": "b", "canonicalFile": "b.py"}, "a"],
    }
    checked = checked_data("workflow_recipe", given, is_strict=True)
    assert checked["task_pattern"] == "x"
    assert [step["description"] for step in checked["steps"]] == ["b", "a"]
    assert checked["steps"][0]["canonical_file"] == "b.py"


@pytest.mark.parametrize(
    ("type_", "data"),
    [
        ("gotcha", {"walrus": 1}), ("e2e_observation", {"observation_type": "smell"}), ("gotcha",
        {"symptom": "  "}),
        ("gotcha", {"symptom": 3}), ("decision", {"alternatives": "one"}), ("workflow_recipe",
        {**RECIPE, "steps": []}),
        ("workflow_recipe", {**RECIPE, "steps": [{"order": 1}]}), ("workflow_recipe", {**RECIPE,
        "steps": [7]}),
        ("workflow_recipe", {**RECIPE, "success_count": -1}), ("workflow_recipe", {**RECIPE,
        "success_count": 1.5}),
        ("causal_dependency", {"trigger_file": "a", "dependent_files": ["b"], "strength": 2}),
        ("task_calibration", {**SAMPLES["task_calibration"], "ratio": float("nan")}),
        ("pattern", {"example_line": True}), ("gotcha", {"symptom": "x" * 5_000}),
    ],
)  # fmt: skip
def test_what_does_not_fit_the_shape_is_refused(type_, data):
    with pytest.raises(InvalidInputError):
        checked_data(type_, data, is_strict=False)


def test_data_must_be_a_dict():
    with pytest.raises(InvalidInputError, match="dict"):
        checked_data("gotcha", ["x"], is_strict=False)  # type: ignore[arg-type]


def test_two_calibrations_of_one_module_and_method_are_of_one_subject():
    one = checked_data("task_calibration", SAMPLES["task_calibration"], is_strict=True)
    assert subject_key("task_calibration", one) == "task_calibration:auth|native"
    assert subject_key("task_calibration", {**one, "module": "billing"}) != subject_key(
        "task_calibration", one
    )
    assert subject_key("gotcha", {"symptom": "x"}) is None


def test_the_guide_shows_the_table_as_it_is():
    page = (Path(__file__).parents[3] / "docs/guide/memories.md").read_text(encoding="utf-8")
    rows = [
        [cell.strip() for cell in line.strip("|\n ").split("|")]
        for line in page.splitlines()
        if line[:3] == "| `"
    ]
    told = {row[0].strip("`"): row[1:] for row in rows if row[0].strip("`") in TYPES}
    for type_, kind in KINDS.items():
        meaning, half_life, data = told[type_]
        assert meaning == kind.meaning
        assert half_life == (
            "never fades" if kind.half_life_days is None else str(kind.half_life_days)
        )
        fields = [f"**{field.name}**" if field.is_needed else field.name for field in kind.fields]
        assert [
            each.split(" (")[0]
            for each in re.sub(r"\([^)]*\)", "", data).replace(" ,", ",").split(", ")
        ] == fields
