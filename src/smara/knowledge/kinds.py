"""Define the sixteen memory types: half-life, fields and subject.

A *half-life* is the number of days without verified use after which a memory is worth half. Fields
are optional for a person; an inferred memory must have the required ones. The fields marked as
``subject`` decide when two memories are versions of one thing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from smara.errors import InvalidInputError
from smara.knowledge.models import MemoryScope, MemoryType

FieldKind = Literal["text", "texts", "count", "number", "fraction", "time", "choice", "steps"]
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_LONGEST_TEXT = 4_000
_MOST_TEXTS = 200
_MOST_STEPS = 50


@dataclass(frozen=True, slots=True)
class KindField:
    """One thing a memory of a type may hold besides its sentence."""

    name: str
    kind: FieldKind
    meaning: str
    is_needed: bool = False
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Kind:
    """What is true of every memory of one type. Without a half-life it never fades."""

    type: MemoryType
    meaning: str
    half_life_days: float | None
    because: str
    scope: MemoryScope
    fields: tuple[KindField, ...] = ()
    subject: tuple[str, ...] = ()


def _needed(name: str, kind: FieldKind, meaning: str, *choices: str) -> KindField:
    return KindField(name, kind, meaning, is_needed=True, choices=choices)


def _may(name: str, kind: FieldKind, meaning: str, *choices: str) -> KindField:
    return KindField(name, kind, meaning, is_needed=False, choices=choices)


_TABLE: tuple[Kind, ...] = (
    Kind(
        "gotcha", "a trap, or a constraint that is not obvious", 60,
        because="code is mended, and traps go with it", scope="module",
        fields=(
            _may("symptom", "text", "how it shows"), _may("cause", "text", "why it happens"),
            _may("workaround", "text", "what to do instead"),
        ),
    ),
    Kind(
        "decision", "an architectural decision with its reasons", None,
        because="a decision stands until another one supersedes it", scope="global",
        fields=(
            _may("rationale", "text", "why it was decided so"),
            _may("alternatives", "texts", "what was considered and not taken"),
            _may("decided_by", "text", "who decided"),
        ),
    ),
    Kind(
        "preference", "how the user or the project likes things done", 365,
        because="habits change, but slowly: much slower than code, and not never, as decisions",
            scope="global",
        fields=(_may("applies_to", "text", "to what, if not to everything"),),
    ),
    Kind(
        "pattern", "an implementation that can be used again", 120,
        because="like a workflow recipe: it lasts as long as the structure of the code",
            scope="module",
        fields=(
            _may("when_to_use", "text", "where it fits"), _may("example_file", "text",
            "where it can be seen"),
            _may("example_line", "count", "at which line"),
        ),
    ),
    Kind(
        "requirement", "what the software must do or be", None,
        because="like a decision: somebody wants it until somebody says otherwise", scope="global",
        fields=(
            _may("kind", "choice", "what it is about", "functional", "non_functional"),
            _may("acceptance", "text", "how one sees that it is met"),
        ),
    ),
    Kind(
        "error_pattern", "an error that comes again, and its fix", 60,
        because="errors go with the version that had them", scope="module",
        fields=(
            _may("error", "text", "the message, or what is constant in it"), _may("fix", "text",
            "what helped"),
            _may("tool", "text", "which tool reported it"), _may("command", "text",
            "which command failed"),
            _may("fingerprint", "text", "what identifies it"), _may("occurrences", "count",
            "how often it was seen"),
        ),
        subject=("fingerprint",),
    ),
    Kind(
        "module_insight", "what a module is for and how it works", 90,
        because="what a module is for changes more slowly than its traps", scope="module",
        fields=(_may("module", "text", "which module"), _may("purpose", "text", "what it is for")),
    ),
    Kind(
        "prefetch_pattern", "files that are read together", 60,
        because="counted from sessions, it is counted anew while it is true; like a gotcha, it "
                "goes with "
        "the code", scope="module",
        fields=(
            _needed("module_trigger", "text", "the module that makes them needed"),
            _needed("always_read_files", "texts", "read in more than 80 % of the sessions"),
            _may("frequently_read_files", "texts", "read in more than 50 % of them"),
            _needed("session_count", "count", "how many sessions it was counted from"),
        ),
        subject=("module_trigger",),
    ),
    Kind(
        "work_state", "unfinished work, for whoever goes on with it", 7,
        because="after a week the tree has moved on", scope="work_unit",
        fields=(
            _may("done", "texts", "what is finished"), _may("remaining", "texts", "what is not"),
            _may("next_step", "text", "where to go on"), _may("branch", "text", "on which branch"),
            _may("open_files", "texts", "which files were being changed"),
        ),
    ),
    Kind(
        "causal_dependency", "a file that must be touched when another one changes", 120,
        because="coupling outlives single changes, not a redesign", scope="module",
        fields=(
            _needed("trigger_file", "text", "the file that changes"),
            _needed("dependent_files", "texts", "the files that must follow"),
            _may("reason", "text", "why"), _may("strength", "fraction",
            "in which share of the changes"),
            _may("session_count", "count", "how many sessions it was counted from"),
        ),
        subject=("trigger_file",),
    ),
    Kind(
        "task_calibration", "how many steps work takes, against how many were planned", 180,
        because="an average over many sessions moves slowly", scope="module",
        fields=(
            _needed("module", "text", "of which module"), _needed("methodology", "text",
            "planned by which method"),
            _needed("average_actual_steps", "number", "steps taken"),
            _needed("average_planned_steps", "number", "steps planned"), _needed("ratio", "number",
            "taken to planned"),
            _needed("sample_count", "count", "over how many pieces of work"),
        ),
        subject=("module", "methodology"),
    ),
    Kind(
        "e2e_observation", "how the running program behaves, seen from outside", 30,
        because="user interfaces change most often of all", scope="global",
        fields=(
            _needed(
                "observation_type", "choice", "what was seen", "precondition", "timing",
                "ui_behavior", "test_sequence",
                "mcp_gotcha",
            ),
            _may("tool", "text", "with which tool"),
        ),
    ),
    Kind(
        "dead_end", "an approach that was tried and given up", 90,
        because="what failed then may work with other versions", scope="global",
        fields=(
            _needed("approach_tried", "text", "what was tried"),
            _needed("why_it_failed", "text", "why it did not work"),
            _may("alternative_used", "text", "what was done instead"), _may("task_context", "text",
            "for which task"),
        ),
    ),
    Kind(
        "work_unit_outcome", "what came of one piece of work", 90,
        because="an episode, like a dead end: it teaches for a season", scope="work_unit",
        fields=(
            _needed("outcome", "choice", "how it ended", "success", "partial", "failure",
            "abandoned"),
            _may("summary", "text", "what was done"), _may("files_changed", "texts", "where"),
            _may("steps", "count", "in how many steps"), _may("what_helped", "text",
            "what made it go well"),
        ),
    ),
    Kind(
        "workflow_recipe", "how a kind of task is done here, step by step", 120,
        because="it lasts as long as the structure of the code", scope="global",
        fields=(
            _needed("task_pattern", "text", "for which kind of task"),
            _needed("steps", "steps", "what to do, in order"),
            _may("last_validated_at", "time", "when it last led to success"),
            _may("success_count", "count", "how often it did"),
        ),
        subject=("task_pattern",),
    ),
    Kind(
        "context_cost", "how many tokens work on a module takes", 60,
        because="sizes drift with the code, and are counted anew while they are true",
            scope="module",
        fields=(
            _needed("module", "text", "of which module"), _needed("average_tokens", "count",
            "tokens of a session"),
            _may("peak_tokens", "count", "of the dearest one"),
            _needed("session_count", "count", "how many sessions it was counted from"),
        ),
        subject=("module",),
    ),
)  # fmt: skip

KINDS: Mapping[MemoryType, Kind] = {kind.type: kind for kind in _TABLE}


def half_life_of(type_: MemoryType, own: float | None) -> float | None:
    """The days after which a memory is worth half; decisions never fade, whatever is said."""
    kind = KINDS[type_]
    return None if kind.half_life_days is None else own or kind.half_life_days


def checked_data(type_: MemoryType, data: Mapping[str, Any], is_strict: bool) -> dict[str, Any]:
    """The extended shape of a memory, checked; names may be written as in JSON (``taskPattern``).

    With ``is_strict`` the needed fields must be there even when nothing else is.
    """
    if not isinstance(data, Mapping):
        raise InvalidInputError(f"data must be a dict, not {type(data).__name__}.", field="data")
    given = {_snake(name): value for name, value in data.items() if value is not None}
    fields = {field.name: field for field in KINDS[type_].fields}
    unknown = sorted(set(given) - set(fields))
    if unknown:
        known = ", ".join(fields) or "none"
        raise InvalidInputError(
            f"A {type_} has no field {', '.join(unknown)}. It may have: {known}.", field="data"
        )
    missing = [
        field.name for field in fields.values() if field.is_needed and field.name not in given
    ]
    if missing and (given or is_strict):
        raise InvalidInputError(
            f"The data of a {type_} needs {', '.join(missing)}.", field="data", missing=missing
        )
    return {name: _checked(fields[name], given[name]) for name in fields if name in given}


def subject_key(type_: MemoryType, data: Mapping[str, Any]) -> str | None:
    """What a memory speaks of, where its fields say so: two of the same key are two versions of
    one.
    """
    names = KINDS[type_].subject
    values = [str(data[name]).casefold().strip() for name in names if data.get(name)]
    return f"{type_}:{'|'.join(values)}" if names and len(values) == len(names) else None


def json_schema(type_: MemoryType) -> dict[str, Any]:
    """The extended shape of a type as a JSON Schema, for tools."""
    fields = KINDS[type_].fields
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {field.name: _schema_of(field) for field in fields},
        "additionalProperties": False,
    }
    needed = [field.name for field in fields if field.is_needed]
    return {**schema, "required": needed} if needed else schema


def _schema_of(field: KindField) -> dict[str, Any]:
    shapes: dict[FieldKind, dict[str, Any]] = {
        "text": {"type": "string"},
        "texts": {"type": "array", "items": {"type": "string"}},
        "count": {"type": "integer", "minimum": 0},
        "number": {"type": "number", "minimum": 0},
        "fraction": {"type": "number", "minimum": 0, "maximum": 1},
        "time": {"type": "integer", "minimum": 0},
        "choice": {"type": "string", "enum": list(field.choices)},
        "steps": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "order": {"type": "integer"},
                    "description": {"type": "string"},
                    "canonical_file": {"type": "string"},
                    "canonical_line": {"type": "integer"},
                },
                "required": ["description"],
                "additionalProperties": False,
            },
        },
    }
    return {**shapes[field.kind], "description": field.meaning}


def _checked(field: KindField, value: Any) -> Any:
    if field.kind == "steps":
        return _steps(field, value)
    if field.kind == "texts":
        if isinstance(value, str) or not isinstance(value, Sequence) or len(value) > _MOST_TEXTS:
            raise _refused(field, f"a list of at most {_MOST_TEXTS} texts", value)
        return [_text(field, each) for each in value]
    if field.kind == "choice":
        if value not in field.choices:
            raise _refused(field, f"one of {', '.join(field.choices)}", value)
        return value
    return _text(field, value) if field.kind == "text" else _number(field, value)


def _text(field: KindField, value: Any) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > _LONGEST_TEXT:
        raise _refused(field, f"a text of 1 to {_LONGEST_TEXT} characters", value)
    return value.strip()


def _number(field: KindField, value: Any) -> int | float:
    whole = field.kind in ("count", "time")
    is_number = isinstance(value, int if whole else (int, float)) and not isinstance(value, bool)
    if (
        not is_number
        or not math.isfinite(value)
        or not 0 <= value < 2**53
        or (field.kind == "fraction" and value > 1)
    ):
        wanted = (
            "a fraction from 0 to 1"
            if field.kind == "fraction"
            else f"a {'whole ' if whole else ''}number from 0"
        )
        raise _refused(field, wanted, value)
    return value  # type: ignore[no-any-return]  # checked above


def _steps(field: KindField, value: Any) -> list[dict[str, Any]]:
    if (
        isinstance(value, str)
        or not isinstance(value, Sequence)
        or not 1 <= len(value) <= _MOST_STEPS
    ):
        raise _refused(field, f"a list of 1 to {_MOST_STEPS} steps", value)
    steps = []
    for number, each in enumerate(value, 1):
        step = {"description": each} if isinstance(each, str) else each
        if not isinstance(step, Mapping):
            raise _refused(field, "a list of texts, or of objects with a description", each)
        named = {_snake(name): given for name, given in step.items() if given is not None}
        if set(named) - {"order", "description", "canonical_file", "canonical_line"}:
            raise _refused(
                field,
                "steps with order, description, canonical_file and canonical_line",
                sorted(named),
            )
        made: dict[str, Any] = {
            "order": _number(KindField("order", "count", ""), named.get("order", number)),
            "description": _text(KindField("description", "text", ""), named.get("description")),
        }
        if "canonical_file" in named:
            made["canonical_file"] = _text(
                KindField("canonical_file", "text", ""), named["canonical_file"]
            )
        if "canonical_line" in named:
            made["canonical_line"] = _number(
                KindField("canonical_line", "count", ""), named["canonical_line"]
            )
        steps.append(made)
    return sorted(steps, key=lambda step: int(step["order"]))


def _snake(name: object) -> str:
    return _CAMEL.sub("_", str(name)).lower()


def _refused(field: KindField, wanted: str, got: object) -> InvalidInputError:
    return InvalidInputError(
        f"{field.name} must be {wanted}; got {str(got)[:80]!r}.", field=f"data.{field.name}"
    )
