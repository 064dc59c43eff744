"""Audit stored memories for junk, duplicates, contradictions and staleness.

The rules of the gate are applied to what is stored, so the numbers also hold for memories that
other rules let in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from smara.core.freshness import Freshness
from smara.knowledge import gate
from smara.knowledge.contradictions import find_contradiction
from smara.knowledge.decay import FileHistory, staleness_of
from smara.knowledge.models import TypedMemory
from smara.knowledge.prepare import INFERRED
from smara.knowledge.statements import Statement, is_repeated_in, parse_statement

_BLOCK_MARKS = 10
_LARGEST_BLOCK = 60


@dataclass(frozen=True, slots=True)
class Example:
    """One finding: which memories, and why."""

    memory_ids: tuple[str, ...]
    text: str
    why: str


@dataclass(frozen=True, slots=True)
class Measure:
    """How many memories something is true of, which share that is, and a few of them."""

    count: int
    share: float
    examples: tuple[Example, ...] = ()


@dataclass(frozen=True, slots=True)
class Audit:
    """What an audit found among the active memories."""

    total: int
    active: int
    junk: Measure
    duplicates: Measure
    contradictions: Measure
    stale: Measure
    unreviewed: Measure
    tainted: Measure
    without_evidence: Measure
    by_type: tuple[tuple[str, int], ...] = ()

    @property
    def health(self) -> int:
        """From 0 to 100: the share of memories that are neither junk nor said twice, contradicted
        or stale.
        """
        lost = (
            self.junk.share + self.duplicates.share + self.contradictions.share + self.stale.share
        )
        return round(100 * max(0.0, 1 - lost)) if self.active else 100


def audit(
    memories: Sequence[TypedMemory],
    total: int,
    now_ms: int,
    files: FileHistory | None = None,
    examples: int = 5,
    code: Mapping[str, Freshness] | None = None,
) -> Audit:
    """Measure the active memories of a store; ``code`` is how they stand to the code they name, by
    id.
    """
    counted = _Count(len(memories), examples)
    pairs = list(_pairs(memories))
    types: dict[str, int] = {}
    for memory in memories:
        types[memory.type] = types.get(memory.type, 0) + 1
    return Audit(
        total,
        len(memories),
        counted.singles(memories, lambda memory: "; ".join(_junk(memory))),
        duplicates=counted.pairs(pairs, _repeated),
        contradictions=counted.pairs(pairs, _contradicted),
        stale=counted.singles(
            memories, lambda memory: _stale(memory, now_ms, files, code=(code or {}).get(memory.id))
        ),
        unreviewed=counted.singles(
            memories, lambda memory: "; ".join(memory.review_reasons) if memory.needs_review else ""
        ),
        tainted=counted.singles(
            memories, lambda memory: ", ".join(memory.taint) if memory.is_tainted else ""
        ),
        without_evidence=counted.singles(memories, _without_evidence),
        by_type=tuple(sorted(types.items(), key=lambda each: (-each[1], each[0]))),
    )


class _Count:
    """Counts findings against the number of memories."""

    def __init__(self, active: int, examples: int) -> None:
        self._active = active
        self._examples = examples

    def singles(
        self, memories: Iterable[TypedMemory], why: Callable[[TypedMemory], str]
    ) -> Measure:
        """Memories that something is true of by themselves."""
        found = [(memory, reason) for memory in memories if (reason := why(memory))]
        shown = tuple(
            Example((memory.short_id,), memory.label, reason)
            for memory, reason in found[: self._examples]
        )
        return self._measure(len(found), shown)

    def pairs(
        self,
        pairs: Iterable[tuple[TypedMemory, TypedMemory]],
        why: Callable[[TypedMemory, TypedMemory], str],
    ) -> Measure:
        """Memories that something is true of beside an older one; the newer one of each pair is
        counted once.
        """
        found: dict[str, Example] = {}
        for older, newer in pairs:
            if newer.id not in found and (reason := why(older, newer)):
                found[newer.id] = Example((older.short_id, newer.short_id), newer.label, reason)
        return self._measure(len(found), tuple(found.values())[: self._examples])

    def _measure(self, count: int, examples: tuple[Example, ...]) -> Measure:
        return Measure(count, round(count / self._active, 4) if self._active else 0.0, examples)


def _pairs(memories: Sequence[TypedMemory]) -> Iterator[tuple[TypedMemory, TypedMemory]]:
    """(older, newer) of memories that share one of their rarest words or pairs of words, or all of
    them.

    What nearly everything shares is passed over, so the cost stays far from comparing every pair.
    """
    marks = [_marks(parse_statement(memory.content)) for memory in memories]
    often = Counter(mark for found in marks for mark in found)
    blocks: dict[object, list[int]] = {}
    for number, found in enumerate(marks):
        rare = sorted(
            (mark for mark in found if often[mark] <= _LARGEST_BLOCK),
            key=lambda mark: (often[mark], str(mark)),
        )
        for mark in rare[:_BLOCK_MARKS]:
            blocks.setdefault(mark, []).append(number)
    seen: set[tuple[int, int]] = set()
    for numbers in blocks.values():
        for at, one in enumerate(numbers):
            for other in numbers[:at]:
                if (other, one) not in seen:
                    seen.add((other, one))
                    yield memories[other], memories[one]


def _marks(statement: Statement) -> set[object]:
    return {statement.fingerprint, *statement.content_set, *statement.pairs}


def _junk(memory: TypedMemory) -> tuple[str, ...]:
    """What the gate would say today; that evidence is missing is measured by itself."""
    found = gate.reasons_against(memory.content, memory.source, memory.evidence, files=memory.files)
    return tuple(reason for reason in found if not reason.startswith("it has no evidence"))


def _repeated(older: TypedMemory, newer: TypedMemory) -> str:
    one, other = parse_statement(older.content), parse_statement(newer.content)
    if one.fingerprint == other.fingerprint:
        return f"the same words as {older.short_id}"
    if older.type == newer.type and (is_repeated_in(other, one) or is_repeated_in(one, other)):
        return f"nearly the same words as {older.short_id}"
    return ""


def _contradicted(older: TypedMemory, newer: TypedMemory) -> str:
    found = find_contradiction(newer, older)
    return f"against {older.short_id}: {found.why}" if found else ""


def _stale(
    memory: TypedMemory, now_ms: int, files: FileHistory | None, code: Freshness | None
) -> str:
    return "; ".join(
        reason.text for reason in staleness_of(memory, now_ms, files, code=code).reasons
    )


def _without_evidence(memory: TypedMemory) -> str:
    if memory.source == "user_taught" or memory.evidence:
        return ""
    return "it was inferred" if memory.source in INFERRED else "nothing says what it rests on"
