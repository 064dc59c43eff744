"""Build the contexts of planners, coders and testers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from smara.behavior.habits import Habits
from smara.core.text import find_words
from smara.core.tokens import TokenCounter
from smara.knowledge.kinds import types_told_at
from smara.knowledge.memories import Memories
from smara.knowledge.models import MemoryType, TypedMemory

CODER_TOKENS, CODER_FILES = 32_000, 12
"""About a quarter of a context window, and no more files than one can follow."""
MOST_STEPS = 400
MOST_FACTOR = 2.0
_LIMITS: dict[MemoryType, int] = {
    "task_calibration": 5, "dead_end": 8, "causal_dependency": 10, "work_unit_outcome": 5,
    "workflow_recipe": 2,
}  # fmt: skip


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


class Contexts:
    """Puts together what is known for each stage of the work."""

    def __init__(self, memories: Memories, habits: Habits, counter: TokenCounter) -> None:
        self._memories = memories
        self._habits = habits
        self._counter = counter

    def planner(
        self, modules: Sequence[str], task: str = "", methodology: str = "native"
    ) -> PlannerContext:
        """Return a planner's context for some modules."""
        found = {
            kind: self._of(kind, modules, limit)
            for kind, limit in _LIMITS.items()
            if kind != "workflow_recipe"
        }
        recipes = self._recipes(task)
        known = [self._habits.calibration(module, methodology) for module in modules]
        factor = max((each.factor for each in known if each is not None), default=1.0)
        constraints = [_constraint(memory) for memory in found["dead_end"]]
        files = [
            str(path)
            for memory in found["causal_dependency"]
            for path in memory.data.get("dependent_files", ())
        ]
        sections = [
            ("How estimates went", found["task_calibration"]),
            ("Tried and given up: constraints", found["dead_end"]),
            ("Files that must follow", found["causal_dependency"]),
            ("What came of earlier work", found["work_unit_outcome"]),
            ("How it is done here", recipes),
        ]
        every = tuple(memory for _, memories in sections for memory in memories)
        return PlannerContext(
            _told(sections),
            factor,
            tuple(constraints),
            further_files=tuple(dict.fromkeys(files)),
            memories=every,
        )

    def coder(
        self,
        modules: Sequence[str],
        read: Callable[[str], str | None],
        most_tokens: int = CODER_TOKENS,
        most_files: int = CODER_FILES,
    ) -> list[PrefetchedFile]:
        """Return files to read ahead, most common first.

        ``read`` gives the text of one, or ``None``.
        """
        known = [each for each in map(self._habits.prefetch, modules) if each is not None]
        wanted = [path for each in known for path in each.always] + [
            path for each in known for path in each.frequently
        ]
        found: list[PrefetchedFile] = []
        left = most_tokens
        for path in dict.fromkeys(wanted):
            text = read(path) if len(found) < most_files else None
            tokens = self._counter.count(text).tokens if text else 0
            if text and tokens <= left:
                found.append(PrefetchedFile(path, text, tokens))
                left -= tokens
        return found

    def qa(self, modules: Sequence[str] = (), limit: int = 12) -> str:
        """Return a tester's context before the first look."""
        return _told(
            [
                (kind.replace("_", " "), self._of(kind, modules, limit))
                for kind in reversed(types_told_at("qa"))  # the most fleeting first
            ]
        )

    def _of(self, kind: MemoryType, modules: Sequence[str], limit: int) -> list[TypedMemory]:
        pages = [
            self._memories.list(type=kind, module=module, limit=limit) for module in modules
        ] or [self._memories.list(type=kind, limit=limit)]
        every = {
            memory.id: memory for page in pages for memory in page if memory.tier != "quarantined"
        }
        return list(every.values())[:limit]

    def _recipes(self, task: str) -> list[TypedMemory]:
        """The recipes that have most words in common with a task; none when they have none."""
        words = {word.lower() for word in find_words(task)}
        recipes = [
            each
            for each in self._memories.list(type="workflow_recipe", limit=50)
            if each.tier != "quarantined"
        ]
        shared = [
            (len(words & {word.lower() for word in find_words(each.content)}), each)
            for each in recipes
        ]
        best = sorted((pair for pair in shared if pair[0] > 1), key=lambda pair: -pair[0])
        return [memory for _, memory in best[: _LIMITS["workflow_recipe"]]]


def step_limit(base: int, factor: float | None, most: int = MOST_STEPS) -> int:
    """Return the step limit: more after overruns, at most twice.

    >>> step_limit(50, 1.4), step_limit(50, 9.0), step_limit(50, None), step_limit(300, 1.9)
    (70, 100, 50, 400)
    """
    scaled = -(
        -round(base * min(factor if factor is not None else 1.0, MOST_FACTOR) * 1_000) // 1_000
    )
    return min(int(scaled), most)


def _constraint(memory: TypedMemory) -> str:
    tried, why = memory.data.get("approach_tried"), memory.data.get("why_it_failed")
    return f"Not again: {tried} ({why})" if tried and why else memory.content


def _told(sections: Sequence[tuple[str, Sequence[TypedMemory]]]) -> str:
    lines: list[str] = []
    for title, memories in sections:
        if memories:
            lines.append(f"{title}:")
            for memory in memories:
                state = "" if memory.tier == "confirmed" else " (unconfirmed)"
                lines.append(f"- {memory.content}{state} [Memory #{memory.short_id}]")
    return "\n".join(lines)
