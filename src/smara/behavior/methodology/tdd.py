"""Test-driven development: cycles of a failing test, code that makes it pass, and cleaning up."""

from __future__ import annotations

from smara.behavior.methodology.plugin import CustomType, ExecutionContext, PlainMethodology, Relay


def _unit(context: ExecutionContext) -> tuple[tuple[str, ...], str]:
    label = f"Cycle {context.cycle}" if context.cycle else "Cycle"
    return (context.spec, context.cycle), f"{context.spec}: {label}" if context.spec else label


TDD = PlainMethodology(
    "tdd",
    "Test-driven development",
    {
        "red": "define",
        "test_list": "define",
        "green": "implement",
        "verify": "validate",
        "refactor": "refine",
        "spike": "explore",
        "retrospective": "reflect",
    },
    relays=(
        Relay("red", "green", ("requirement", "error_pattern", "gotcha")),
        Relay("green", "refactor", ("pattern", "gotcha", "causal_dependency", "module_insight")),
        Relay("refactor", "red", ("decision", "requirement", "dead_end")),
    ),
    unit=_unit,
    custom_types=(CustomType("test_case", "requirement", "a behavior that a test pins down"),),
)
