"""Link memories and observations to the code they name.

A link knows whether the code still is as the memory states.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from smara.codegraph.anchors.anchors import Anchors, AnchorStatement
from smara.codegraph.anchors.models import Named, Owner
from smara.codegraph.models import LinkKind, Node
from smara.core import log
from smara.core.freshness import AnchorVerdict, Freshness
from smara.core.scope import Scope
from smara.database.database import Database, Session, marks
from smara.errors import SmaraError
from smara.knowledge.models import TypedMemory
from smara.knowledge.store import KnowledgeStore, StoredMemory
from smara.links.models import CodeLink

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

    def written(self, memories: Sequence[StoredMemory]) -> None:
        """Find the code that new or changed memories name. What they named before stays as it
        was.
        """
        self._try(lambda: self._anchors.put(memory_statement(each) for each in memories))

    def verified(self, memories: Sequence[StoredMemory]) -> None:
        """A person said that they are true today: they speak of the code of today."""
        for each in memories:
            self._try(lambda stored=each: self._anchors.verify(memory_statement(stored)))  # type: ignore[misc]

    def taken_back(self, memories: Sequence[StoredMemory], since_ms: int) -> None:
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
        return self._anchors.store.owners_at(session, "memory", paths)

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
        owners: tuple[tuple[Owner, Callable[[Sequence[int]], Iterator[AnchorStatement]]], ...] = (
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

    def _memories(self, numbers: Sequence[int]) -> Iterator[AnchorStatement]:
        with self._knowledge.database.read() as session:
            found = self._knowledge.by_numbers(session, numbers, has_relations=False)
        return (memory_statement(StoredMemory(no, memory)) for no, memory in found.items())

    def _noted(self, numbers: Sequence[int]) -> Iterator[AnchorStatement]:
        from smara.observations.store import ObservationStore  # who looks up memories does without

        store = ObservationStore(self._database, self._scope)
        with self._database.read() as session:
            found = store.select(session, f" AND o.no IN ({marks(len(numbers))})", numbers)
        return (observation_statement(no, each) for no, each in found)


def memory_statement(stored: StoredMemory) -> AnchorStatement:
    """The code that a memory names, in its own words."""
    memory = stored.memory
    made_at = memory.verified_at or memory.created_at
    return AnchorStatement(
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


def observation_statement(no: int, observation: Observation) -> AnchorStatement:
    """The code that an observation names."""
    text = "\n".join((observation.text, *observation.details))
    named = [Named(path) for path in observation.files]
    return AnchorStatement(
        "observation", no, named, text=text, commit=None, made_at=observation.said_at
    )


MOST = 500
_APPLIED = ("pattern", "workflow_recipe")


class CodeKnowledge:
    """The third layer of the graph: what was said about the code, joined to it."""

    def __init__(self, find_anchors: Callable[[], Anchors], knowledge: KnowledgeStore) -> None:
        self._find_anchors = find_anchors
        self._knowledge = knowledge

    def about(self, nodes: Sequence[Node], limit: int = 10) -> list[CodeLink]:
        """What is known about some files or symbols, what speaks of the very symbol first.

        A file is spoken of by all that speaks of something in it, a symbol also by what speaks of
        its whole file. Empty when there is trouble: nobody's question fails over it.
        """
        try:
            found = self._all([node.path for node in nodes])
        except TROUBLE as error:
            log.warning("links.not_read", error=str(error))
            return []
        near = [
            (distance, link) for link in found if (distance := _distance(link, nodes)) is not None
        ]
        return [link for _, link in sorted(near, key=lambda pair: (pair[0], pair[1].memory_id))][
            :limit
        ]

    def links(self, limit: int = MOST) -> list[CodeLink]:
        """Every link between a memory and code, by path."""
        return sorted(
            self._all(None)[:limit], key=lambda each: (each.path, each.symbol, each.memory_id)
        )

    def _all(self, paths: Sequence[str] | None) -> list[CodeLink]:
        anchors = self._find_anchors()
        with self._knowledge.database.read() as session:
            # What moved here is anchored elsewhere: all are judged when few are there.
            numbers = anchors.store.owners_at(session, "memory", None)
            if len(numbers) > MOST and paths is not None:
                numbers = anchors.store.owners_at(session, "memory", paths)
            return list(self._links(session, anchors, list(numbers)[-MOST:]))

    def _links(
        self, session: Session, anchors: Anchors, numbers: Sequence[int]
    ) -> Iterable[CodeLink]:
        memories = self._knowledge.by_numbers(session, numbers, has_relations=False)
        judged = anchors.judge(session, "memory", numbers)
        for no, memory in memories.items():
            if memory.is_active and no in judged:
                yield from (_link(memory, judged[no], each) for each in judged[no].anchors)


def _link(memory: TypedMemory, freshness: Freshness, anchor: AnchorVerdict) -> CodeLink:
    kind: LinkKind = "applies_pattern" if memory.type in _APPLIED else "documents"
    return CodeLink(
        kind,
        memory.id,
        memory.short_id,
        type=memory.type,
        text=memory.content,
        path=anchor.now_path or anchor.path,
        symbol=anchor.now_symbol or anchor.symbol,
        verdict=anchor.verdict,
        hedge=freshness.hedge,
    )


def _distance(link: CodeLink, nodes: Sequence[Node]) -> int | None:
    """0 for the very symbol, 1 for something in it or around it, 2 for its whole file; ``None`` for
    something else.
    """
    found = [
        _symbol_distance(link.symbol, _symbol(node)) for node in nodes if node.path == link.path
    ]
    return min((each for each in found if each is not None), default=None)


def _symbol(node: Node) -> str:
    """The name that a link would have; a file's own name is its path, and a link to a whole file
    has none.
    """
    return "" if node.kind == "file" else node.qualname


def _symbol_distance(said: str, asked: str) -> int | None:
    if said == asked:
        return 0
    if not asked or said.startswith(f"{asked}.") or (said and asked.startswith(f"{said}.")):
        return 1
    return 2 if not said else None
