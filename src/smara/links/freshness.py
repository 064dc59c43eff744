"""Where memories and observations meet the code they name.

A memory names code by its files, by the lines it rests on and by names in its words; an
observation by its files and its words. They are anchored to it when they are written, and those
that were there before when the code is first indexed. Trouble here never keeps anything from
being written, read or verified.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from smara.codegraph.anchors.anchors import Anchors, Statement
from smara.codegraph.anchors.models import Named, Owner
from smara.core import log
from smara.core.freshness import Freshness
from smara.core.scope import Scope
from smara.database.database import Database, Session, marks
from smara.errors import SmaraError
from smara.knowledge.models import TypedMemory
from smara.knowledge.store import KnowledgeStore, Stored

if TYPE_CHECKING:
    from smara.knowledge.memories import Memories
    from smara.observations.models import Observation

_AT_ONCE = 100
TROUBLE = (SmaraError, OSError, ImportError, ValueError, RecursionError)
"""What may go wrong in reading code: a file, a grammar that is not installed, a text of a strange
shape.
"""


class MemoryCode:
    """The code that memories name; what the room of memories asks and tells."""

    def __init__(self, anchors: Anchors) -> None:
        self._anchors = anchors

    def written(self, memories: Sequence[Stored]) -> None:
        """Find the code that new or changed memories name. What they named before stays as it
        was.
        """
        self._try(lambda: self._anchors.put(memory_statement(each) for each in memories))

    def verified(self, memories: Sequence[Stored]) -> None:
        """A person said that they are true today: they speak of the code of today."""
        for each in memories:
            self._try(lambda stored=each: self._anchors.verify(memory_statement(stored)))  # type: ignore[misc]

    def taken_back(self, memories: Sequence[Stored], since_ms: int) -> None:
        """A verification was undone, and with it what the memories were anchored to by it."""
        for each in memories:
            self._try(lambda no=each.no: self._anchors.take_back("memory", no, since_ms))  # type: ignore[misc]

    def freshness(self, session: Session, numbers: Sequence[int]) -> Mapping[int, Freshness]:
        """How memories stand to the code they name."""
        try:
            return self._anchors.judge(session, "memory", numbers)
        except TROUBLE as error:
            log.warning("anchors.not_judged", error=str(error))
            return {}

    def named_in(self, session: Session, paths: Sequence[str] | None) -> Sequence[int]:
        return self._anchors.owners_at(session, "memory", paths)

    def _try(self, act: Callable[[], object]) -> None:
        try:
            act()
        except TROUBLE as error:
            log.warning("anchors.failed", error=str(error))


class CodeUpkeep:
    """Keeps anchors and reviews up with the code: when it is first indexed, and whenever it
    changes.
    """

    def __init__(
        self,
        anchors: Anchors,
        database: Database,
        scope: Scope,
        find_memories: Callable[[], Memories],
    ) -> None:
        self._anchors = anchors
        self._knowledge = KnowledgeStore(database, scope)
        self._database, self._scope = database, scope
        self._find_memories = find_memories

    def indexed(self, root: str, paths: Sequence[str] | None) -> None:
        """The index of a tree has changed, in some files or as a whole: anchor what waits, ask for
        what to review.

        Never raises: an index is not worth less because of it.
        """
        try:
            with self._knowledge.database.read() as session:
                tree = self._anchors.tree(session)
            if tree is None or tree.root != root:
                return
            if paths is None:
                self.anchor_pending()
            self._find_memories().check_code(paths)
        except TROUBLE as error:
            log.warning("anchors.upkeep_failed", error=str(error))

    def anchor_pending(self, most: int = 10_000) -> int:
        """Look at up to so many memories and observations that were never looked at for code; how
        many.

        Those that were there before the code was indexed are anchored to the code as it was when
        they were made.
        """
        done = 0
        owners: tuple[tuple[Owner, Callable[[Sequence[int]], Iterator[Statement]]], ...] = (
            ("memory", self._memories),
            ("observation", self._noted),
        )
        for owner, load in owners:
            for numbers in self._anchors.pending(owner, _AT_ONCE):
                for statement in load(numbers):
                    self._anchors.catch_up(statement)
                done += len(numbers)
                if done >= most:
                    break
        if done:
            log.event("anchors.caught_up", statements=done)
        return done

    def _memories(self, numbers: Sequence[int]) -> Iterator[Statement]:
        with self._knowledge.database.read() as session:
            found = self._knowledge.by_numbers(session, numbers, has_relations=False)
        return (memory_statement(Stored(no, memory)) for no, memory in found.items())

    def _noted(self, numbers: Sequence[int]) -> Iterator[Statement]:
        from smara.observations.store import ObservationStore  # who looks up memories does without

        store = ObservationStore(self._database, self._scope)
        with self._database.read() as session:
            found = store.select(session, f" AND o.no IN ({marks(len(numbers))})", numbers)
        return (observation_statement(no, each) for no, each in found)


def memory_statement(stored: Stored) -> Statement:
    """The code that a memory names, in its own words."""
    memory = stored.memory
    made_at = memory.verified_at or memory.created_at
    return Statement(
        "memory",
        stored.no,
        list(_named(memory)),
        text=memory.content,
        commit=memory.commit,
        made_at=made_at,
    )


def _named(memory: TypedMemory) -> Iterator[Named]:
    # What was imported rests on the lines of an instruction file, which the import follows by
    # itself.
    for each in memory.evidence if memory.source != "imported" else ():
        if each.path is not None:
            yield Named(
                each.path,
                "",
                each.first_line,
                last_line=each.last_line,
                commit=each.commit,
                named_by="evidence",
            )
    example = memory.data.get("example_file")
    if isinstance(example, str):
        line = memory.data.get("example_line")
        yield Named(
            example,
            "",
            line if isinstance(line, int) else None,
            last_line=None,
            commit=None,
            named_by="evidence",
        )
    for path in memory.files:
        yield Named(path)


def observation_statement(no: int, observation: Observation) -> Statement:
    """The code that an observation names."""
    text = "\n".join((observation.text, *observation.details))
    named = [Named(path) for path in observation.files]
    return Statement("observation", no, named, text=text, commit=None, made_at=observation.said_at)
