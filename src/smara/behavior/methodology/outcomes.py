"""What came of a piece of work, as a memory."""

from __future__ import annotations

from smara.behavior.methodology.plugin import WorkUnitResult
from smara.behavior.paths import module_of
from smara.behavior.quoting import quote
from smara.knowledge.models import Evidence, NewMemory, WorkUnit

_TOLD = {
    "success": "was finished", "partial": "was finished in part", "failure": "failed",
    "abandoned": "was given up",
}  # fmt: skip


def outcome_of(unit: WorkUnit, result: WorkUnitResult, session_id: str) -> NewMemory:
    """The memory of a piece of work that has ended."""
    name = unit.label or "/".join(unit.hierarchy) or unit.methodology
    said = quote(result.summary, 400)
    content = f"{name} {_TOLD[result.ended]}{f': {said}' if said else ''}".rstrip(".") + "."
    data = {
        "outcome": result.ended,
        "summary": said or None,
        "files_changed": list(result.files[:20]) or None,
        "steps": result.steps,
    }
    modules = tuple(dict.fromkeys(filter(None, map(module_of, result.files))))[:4]
    return NewMemory(
        content,
        "work_unit_outcome",
        "observer_inferred",
        session_id=session_id,
        files=result.files[:20],
        modules=modules,
        evidence=[Evidence(quote=f"{name}: {result.ended}. {said}".strip())],
        work_unit=unit,
        methodology=unit.methodology,
        data={key: value for key, value in data.items() if value is not None},
    )
