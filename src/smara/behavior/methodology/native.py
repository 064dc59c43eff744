"""The native methodology: a specification, divided into subtasks, planned, coded and reviewed."""

from __future__ import annotations

from smara.behavior.methodology.plugin import ExecutionContext, PlainMethodology, Relay


def _unit(context: ExecutionContext) -> tuple[tuple[str, ...], str]:
    spec = f"Spec {context.spec}" if context.spec else "Work"
    return (
        context.spec,
        context.subtask,
    ), f"{spec} / Subtask {context.subtask}" if context.subtask else spec


NATIVE = PlainMethodology(
    "native",
    "Specifications with subtasks",
    {
        "planning": "define",
        "spec": "define",
        "coding": "implement",
        "qa_review": "validate",
        "qa_fix": "refine",
        "debugging": "refine",
        "insights": "explore",
        "reflection": "reflect",
    },
    relays=(
        Relay("planner", "coder"),
        Relay("coder", "qa_reviewer"),
        Relay("qa_reviewer", "qa_fixer", ("error_pattern", "requirement")),
    ),
    unit=_unit,
)
