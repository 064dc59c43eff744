"""Match what instruction files say with the memories of earlier imports.

Equal words match wherever they stand, edited ones by their likeness within one file. The result is
a plan; nothing is read or written here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from difflib import SequenceMatcher
from typing import NamedTuple

from smara.adapters.instructions.markdown import InstructionFile, InstructionStatement
from smara.core.startup.record import dataclass, field
from smara.core.startup.regex import regex
from smara.knowledge.models import TypedMemory

# Unrelated sentences are alike by 0.2 to 0.45, a sentence with a word changed by 0.7 and more.
LIKE_ENOUGH = 0.6
_COMPARED_CHARACTERS = 400
_NOT_WORDS = regex(r"[\s*_`\"'“”‘’]+")


class StatementPlace(NamedTuple):
    """The place of a statement in a file."""

    file: InstructionFile
    statement: InstructionStatement


@dataclass(slots=True)
class Saying:
    """A statement with all places that make it."""

    key: str
    text: str
    places: list[StatementPlace] = field(default_factory=list)


@dataclass(slots=True)
class MatchPlan:
    """The actions of an import; each saying and memory is in one.

    Attributes:
        unchanged: Each memory with all that the files say of it; there may be two sayings.
        put_aside: A person rejected or forgot it, or something better took its place: the file is
            not asked.
    """

    unchanged: list[tuple[TypedMemory, list[Saying]]] = field(default_factory=list)
    changed: list[tuple[Saying, TypedMemory]] = field(default_factory=list)
    returned: list[tuple[Saying, TypedMemory]] = field(default_factory=list)
    put_aside: list[tuple[Saying, TypedMemory]] = field(default_factory=list)
    added: list[Saying] = field(default_factory=list)
    removed: list[TypedMemory] = field(default_factory=list)


def paths_of(memory: TypedMemory) -> set[str]:
    """Return the files a memory was imported from."""
    return {each.path for each in memory.evidence if each.path}


def _key_of(text: str) -> str:
    """The words of a text without spaces, marks and capitals, hashed."""
    plain = _NOT_WORDS.sub(" ", text).strip(" .;,").casefold()
    return hashlib.sha256(plain.encode("utf-8", "replace")).hexdigest()[:32]


def _originals(memory: TypedMemory) -> list[str]:
    """What the files said; a person may have put the memory in other words since."""
    return [each.quote for each in memory.evidence if each.quote] or [memory.content]


def match(
    places: Iterable[tuple[StatementPlace, str]],
    memories: Sequence[TypedMemory],
    by_person: AbstractSet[str],
) -> MatchPlan:
    """Match what files say with memories, and plan the changes.

    A statement and a memory match if the file has the same words; lines and the file may have
    moved. Edited words match by similarity within one file. Memories that a person put aside
    (``by_person``) stay so.
    """
    sayings: dict[str, Saying] = {}
    for place, text in places:
        key = _key_of(text)
        sayings.setdefault(key, Saying(key, text)).places.append(place)
    by_id = {each.id: each for each in memories}
    by_key: dict[str, list[TypedMemory]] = {}  # the newest first
    for memory in sorted(memories, key=lambda each: -each.created_at):
        for key in set(map(_key_of, _originals(memory))):
            by_key.setdefault(key, []).append(memory)
    unchanged: dict[str, list[Saying]] = {}
    waiting: list[Saying] = []
    for saying in sayings.values():
        active = next((each for each in by_key.get(saying.key, ()) if each.is_active), None)
        if active is None:
            waiting.append(saying)
        else:
            unchanged.setdefault(active.id, []).append(saying)
    plan = MatchPlan([(by_id[name], each) for name, each in unchanged.items()])
    fresh: list[Saying] = []
    for saying in waiting:
        if saying.key not in by_key:
            fresh.append(saying)
            continue
        old = by_key[saying.key][0]
        is_superseded = old.deprecated_because == "superseded"
        newer = by_id.get(old.superseded_by or "") if is_superseded else None
        if newer is not None and newer.is_active and newer.id not in unchanged:
            # The file went back to its old words: what had taken their place gives way again.
            plan.changed.append((saying, newer))
        elif old.id in by_person or old.deprecated_because in ("rejected", "merged", "superseded"):
            plan.put_aside.append((saying, old))
        else:
            plan.returned.append((saying, old))
    replaced = {memory.id for _, memory in plan.changed}
    left = [
        each
        for each in memories
        if each.is_active and each.id not in unchanged and each.id not in replaced
    ]
    plan.changed += _alike(fresh, left)
    matched = {name for saying, memory in plan.changed for name in (saying.key, memory.id)}
    plan.added = [saying for saying in fresh if saying.key not in matched]
    plan.removed = [memory for memory in left if memory.id not in matched]
    return plan


def _alike(
    sayings: Sequence[Saying], memories: Sequence[TypedMemory]
) -> Iterator[tuple[Saying, TypedMemory]]:
    """Pairs that say nearly the same in the same file, the most alike first, each once."""
    pairs: list[tuple[float, int, Saying, TypedMemory]] = []
    for saying in sayings:
        files = {place.file.path for place in saying.places}
        for memory in memories:
            if files & paths_of(memory):
                new = saying.text[:_COMPARED_CHARACTERS].casefold()
                likeness = max(
                    SequenceMatcher(None, old[:_COMPARED_CHARACTERS].casefold(), new, False).ratio()
                    for old in _originals(memory)
                )
                if likeness >= LIKE_ENOUGH:
                    pairs.append((-likeness, len(pairs), saying, memory))
    seen: set[str] = set()
    for _, _, saying, memory in sorted(pairs, key=lambda pair: pair[:2]):
        if saying.key not in seen and memory.id not in seen:
            seen |= {saying.key, memory.id}
            yield saying, memory
