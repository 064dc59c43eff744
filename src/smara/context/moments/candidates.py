"""Find and choose the memories that may be injected.

At a start every type has a share of the budget, so that thirty traps cannot crowd out one
decision. The same store always gives the same choice.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from heapq import nlargest
from typing import NamedTuple

from smara.context.models import BUDGETS
from smara.context.moments.draft import LONGEST_LINE, cost_of, memory_line
from smara.core.startup.regex import regex
from smara.decisions.decisions import line_of
from smara.decisions.models import is_plan
from smara.decisions.utterances import names_in
from smara.knowledge.gate import is_echo
from smara.knowledge.kinds import KINDS, types_told_at
from smara.knowledge.memories import Memories
from smara.knowledge.models import MemoryType, TypedMemory
from smara.knowledge.reader import names_of
from smara.knowledge.statements import Statement, is_repeated_in, parse_statement
from smara.knowledge.trust import Tellable
from smara.search.patterns import words_of

MOST = 28
"""More than this is not read at the start of a session."""
MOST_UNCONFIRMED = 6
_PINNED, _CONFIRMED = 0.6, 0.3
_NEAR = (0.8, 0.4)
"""What being about the files at hand adds, and about a folder around them."""
_USED = 0.04
_ORDER = {type_: number for number, type_ in enumerate(KINDS)}
FOR_START, FOR_FILE = types_told_at("start"), types_told_at("file")
_ELSEWHERE = 0.5
"""What a person's word of a type that has another moment than the start takes from its place."""


def is_for_file(memory: TypedMemory, is_edit: bool) -> bool:
    """Return True if a memory is told at its file.

    A person's word always is. What matters to a change, or before the file is read, is not told
    when it was opened.
    """
    moments = KINDS[memory.type].told_at
    if "edit" in moments:
        return is_edit
    return "file" in moments or (memory.is_verified and (is_edit or "read" not in moments))


def file_order(tellables: Iterable[Tellable], is_edit: bool) -> list[Tellable]:
    """Return memories about a file in order.

    A person's word comes first, then the others by their worth. What a session does
    with the file says the phase of its work, which weighs the types.
    """
    phase = "implement" if is_edit else "explore"

    def key(each: Tellable) -> tuple[bool, float]:
        weight = KINDS[each.memory.type].boost.get(phase, 1.0)
        return not each.memory.is_verified, -each.confidence * weight

    return sorted(tellables, key=key)


class MemoryCandidate(NamedTuple):
    """A memory that may be told, its line and cost.

    ``nearness`` is 0 for a memory about the file at hand, 1 for one about a folder around it.
    """

    tellable: Tellable
    line: str
    cost: int
    nearness: int | None = None


def score(candidate: MemoryCandidate) -> float:
    """Return the worth of a memory at the start of a session.

    A pinned decision, confirmed, of confidence 0.9: 0.9 + 0.6 + 0.3 = 1.8. A trap that an agent
    noted for the file at hand, of confidence 0.85: 0.85 + 0.8 = 1.65.
    """
    memory = candidate.tellable.memory
    near = 0.0 if candidate.nearness is None else _NEAR[min(candidate.nearness, 1)]
    return (
        candidate.tellable.confidence
        + near
        + _PINNED * memory.is_pinned
        + _CONFIRMED * (memory.tier == "confirmed")
        + _USED * min(memory.verified_uses, 5)
        - _ELSEWHERE * (memory.type not in FOR_START)
    )


def choose(candidates: Sequence[MemoryCandidate], room: int) -> list[MemoryCandidate]:
    """Return those that fit a number of tokens, in order."""
    ranked = sorted(candidates, key=lambda each: (-score(each), each.tellable.memory.id))
    chosen: dict[str, MemoryCandidate] = {}
    left = room
    for kind in KINDS.values():
        part = min(int(room * kind.start_share), left)
        left -= part - _take(ranked, chosen, part, type_=kind.type)
    _take(ranked, chosen, left, type_=None)

    def place(candidate: MemoryCandidate) -> tuple[bool, int, int, str]:
        memory = candidate.tellable.memory
        is_confirmed = memory.tier == "confirmed"
        order = _ORDER[memory.type] if is_confirmed else int(memory.source != "said")
        return not is_confirmed, order, memory.created_at, memory.id

    return sorted(chosen.values(), key=place)


def _take(
    ranked: Sequence[MemoryCandidate],
    chosen: dict[str, MemoryCandidate],
    room: int,
    type_: MemoryType | None,
) -> int:
    """Put in what fits, of one type or of any; the room that is left."""
    for each in ranked:
        memory = each.tellable.memory
        is_other = type_ is not None and memory.type != type_
        if is_other or memory.id in chosen or each.cost > room or len(chosen) >= MOST:
            continue
        is_open = memory.tier != "confirmed" and memory.source != "said"
        if (
            is_open
            and sum(other.tellable.memory.tier != "confirmed" for other in chosen.values())
            >= MOST_UNCONFIRMED
        ):
            continue
        chosen[memory.id] = each
        room -= each.cost
    return room


LEAST_CONFIDENCE = 0.65
"""Below this nothing that no person confirmed is said in the middle of the work."""
MOST_OF_A_FILE = 3
_MOST_GONE = 100
_LEAST_ERROR = 12
_READ_FOR_START = {"pinned": 40, "confirmed": 80, "facts": 40, "near": 40}
_JUDGED = 64
_MOST_NEWEST, _CERTAIN = 6, 0.85
"""How many decisions are told at a start because they are the last ones, and how sure they are."""
_LEAST_SHARED = 0.75
_INNER_CAPITAL = regex(r"[a-z][A-Z]")


class MemoryFinder:
    """The memories that may be injected without being asked for."""

    def __init__(
        self,
        memories: Callable[[], Memories],
        root: Callable[[], str | None],
        search_pattern: Callable[[str], str | None],
    ) -> None:
        self._find_memories = memories
        self.root = root
        self._search_pattern = search_pattern

    @property
    def memories(self) -> Memories:
        return self._find_memories()

    def about_file(self, path: str, is_edit: bool = False) -> list[Tellable]:
        """Return the memories about a file or its module, the surest first."""
        root = self.root()
        names = file_names(path, root)
        near = self.memories.for_files([path], limit=40, root=root)
        here = (each for each in near if names.intersection(each.files) or not each.files)
        found = {each.memory.id: each for each in self._sure(here, sorted(names))}
        # A file that is gone may be this one under its former name: the code tells.
        gone = (
            ()
            if root is None
            else (
                each
                for each in self._newest(FOR_FILE, _MOST_GONE, is_any_verified=True)
                if each.files and not any(os.path.exists(os.path.join(root, f)) for f in each.files)
            )
        )
        for each in self._sure(gone):
            if names.intersection(each.memory.files):
                found.setdefault(each.memory.id, each)
        fitting = [each for each in found.values() if is_for_file(each.memory, is_edit)]
        return file_order(fitting, is_edit)[:MOST_OF_A_FILE]

    def before_read(self, path: str) -> list[Tellable]:
        """Return what to know before a file is read whole."""
        names, types = file_names(path, self.root()), types_told_at("read")
        near = self.memories.for_files([path], types=types, limit=10, root=self.root())
        found = (memory for memory in near if names.intersection(memory.files))
        return self._sure(found, sorted(names))

    def refusing(self, limit: int) -> list[tuple[tuple[str, ...], Tellable]]:
        """Return decisions that refuse a command, with the command, newest first."""
        listed = self.memories.list(source="said", limit=limit)
        refusing = [each for each in listed if each.data.get("commands")]
        return [
            (tuple(str(command).split()), each)
            for each in self.memories.tellable(refusing, places=None)
            for command in each.memory.data["commands"]
        ]

    def about_error(self, output: str) -> list[Tellable]:
        """Return described errors that stand in a text."""
        text = " ".join(output.split()).casefold()
        errors = (
            (memory, " ".join(str(memory.data.get("error") or "").split()).casefold())
            for memory in self._newest(types_told_at("error"), 200)
        )
        found = (memory for memory, error in errors if len(error) >= _LEAST_ERROR and error in text)
        return self._sure(found)[:2]

    def answering(self, pattern: str) -> list[Tellable]:
        """Return the memory that has every word of a search."""
        memory_id = self._search_pattern(pattern) if is_telling(words_of(pattern)) else None
        memory = self.memories.find(memory_id) if memory_id is not None else None
        is_answer = memory is not None and "search" in KINDS[memory.type].told_at
        return self._sure([memory]) if memory is not None and is_answer else []

    def of_types(self, types: Sequence[MemoryType], limit: int) -> list[Tellable]:
        """Return the newest memories of some types."""
        return self.memories.tellable(self._newest(types, limit), places=None)

    def sure_of_files(self, limit: int) -> list[Tellable]:
        """Return every memory about some file, a person's word first."""
        types = (*FOR_FILE, *types_told_at("edit"), *types_told_at("read"))
        found = self._newest(types, limit, is_any_verified=True)
        return self._sure(each for each in found if each.files)

    def sure_of_any(self, limit: int) -> list[Tellable]:
        """Return every memory that may answer a search, a person's word first."""
        return self._sure(self._newest(types_told_at("search"), limit))

    def _sure(
        self, memories: Iterable[TypedMemory], places: Sequence[str] | None = None
    ) -> list[Tellable]:
        # What is searched for, or the very error that was met, is at hand in any place.
        return [
            each
            for each in self.memories.tellable(list(memories), places=places)
            if each.memory.is_verified
            or (each.memory.source == "said" and not is_plan(each.memory))
            or (each.memory.source != "said" and each.confidence >= LEAST_CONFIDENCE)
        ]

    def _newest(
        self, types: Sequence[MemoryType], limit: int, is_any_verified: bool = False
    ) -> list[TypedMemory]:
        """Return the newest memories of some types, a person's word (of any type) first.

        Otherwise what was learned since would crowd out what a person taught long ago.
        """
        words = self.memories.list(
            types=None if is_any_verified else types, is_verified=True, limit=limit
        )
        return [*words, *self.memories.list(types=types, is_verified=False, limit=limit)]

    def for_start(
        self,
        files: Sequence[str],
        cwd: str,
        known_texts: Sequence[str],
        accepted: Sequence[str] = (),
        trust_level: int | None = None,
    ) -> list[MemoryCandidate]:
        """Return what a session may begin with, best first, nothing twice.

        What the instruction files in ``known_texts`` say is left out; ``accepted`` counts as
        confirmed.
        """
        memories, most, root = self.memories, _READ_FOR_START, self.root()
        paths = [path for path in files if path]
        if cwd and root and os.path.abspath(cwd).startswith(root.rstrip("/") + "/"):
            paths.append(os.path.abspath(cwd))
        close = memories.for_files(paths, limit=most["near"], root=root) if paths else []
        near = {memory.id for memory in close}
        every = {
            memory.id: memory
            for page in (
                close,
                memories.list(is_pinned=True, limit=most["pinned"]),
                memories.list(is_verified=True, limit=most["confirmed"]),
                memories.list(
                    is_verified=False, types=FOR_START, order="confidence", limit=most["facts"]
                ),
            )
            for memory in page
        }
        every.update(
            (each.id, replace(each, is_verified=True, needs_review=False, stale_at=None))
            for each in map(memories.get, accepted)
        )
        of_late = _newest_said(every.values())
        places = [names_of(path, root)[0] for path in paths]
        pool = [
            memory
            for memory in every.values()
            if (memory.is_verified or (memory.type in FOR_START and memory.tier != "quarantined"))
            and memory.applies_at(places)
            # What was decided about one thing is told when the work comes to it; what was decided
            # last is what the work is about.
            and (
                memory.source != "said"
                or KINDS[memory.type].is_standing
                or (memory.verified_uses and not is_plan(memory))
                or memory.id in of_late
            )
        ]
        pool.sort(
            key=lambda each: (
                not each.is_pinned,
                each.id not in near,
                not each.is_verified,
                -each.created_at,
            )
        )
        names = {name for path in files for name in file_names(path, root)}
        found = []
        for tellable in memories.tellable(pool[:_JUDGED], places=None, trust_level=trust_level):
            memory, line = tellable.memory, memory_line(tellable, is_grouped=True)
            nearness = int(names.isdisjoint(memory.files)) if memory.id in near else None
            cost = cost_of(line, BUDGETS["start"])
            found.append(MemoryCandidate(tellable, line, cost, nearness=nearness))
        found.sort(key=lambda each: (-score(each), each.tellable.memory.id))
        instructions = InstructionTexts(known_texts)
        distinct: list[MemoryCandidate] = []
        statements: list[Statement] = []
        for each in found:
            statement = parse_statement(each.tellable.memory.content)
            is_repeated = any(is_repeated_in(statement, other) for other in statements)
            if not is_repeated and not instructions.say(each.tellable.memory):
                distinct.append(each)
                statements.append(statement)
        return distinct


def _newest_said(memories: Iterable[TypedMemory]) -> set[str]:
    """Return the ids of the newest short decisions that are sure: what the work is about.

    Sure are very plain words, and what both sides said: in noise that looks like a decision, agents
    repeat little. What names code of a file is told at its file, and a long one whole when the work
    comes to it.
    """
    sure = [
        each
        for each in memories
        if each.source == "said"
        and (each.data.get("wording") == "agent" or each.data.get("certainty", 0) >= _CERTAIN)
        and not (each.files and names_in([each.content]))
        and len(line_of(each)) <= LONGEST_LINE
    ]
    newest = nlargest(_MOST_NEWEST, sure, key=lambda each: (each.evidence_at, each.id))
    return {each.id for each in newest}


def file_names(path: str, root: str | None) -> set[str]:
    """Return the names of a file, without those of its folders.

    >>> sorted(file_names("/w/app/src/a.py", "/w/app")), sorted(file_names("/w/app/src/a.py", None))
    (['src/a.py'], ['/w/app/src/a.py', 'app/src/a.py', 'src/a.py', 'w/app/src/a.py'])
    """
    names = names_of(path, root)
    last = names[0].rpartition("/")[2] if names else ""
    return {name for name in names if name.rpartition("/")[2] == last}


def is_telling(pattern: str) -> bool:
    """Return True if a search is particular enough for an answer.

    >>> is_telling("refresh_tokens"), is_telling("RefreshToken"), is_telling("import"), is_telling("retry budget limit")
    (True, True, False, True)
    """  # noqa: E501
    words = [word for word in pattern.split() if len(word) >= 4]
    is_name = any("_" in word.strip("_") or _INNER_CAPITAL.search(word) for word in words)
    return is_name or len(words) >= 3


class InstructionTexts:
    """The instruction files that an agent read by itself."""

    def __init__(self, texts: Sequence[str] = ()) -> None:
        self._texts = [(text, text.lower()) for text in texts]

    def say(self, memory: TypedMemory) -> bool:
        """Return True if a memory stands in them."""
        if not self._texts:
            return False
        statement = parse_statement(memory.content)
        words = statement.content_set
        # Most of its words must stand in a text before it is worth reading: that costs more.
        texts = [
            text
            for text, lowered in self._texts
            if words and sum(word in lowered for word in words) >= _LEAST_SHARED * len(words)
        ]
        return bool(texts) and is_echo(statement, texts)
