"""Adapt learning to how a methodology divides its work.

A methodology has work units, relays and custom types: native, BMAD and TDD stand
here, other packages add theirs by the entry point ``smara.methodologies``, by implementing
Methodology or by filling in PlainMethodology.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import entry_points
from typing import Any, Literal, Protocol

from smara.behavior.cues import CUES
from smara.behavior.models import non_empty
from smara.core.startup.record import dataclass, field
from smara.errors import ConfigError, InvalidInputError, SmaraError
from smara.knowledge.models import MemoryType, TypedMemory, WorkUnit

Phase = Literal["define", "implement", "validate", "refine", "explore", "reflect"]
Ended = Literal["success", "partial", "failure", "abandoned"]


@dataclass(frozen=True, slots=True)
class ExecutionContext:
    """An agent's place in its method."""

    session_id: str = ""
    stage: str = ""
    spec: str = ""
    subtask: str = ""
    epic: str = ""
    story: str = ""
    cycle: str = ""
    extra: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WorkUnitResult:
    """The result of a work unit."""

    ended: Ended
    summary: str = ""
    files: tuple[str, ...] = ()
    steps: int | None = None


@dataclass(frozen=True, slots=True)
class Relay:
    """A hand-over between stages; empty ``types`` means all."""

    source: str
    target: str
    types: tuple[MemoryType, ...] = ()


@dataclass(frozen=True, slots=True)
class CustomType:
    """A methodology's memory type, stored as ``base``.

    With the tag ``type:<name>``.
    """

    name: str
    base: MemoryType
    meaning: str

    @property
    def tag(self) -> str:
        return f"type:{self.name}"


class Methodology(Protocol):
    """The interface of a methodology.

    Third parties bring theirs by the entry point ``smara.methodologies``. It may also have words
    of its own, ``tell_work_state(state)`` and ``tell_relay(relay, memories)``, and
    ``on_complete(context, result, memories)``, which is called at the end of a work unit.
    """

    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def relays(self) -> Sequence[Relay]: ...
    @property
    def custom_types(self) -> Sequence[CustomType]: ...
    def work_unit_of(self, context: ExecutionContext) -> WorkUnit: ...
    def work_state_of(self, output: str) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True)
class PlainMethodology:
    """A methodology that is said in a table: enough for most."""

    id: str
    name: str
    relays: tuple[Relay, ...]
    unit: Callable[[ExecutionContext], tuple[tuple[str, ...], str]]
    """The hierarchy of a piece of work, from the whole to the part, and what it is called."""
    custom_types: tuple[CustomType, ...] = ()

    def work_unit_of(self, context: ExecutionContext) -> WorkUnit:
        hierarchy, label = self.unit(context)
        return WorkUnit(self.id, tuple(part for part in hierarchy if part), label)

    def work_state_of(self, output: str) -> dict[str, Any]:
        return work_state(output)


_MOST = 20


def work_state(output: str) -> dict[str, Any]:
    """Return what is done and left, by list marks.

    >>> work_state("- [x] schema\\n- [ ] migration\\nNext: write the migration")
    {'done': ['schema'], 'remaining': ['migration'], 'next_step': 'write the migration'}
    """
    following, branch = CUES["next step"].search(output), CUES["branch"].search(output)
    found = non_empty(
        done=[each.strip() for each in CUES["item done"].findall(output)[:_MOST]],
        remaining=[each.strip() for each in CUES["item open"].findall(output)[:_MOST]],
        next_step=following and following[1].strip(),
    )
    return {**found, "branch": branch[1]} if branch and found else found


def _native_unit(context: ExecutionContext) -> tuple[tuple[str, ...], str]:
    spec = f"Spec {context.spec}" if context.spec else "Work"
    return (
        context.spec,
        context.subtask,
    ), f"{spec} / Subtask {context.subtask}" if context.subtask else spec


NATIVE = PlainMethodology(
    "native",
    "Specifications with subtasks",
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
_NEEDED = ("id", "name", "relays", "custom_types", "work_unit_of", "work_state_of")


def find_methodology(name: str) -> Methodology:
    """Return the methodology of that name, or raise with the list."""
    if name in _OURS:
        return _OURS[name]
    entry = next((each for each in entry_points(group=GROUP) if each.name == name), None)
    if entry is None:
        names = available_methodologies()
        message = f"There is no methodology {name!r}. Available: {', '.join(names)}."
        raise InvalidInputError(message, name=name, available=names)
    loaded = entry.load()
    method: Methodology = loaded() if isinstance(loaded, type) else loaded
    missing = [each for each in _NEEDED if not hasattr(method, each)]
    if missing:
        raise ConfigError(
            f"The methodology {name!r} has no {', '.join(missing)}. Ask its package's authors."
        )
    return method


def available_methodologies() -> list[str]:
    """The names that can be asked for."""
    return sorted({*_OURS, *(entry.name for entry in entry_points(group=GROUP))})


def relay_of(method: Methodology, source: str, target: str) -> Relay:
    """Return the hand-over between stages, or raise with the list."""
    for relay in method.relays:
        if (relay.source, relay.target) == (source, target):
            return relay
    names = ", ".join(f"{each.source} → {each.target}" for each in method.relays)
    raise InvalidInputError(
        f"{method.name} hands nothing from {source!r} to {target!r}. It has: {names}."
    )


def custom_type_of(method: Methodology, name: str) -> CustomType:
    """Return a methodology's memory type, or raise with the list."""
    for custom in method.custom_types:
        if custom.name == name:
            return custom
    names = ", ".join(each.name for each in method.custom_types) or "none"
    raise InvalidInputError(
        f"{method.name} has no type of memory called {name!r}. It has: {names}."
    )


def tell_work_state(state: Mapping[str, Any], methodology: str | None = None) -> str:
    """Render a work state in its methodology's or plain words.

    >>> print(tell_work_state({"done": ["schema"], "next_step": "the migration"}))
    Done: schema
    Next: the migration
    """
    if methodology is not None and methodology not in _OURS:
        try:
            own = getattr(find_methodology(methodology), "tell_work_state", None)
        except SmaraError:
            own = None
        if own is not None:
            return str(own(state))
    lines = [
        f"{title}: {'; '.join(map(str, state[name]))}"
        for name, title in (("done", "Done"), ("remaining", "Left"), ("open_files", "Open files"))
        if state.get(name)
    ]
    lines += [
        f"{title}: {state[name]}"
        for name, title in (("next_step", "Next"), ("branch", "Branch"))
        if state.get(name)
    ]
    return "\n".join(lines)


def tell_relay(
    relay: Relay, memories: Sequence[TypedMemory], method: Methodology | None = None
) -> str:
    """Render the facts handed to the next stage, each cited."""
    facts = [each for each in memories if not relay.types or each.type in relay.types]
    own = getattr(method, "tell_relay", None)
    if own is not None:
        return str(own(relay, facts))
    lines = [f"From {relay.source} to {relay.target}:"] if facts else []
    lines += [
        f"- {each.type}: {each.content} [Memory #{each.short_id}: {each.label}]" for each in facts
    ]
    return "\n".join(lines)


CODER_TOKENS, CODER_FILES = 32_000, 12
"""About a quarter of a context window, and no more files than one can follow."""
MOST_STEPS = 400
MOST_ISSUES = 30
MOST_FOR_QA = 12
MOST_LOOKED_AT = 200
MOST_RECIPES = 2


@dataclass(frozen=True, slots=True)
class PlannerContext:
    """A planner's context, and its changes to the plan."""

    text: str
    factor: float
    """By what an estimate of steps is multiplied."""
    constraints: tuple[str, ...] = ()
    further_files: tuple[str, ...] = ()
    memories: tuple[TypedMemory, ...] = ()

    def scaled(self, steps: int) -> int:
        """An estimate as experience corrects it."""
        return -(-int(steps * self.factor * 100) // 100)


@dataclass(frozen=True, slots=True)
class PrefetchedFile:
    """A file that is read ahead."""

    path: str
    text: str
    tokens: int


def tell_sections(sections: Mapping[str, Sequence[TypedMemory]]) -> str:
    """Render memories below the titles of their sections."""
    lines: list[str] = []
    for title, memories in sections.items():
        lines += [f"{title}:"] if memories else []
        for memory in memories:
            state = "" if memory.tier == "confirmed" else " (unconfirmed)"
            lines.append(f"- {memory.content}{state} [Memory #{memory.short_id}]")
    return "\n".join(lines)
