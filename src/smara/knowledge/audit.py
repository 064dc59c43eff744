"""Audit stored memories for junk, duplicates, contradictions and staleness.

The rules of the gate are applied to what is stored, so the numbers also hold for memories that
other rules let in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from smara.core.freshness import Freshness
from smara.core.startup.record import dataclass
from smara.knowledge import gate
from smara.knowledge.contradictions import find_contradiction
from smara.knowledge.decay import FileHistory, staleness_of
from smara.knowledge.models import TypedMemory
from smara.knowledge.prepare import INFERRED
from smara.knowledge.statements import is_repeated_in, parse_statement

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
    """The memories with a fault: their number, share and examples."""

    count: int
    share: float
    examples: tuple[Example, ...] = ()


@dataclass(frozen=True, slots=True)
class Audit:
    """The result of an audit of the active memories."""

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
        """Return the share of sound memories, from 0 to 100.

        Sound is what is neither junk nor said twice, contradicted or stale.
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
    """Measure the active memories of a store.

    Args:
        memories: The active memories.
        total: How many memories there are in all.
        now_ms: The time.
        files: The history of the project's files.
        examples: The most examples of each fault.
        code: How memories stand to the code they name, by id.
    """
    pairs = list(_pairs(memories))

    def measure(chosen: Collection[Example]) -> Measure:
        share = round(len(chosen) / len(memories), 4) if memories else 0.0
        return Measure(len(chosen), share, tuple(chosen)[:examples])

    def singles(why: Callable[[TypedMemory], str]) -> Measure:
        """Measure what is true of memories by themselves."""
        reasons = [(memory, why(memory)) for memory in memories]
        return measure([Example((each.short_id,), each.label, why) for each, why in reasons if why])

    def beside_older(why: Callable[[TypedMemory, TypedMemory], str]) -> Measure:
        """Measure what is true of memories beside an older one.

        Each newer one counts once.
        """
        found: dict[str, Example] = {}
        for older, newer in pairs:
            if newer.id not in found and (reason := why(older, newer)):
                found[newer.id] = Example((older.short_id, newer.short_id), newer.label, reason)
        return measure(found.values())

    def stale(memory: TypedMemory) -> str:
        verdict = staleness_of(memory, now_ms, files, code=(code or {}).get(memory.id))
        return "; ".join(reason.text for reason in verdict.reasons)

    return Audit(
        total,
        len(memories),
        singles(_junk),
        duplicates=beside_older(_repeated),
        contradictions=beside_older(_contradicted),
        stale=singles(stale),
        unreviewed=singles(
            lambda each: "; ".join(each.review_reasons) if each.needs_review else ""
        ),
        tainted=singles(lambda each: ", ".join(each.taint) if each.is_tainted else ""),
        without_evidence=singles(_without_evidence),
        by_type=tuple(
            sorted(Counter(each.type for each in memories).items(), key=lambda e: (-e[1], e[0]))
        ),
    )


def _pairs(memories: Sequence[TypedMemory]) -> Iterator[tuple[TypedMemory, TypedMemory]]:
    """Yield (older, newer) memories that share one of their rarest words.

    What nearly everything shares is passed over, so the cost stays far from comparing every pair.
    """
    statements = [parse_statement(memory.content) for memory in memories]
    marks: list[set[object]] = [
        {each.fingerprint, *each.content_set, *each.pairs} for each in statements
    ]
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


def _junk(memory: TypedMemory) -> str:
    """Return what the gate would say today; missing evidence is measured by itself."""
    found = gate.reasons_against(memory.content, memory.source, memory.evidence, files=memory.files)
    return "; ".join(reason for reason in found if not reason.startswith("it has no evidence"))


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


def _without_evidence(memory: TypedMemory) -> str:
    if memory.source == "user_taught" or memory.evidence:
        return ""
    return "it was inferred" if memory.source in INFERRED else "nothing says what it rests on"
