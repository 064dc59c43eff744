"""Link memories and observations to the code they name.

A link knows whether the code still is as the memory states.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from smara.codegraph.anchors.anchors import Anchors, AnchorStatement
from smara.codegraph.anchors.models import Named, Owner
from smara.codegraph.models import Node
from smara.core import log
from smara.core.freshness import Freshness
from smara.core.scope import Scope
from smara.database.database import Database, Session
from smara.errors import SmaraError
from smara.knowledge.kinds import KINDS
from smara.knowledge.provenance import NamedCode
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


class MemoryCode(NamedCode):
    """The code that memories name, by the anchors of the code graph.

    Trouble with the code never fails the change of a memory.
    """

    def __init__(self, anchors: Anchors) -> None:
        self._anchors = anchors

    def written(self, memories: Sequence[StoredMemory]) -> None:
        """Find the code that new or changed memories name."""
        with _forgive("anchors.failed"):
            self._anchors.put(memory_statement(each) for each in memories)

    def verified(self, stored: StoredMemory) -> None:
        """Anchor a memory that a person confirmed to the code of today."""
        with _forgive("anchors.failed"):
            self._anchors.verify(memory_statement(stored))

    def reverted(self, stored: StoredMemory, since_ms: int) -> None:
        """Revert the anchors of a reverted confirmation."""
        with _forgive("anchors.failed"):
            self._anchors.take_back("memory", stored.no, since_ms)

    def freshness(self, session: Session, numbers: Sequence[int]) -> Mapping[int, Freshness]:
        """Return how memories stand to the code they name."""
        with _forgive("anchors.not_judged"):
            return self._anchors.judge(session, "memory", numbers)
        return {}

    def named_in(self, session: Session, paths: Sequence[str] | None) -> Sequence[int]:
        """Return the memories that name code in some files."""
        return self._anchors.store.owners_at(session, "memory", paths)


@contextmanager
def _forgive(event: str) -> Iterator[None]:
    """Log trouble in reading code, and go on."""
    try:
        yield
    except TROUBLE as error:
        log.warning(event, error=str(error))


class CodeUpkeep:
    """The upkeep of anchors and reviews when code is indexed or changes."""

    def __init__(
        self,
        anchors: Anchors,
        database: Database,
        scope: Scope,
        find_memories: Callable[[], Memories],
    ) -> None:
        self._anchors = anchors
        self._knowledge = KnowledgeStore(database, scope)
        self._find_memories = find_memories

    def indexed(self, root: str, paths: Sequence[str] | None) -> None:
        """Anchor what waits, and ask for reviews, after a tree was indexed.

        It never raises: an index is not worth less because of it.

        Args:
            root: The folder of the tree.
            paths: The files that changed; None for the whole tree.
        """
        with _forgive("anchors.upkeep_failed"):
            tree = self._knowledge.ask(self._anchors.tree)
            if tree is None or tree.root != root:
                return
            if paths is None:
                self.anchor_pending()
            self._find_memories().check_code(paths)

    def anchor_pending(self, most: int = 10_000) -> int:
        """Anchor memories and observations that were never looked at for code.

        Those that were there before the code was indexed are anchored to the code as it was when
        they were made.

        Args:
            most: About how many to look at.

        Returns:
            How many were looked at.
        """
        from smara.observations.store import ObservationStore  # who looks up memories does without

        notes = ObservationStore(self._knowledge.database, self._knowledge.scope)
        owners: tuple[Owner, ...] = ("memory", "observation")
        done = 0
        for owner in owners:
            for numbers in self._anchors.pending(owner, _AT_ONCE):
                with self._knowledge.database.read() as session:
                    if owner == "memory":
                        found = self._knowledge.by_numbers(session, numbers, has_relations=False)
                        statements = [
                            memory_statement(StoredMemory(*each)) for each in found.items()
                        ]
                    else:
                        rows = notes.by_numbers(session, numbers)
                        statements = [observation_statement(*each) for each in rows.items()]
                for statement in statements:
                    self._anchors.catch_up(statement)
                done += len(numbers)
                if done >= most:
                    break
        if done:
            log.event("anchors.caught_up", statements=done)
        return done


def memory_statement(stored: StoredMemory) -> AnchorStatement:
    """Return the code that a memory names, in its own words."""
    memory = stored.memory
    # What was imported rests on the lines of an instruction file, which the import follows by
    # itself.
    named = [
        Named(
            each.path,
            "",
            each.first_line,
            last_line=each.last_line,
            commit=each.commit,
            named_by="evidence",
        )
        for each in (memory.evidence if memory.source != "imported" else ())
        if each.path is not None
    ]
    example, line = memory.data.get("example_file"), memory.data.get("example_line")
    if isinstance(example, str):
        at = line if isinstance(line, int) else None
        named.append(Named(example, "", at, last_line=None, commit=None, named_by="evidence"))
    return AnchorStatement(
        "memory",
        stored.no,
        [*named, *map(Named, memory.files)],
        text=memory.content,
        commit=memory.commit,
        made_at=memory.verified_at or memory.created_at,
    )


def observation_statement(no: int, observation: Observation) -> AnchorStatement:
    """Return the code that an observation names."""
    text = "\n".join((observation.text, *observation.details))
    named = [Named(path) for path in observation.files]
    return AnchorStatement(
        "observation", no, named, text=text, commit=None, made_at=observation.said_at
    )


MOST = 500


class CodeKnowledge:
    """The third layer of the graph: statements about code."""

    def __init__(self, find_anchors: Callable[[], Anchors], knowledge: KnowledgeStore) -> None:
        self._find_anchors = find_anchors
        self._knowledge = knowledge

    def about(self, nodes: Sequence[Node], limit: int = 10) -> list[CodeLink]:
        """Return what is known about files or symbols, the very symbol first.

        A file is spoken of by all that speaks of something in it, a symbol also by what speaks of
        its whole file. On an error the answer is empty.

        Args:
            nodes: Files and symbols of the code graph.
            limit: The most links to return.
        """
        found: list[CodeLink] = []
        with _forgive("links.not_read"):
            found = self._all([node.path for node in nodes])
        near: list[tuple[int, CodeLink]] = []
        for link in found:
            # A link to a whole file names no symbol.
            symbols = ["" if n.kind == "file" else n.qualname for n in nodes if n.path == link.path]
            distances = (_symbol_distance(link.symbol, symbol) for symbol in symbols)
            nearest = min((each for each in distances if each is not None), default=None)
            if nearest is not None:
                near.append((nearest, link))
        near.sort(key=lambda pair: (pair[0], pair[1].memory_id))
        return [link for _, link in near[:limit]]

    def links(self, limit: int = MOST) -> list[CodeLink]:
        """Return every link between a memory and code, by path.

        Args:
            limit: The most links to return; 500 by default.
        """
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
            numbers = list(numbers)[-MOST:]
            memories = self._knowledge.by_numbers(session, numbers, has_relations=False)
            judged = anchors.judge(session, "memory", numbers)
        return [
            CodeLink(
                "applies_pattern" if KINDS[memory.type].is_applied else "documents",
                memory.id,
                memory.short_id,
                type=memory.type,
                text=memory.content,
                path=anchor.now_path or anchor.path,
                symbol=anchor.now_symbol or anchor.symbol,
                verdict=anchor.verdict,
                hedge=judged[no].hedge,
            )
            for no, memory in memories.items()
            if memory.is_active and no in judged
            for anchor in judged[no].anchors
        ]


def _symbol_distance(linked: str, symbol: str) -> int | None:
    """Return 0 for the same symbol, 1 inside or around it, 2 for its file, or None."""
    if linked == symbol:
        return 0
    is_around = bool(linked) and symbol.startswith(f"{linked}.")
    if not symbol or linked.startswith(f"{symbol}.") or is_around:
        return 1
    return 2 if not linked else None
