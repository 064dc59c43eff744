"""Define the methodology interface: phases, work units, relays, custom types.

A package adds a methodology by implementing Methodology, or by filling in PlainMethodology.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, get_args

from smara.knowledge.models import MemoryType, TypedMemory, WorkUnit

Phase = Literal["define", "implement", "validate", "refine", "explore", "reflect"]
PHASES: tuple[Phase, ...] = get_args(Phase)
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

    def lets(self, memory: TypedMemory) -> bool:
        return not self.types or memory.type in self.types


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

    Third parties bring theirs by the entry point ``smara.methodologies``.
    """

    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def relays(self) -> Sequence[Relay]: ...
    @property
    def custom_types(self) -> Sequence[CustomType]: ...
    def phase_of(self, own_phase: str) -> Phase: ...
    def work_unit_of(self, context: ExecutionContext) -> WorkUnit: ...
    def work_state_of(self, output: str) -> dict[str, Any]: ...


class Telling(Methodology, Protocol):
    """A methodology's optional parts: own words, and an end hook."""

    def tell_work_state(self, state: Mapping[str, Any]) -> str: ...
    def tell_relay(self, relay: Relay, memories: Sequence[TypedMemory]) -> str: ...
    def on_complete(
        self, context: ExecutionContext, result: WorkUnitResult, memories: Any
    ) -> None: ...


@dataclass(frozen=True, slots=True)
class PlainMethodology:
    """A methodology that is said in a table: enough for most."""

    id: str
    name: str
    phases: Mapping[str, Phase]
    relays: tuple[Relay, ...]
    unit: Callable[[ExecutionContext], tuple[tuple[str, ...], str]]
    """The hierarchy of a piece of work, from the whole to the part, and what it is called."""
    custom_types: tuple[CustomType, ...] = ()
    otherwise: Phase = "explore"

    def phase_of(self, own_phase: str) -> Phase:
        return self.phases.get(
            own_phase.strip().lower().replace("-", "_").replace(" ", "_"), self.otherwise
        )

    def work_unit_of(self, context: ExecutionContext) -> WorkUnit:
        hierarchy, label = self.unit(context)
        return WorkUnit(self.id, tuple(part for part in hierarchy if part), label)

    def work_state_of(self, output: str) -> dict[str, Any]:
        return work_state(output)


_DONE = re.compile(r"^\s*(?:[-*]\s*)?(?:\[[xX]\]|✅|✔|☒|DONE:?)\s+(.{3,300})$", re.MULTILINE)
_OPEN = re.compile(r"^\s*(?:[-*]\s*)?(?:\[ \]|☐|⬜|TODO:?)\s+(.{3,300})$", re.MULTILINE)
_NEXT = re.compile(
    r"^\s*(?:\*\*)?(?:next(?: steps?)?|then|remaining)(?:\*\*)?\s*:(?:\*\*)?\s*(.{3,300})$",
    re.MULTILINE | re.IGNORECASE,
)
_BRANCH = re.compile(r"\b(?:on branch|branch:)\s+([\w./-]{1,100})", re.IGNORECASE)
_MOST = 20


def work_state(output: str) -> dict[str, Any]:
    """Return what is done and left, by list marks.

    >>> work_state("- [x] schema\\n- [ ] migration\\nNext: write the migration")
    {'done': ['schema'], 'remaining': ['migration'], 'next_step': 'write the migration'}
    """
    found: dict[str, Any] = {}
    done, left = _DONE.findall(output)[:_MOST], _OPEN.findall(output)[:_MOST]
    following, branch = _NEXT.search(output), _BRANCH.search(output)
    if done:
        found["done"] = [each.strip() for each in done]
    if left:
        found["remaining"] = [each.strip() for each in left]
    if following:
        found["next_step"] = following[1].strip()
    if branch and found:
        found["branch"] = branch[1]
    return found


def tell_work_state(state: Mapping[str, Any]) -> str:
    """Render a work state for the agent that continues.

    >>> print(tell_work_state({"done": ["schema"], "next_step": "the migration"}))
    Done: schema
    Next: the migration
    """
    lines = []
    for name, title in (("done", "Done"), ("remaining", "Left"), ("open_files", "Open files")):
        if state.get(name):
            lines.append(f"{title}: {'; '.join(map(str, state[name]))}")
    if state.get("next_step"):
        lines.append(f"Next: {state['next_step']}")
    if state.get("branch"):
        lines.append(f"Branch: {state['branch']}")
    return "\n".join(lines)


def tell_relay(relay: Relay, memories: Sequence[TypedMemory]) -> str:
    """Render the facts handed to the next stage, each cited."""
    kept = [memory for memory in memories if relay.lets(memory)]
    if not kept:
        return ""
    lines = [f"From {relay.source} to {relay.target}:"]
    lines += [
        f"- {memory.type}: {memory.content} [Memory #{memory.short_id}: {memory.label}]"
        for memory in kept
    ]
    return "\n".join(lines)
