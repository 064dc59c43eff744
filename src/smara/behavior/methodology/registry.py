"""Register methodologies by name: native, BMAD, TDD and plugins.

Other packages add theirs by the entry point ``smara.methodologies``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import entry_points
from typing import Any

from smara.behavior.methodology import plugin
from smara.behavior.methodology.plugin import (
    CustomType,
    ExecutionContext,
    Methodology,
    PlainMethodology,
    Relay,
)
from smara.errors import ConfigError, InvalidInputError, SmaraError
from smara.knowledge.models import TypedMemory


def _native_unit(context: ExecutionContext) -> tuple[tuple[str, ...], str]:
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
    unit=_native_unit,
)


def _bmad_unit(context: ExecutionContext) -> tuple[tuple[str, ...], str]:
    parts = [
        f"Epic {context.epic}" if context.epic else "",
        f"Story {context.story}" if context.story else "",
    ]
    return (context.epic, context.story), " / ".join(part for part in parts if part) or "Story"


BMAD = PlainMethodology(
    "bmad",
    "BMAD epics and stories",
    {
        "analysis": "explore",
        "brainstorming": "explore",
        "research": "explore",
        "prd": "define",
        "planning": "define",
        "architecture": "define",
        "solutioning": "define",
        "story": "define",
        "create_story": "define",
        "dev": "implement",
        "dev_story": "implement",
        "implementation": "implement",
        "qa": "validate",
        "code_review": "validate",
        "review": "validate",
        "correct_course": "refine",
        "fix": "refine",
        "retrospective": "reflect",
    },
    relays=(
        Relay("analyst", "architect", ("requirement", "decision", "dead_end")),
        Relay("architect", "sm", ("decision", "requirement", "pattern", "causal_dependency")),
        Relay("sm", "dev"),
        Relay("dev", "qa"),
        Relay("qa", "dev", ("error_pattern", "requirement", "e2e_observation")),
    ),
    unit=_bmad_unit,
    custom_types=(
        CustomType("acceptance_criterion", "requirement", "what a story must show to be accepted"),
        CustomType("epic_outcome", "work_unit_outcome", "what came of an epic"),
    ),
)


def _tdd_unit(context: ExecutionContext) -> tuple[tuple[str, ...], str]:
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
    unit=_tdd_unit,
    custom_types=(CustomType("test_case", "requirement", "a behavior that a test pins down"),),
)


GROUP = "smara.methodologies"
_OURS: dict[str, Methodology] = {each.id: each for each in (NATIVE, TDD, BMAD)}
_NEEDED = ("id", "name", "relays", "custom_types", "phase_of", "work_unit_of", "work_state_of")


def find_methodology(name: str) -> Methodology:
    """Return the methodology of that name, or raise with the list."""
    if name in _OURS:
        return _OURS[name]
    for entry in entry_points(group=GROUP):
        if entry.name == name:
            return _loaded(entry.load(), name)
    known = available_methodologies()
    raise InvalidInputError(
        f"There is no methodology {name!r}. Available: {', '.join(known)}.",
        name=name,
        available=known,
    )


def available_methodologies() -> list[str]:
    """The names that can be asked for."""
    return sorted({*_OURS, *(entry.name for entry in entry_points(group=GROUP))})


def relay_of(method: Methodology, source: str, target: str) -> Relay:
    """Return the hand-over between stages, or raise with the list."""
    for relay in method.relays:
        if (relay.source, relay.target) == (source, target):
            return relay
    known = ", ".join(f"{each.source} → {each.target}" for each in method.relays)
    raise InvalidInputError(
        f"{method.name} hands nothing from {source!r} to {target!r}. It has: {known}."
    )


def custom_type_of(method: Methodology, name: str) -> CustomType:
    """Return a methodology's memory type, or raise with the list."""
    for custom in method.custom_types:
        if custom.name == name:
            return custom
    known = ", ".join(each.name for each in method.custom_types) or "none"
    raise InvalidInputError(
        f"{method.name} has no type of memory called {name!r}. It has: {known}."
    )


def tell_relay(method: Methodology, relay: Relay, memories: Sequence[TypedMemory]) -> str:
    """Render a hand-over, in the methodology's words if any."""
    own: Callable[..., str] = getattr(method, "tell_relay", plugin.tell_relay)
    return own(relay, [memory for memory in memories if relay.lets(memory)])


def tell_work_state(methodology: str | None, state: Mapping[str, Any]) -> str:
    """Render a work state in its methodology's or plain words."""
    own: Callable[..., str] = plugin.tell_work_state
    if methodology is not None and methodology not in _OURS:
        try:
            own = getattr(find_methodology(methodology), "tell_work_state", own)
        except SmaraError:
            pass
    return own(state)


def _loaded(found: object, name: str) -> Methodology:
    made = found() if isinstance(found, type) else found
    missing = [each for each in _NEEDED if not hasattr(made, each)]
    if missing:
        raise ConfigError(
            f"The methodology {name!r} has no {', '.join(missing)}. Ask its package's authors."
        )
    return made  # type: ignore[return-value]  # it has everything that is asked of one
