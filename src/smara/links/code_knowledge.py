"""What is known about code: memories, decisions and patterns as nodes that are linked to files and
symbols.

The links are the anchors of the memories, read where the code is today: a memory about a function
that moved is told at its new place. Nothing is stored twice, so nothing can disagree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from smara.codegraph.anchors.anchors import Anchors
from smara.codegraph.models import LinkKind, Node
from smara.core import log
from smara.core.freshness import AnchorVerdict, Freshness
from smara.database.database import Session
from smara.knowledge.models import TypedMemory
from smara.knowledge.store import KnowledgeStore
from smara.links.freshness import TROUBLE
from smara.links.models import CodeLink

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
            numbers = anchors.owners_at(session, "memory", None)
            if len(numbers) > MOST and paths is not None:
                numbers = anchors.owners_at(session, "memory", paths)
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
