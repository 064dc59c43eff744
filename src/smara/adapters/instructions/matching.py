"""What an import means for the memories that earlier imports made. Nothing is changed here.

A statement and a memory belong together when the file says the same words; lines may have
moved, and so may the whole file. Words that were changed are found by their likeness within
one file. What a person has put aside stays so, whatever the file says.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher

from smara.adapters.instructions.models import InstructionFile, Statement
from smara.knowledge.models import TypedMemory

LIKE_ENOUGH = 0.6
"""Unrelated sentences are alike by 0.2 to 0.45, a sentence with a word changed by 0.7 and more."""
_COMPARED_CHARACTERS = 400
_NOT_WORDS = re.compile(r"[\s*_`\"'“”‘’]+")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a statement stands."""

    file: InstructionFile
    statement: Statement


@dataclass(slots=True)
class Saying:
    """Something that is said once or several times, with all places that say it."""

    key: str
    text: str
    places: list[Place] = field(default_factory=list)


@dataclass(slots=True)
class Matched:
    """A memory, and all that the files say of it: two sayings may have become one memory."""

    memory: TypedMemory
    sayings: list[Saying] = field(default_factory=list)


@dataclass(slots=True)
class Plan:
    """What is to be done; every saying and every memory is in one of the lists."""

    kept: list[Matched] = field(default_factory=list)
    changed: list[tuple[Saying, TypedMemory]] = field(default_factory=list)
    returned: list[Matched] = field(default_factory=list)
    put_aside: list[tuple[Saying, TypedMemory]] = field(default_factory=list)
    """A person rejected or forgot it, or something better took its place: the file is not asked."""
    added: list[Saying] = field(default_factory=list)
    removed: list[TypedMemory] = field(default_factory=list)


def key_of(text: str) -> str:
    """What identifies a text: its words, whatever the spaces, marks and capitals."""
    plain = _NOT_WORDS.sub(" ", text).strip(" .;,").casefold()
    return hashlib.sha256(plain.encode("utf-8", "replace")).hexdigest()[:32]


def sayings_of(places: Iterable[tuple[Place, str]]) -> list[Saying]:
    """The places by what they say, in the order of their first appearance."""
    found: dict[str, Saying] = {}
    for place, text in places:
        key = key_of(text)
        found.setdefault(key, Saying(key, text)).places.append(place)
    return list(found.values())


def keys_of(memory: TypedMemory) -> set[str]:
    """What the file said when the memory was made of it; a person may have put it in other words
    since.
    """
    return {key_of(each.quote) for each in memory.evidence if each.quote} or {
        key_of(memory.content)
    }


def paths_of(memory: TypedMemory) -> set[str]:
    """The files a memory was imported from."""
    return {each.path for each in memory.evidence if each.path}


def match(
    sayings: Sequence[Saying], memories: Sequence[TypedMemory], is_by_person: dict[str, bool]
) -> Plan:
    """What an import means. ``is_by_person`` tells of memories put aside whether a person did it,
    by id.
    """
    plan = Plan()
    known = _Known(memories)
    waiting = [saying for saying in sayings if not known.keep(saying)]
    plan.kept = known.kept()
    for saying in list(waiting):
        memory = known.newest(saying)
        if memory is None:
            continue
        waiting.remove(saying)
        newer = known.successor(memory)
        if newer is not None:
            # The file went back to its old words: what had taken their place gives way again.
            plan.changed.append((saying, newer))
        elif is_by_person.get(memory.id) or memory.deprecated_because in (
            "rejected",
            "merged",
            "superseded",
        ):
            plan.put_aside.append((saying, memory))
        else:
            plan.returned.append(Matched(memory, [saying]))
    taken = {memory.id for _, memory in plan.changed}
    left = [each for each in known.unsaid() if each.id not in taken]
    plan.changed += _alike(waiting, left)
    replaced = {memory.id for _, memory in plan.changed}
    said = {saying.key for saying, _ in plan.changed}
    plan.added = [saying for saying in waiting if saying.key not in said]
    plan.removed = [memory for memory in left if memory.id not in replaced]
    return plan


class _Known:
    """The memories of earlier imports, by what the files said."""

    def __init__(self, memories: Sequence[TypedMemory]) -> None:
        self._memories = {each.id: each for each in memories}
        self._by_key: dict[str, list[TypedMemory]] = {}
        for memory in sorted(memories, key=lambda each: -each.created_at):
            for key in keys_of(memory):
                self._by_key.setdefault(key, []).append(memory)
        self._said: dict[str, Matched] = {}

    def keep(self, saying: Saying) -> bool:
        """Note that a saying is what an active memory was made of; whether there is one."""
        active = [each for each in self._by_key.get(saying.key, ()) if each.is_active]
        for each in active[:1]:
            self._said.setdefault(each.id, Matched(each)).sayings.append(saying)
        return bool(active)

    def kept(self) -> list[Matched]:
        return list(self._said.values())

    def newest(self, saying: Saying) -> TypedMemory | None:
        """The newest memory that was made of a saying and put aside since."""
        return next(iter(self._by_key.get(saying.key, ())), None)

    def successor(self, memory: TypedMemory) -> TypedMemory | None:
        """The memory of an import that took the place of another one, and is not said any more."""
        newer = (
            self._memories.get(memory.superseded_by or "")
            if memory.deprecated_because == "superseded"
            else None
        )
        return (
            newer if newer is not None and newer.is_active and newer.id not in self._said else None
        )

    def unsaid(self) -> list[TypedMemory]:
        """The active ones that no file says any more."""
        return [
            each for each in self._memories.values() if each.is_active and each.id not in self._said
        ]


def _alike(
    sayings: Sequence[Saying], memories: Sequence[TypedMemory]
) -> Iterator[tuple[Saying, TypedMemory]]:
    """Pairs that say nearly the same in the same file, the most alike first, each once."""
    pairs: list[tuple[float, int, Saying, TypedMemory]] = []
    for saying in sayings:
        files = {place.file.path for place in saying.places}
        for memory in memories:
            if files & paths_of(memory):
                likeness = _likeness(saying.text, memory)
                if likeness >= LIKE_ENOUGH:
                    pairs.append((-likeness, len(pairs), saying, memory))
    seen: set[str] = set()
    for _, _, saying, memory in sorted(pairs, key=lambda pair: pair[:2]):
        if saying.key not in seen and memory.id not in seen:
            seen |= {saying.key, memory.id}
            yield saying, memory


def _likeness(text: str, memory: TypedMemory) -> float:
    olds = [each.quote for each in memory.evidence if each.quote] or [memory.content]
    new = text[:_COMPARED_CHARACTERS].casefold()
    return max(
        SequenceMatcher(None, old[:_COMPARED_CHARACTERS].casefold(), new, False).ratio()
        for old in olds
    )
