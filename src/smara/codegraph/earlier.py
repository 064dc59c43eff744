"""What is stored of a few files that have changed: read once, to see what of them is still the
same.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from smara.codegraph.facts import unpack_facts
from smara.codegraph.models import Definition, FileFacts
from smara.codegraph.rows import ChunkRow, FileRow, NodeRow
from smara.codegraph.store import CodeStore
from smara.core.storable import from_storable, to_storable
from smara.database.database import Session


@dataclass(slots=True)
class Earlier:
    """The nodes, chunks and facts of some files, each as of the revision of its row."""

    rows: dict[str, FileRow] = field(default_factory=dict)
    nodes: dict[int, list[NodeRow]] = field(default_factory=dict)
    chunks: dict[int, list[ChunkRow]] = field(default_factory=dict)
    outlines: dict[int, bytes] = field(default_factory=dict)
    uses: dict[int, bytes] = field(default_factory=dict)

    @classmethod
    def read(cls, session: Session, store: CodeStore, rows: Iterable[FileRow]) -> Earlier:
        """All there is of some files."""
        found = {row.path: row for row in rows}
        numbers = [row.no for row in found.values()]
        facts = store.facts(session, "outline, uses", numbers)
        return cls(
            found,
            store.nodes(session, numbers),
            store.chunks(session, numbers),
            {no: bytes(outline) for no, outline, _ in facts},
            {no: bytes(uses) for no, _, uses in facts},
        )

    def is_current(self, row: FileRow) -> bool:
        """Whether a file is stored as it was when this was read."""
        known = self.rows.get(row.path)
        return known is not None and (known.no, known.revision) == (row.no, row.revision)

    def facts(self, path: str) -> FileFacts | None:
        """What a file said the last time, where some of it may be taken over."""
        row = self.rows.get(path)
        if row is None or row.no not in self.uses:
            return None
        facts = unpack_facts(self.uses[row.no])
        if facts is None or not facts.units:
            return None
        definitions = _whole(facts.definitions, self.nodes.get(row.no, ()))
        return facts._replace(definitions=definitions) if definitions is not None else None


def _whole(
    definitions: Iterable[Definition], nodes: Iterable[NodeRow]
) -> tuple[Definition, ...] | None:
    """Definitions with what is kept of them in their nodes; ``None`` when one has no node."""
    known = {(node.kind, node.qualname, node.ordinal): node for node in nodes}
    met: dict[tuple[str, str], int] = {}
    found = []
    for each in definitions:
        ordinal = met.get((each.kind, each.qualname), 0)
        met[each.kind, each.qualname] = ordinal + 1
        node = known.get((each.kind, to_storable(each.qualname), ordinal))
        if node is None:
            return None
        found.append(
            Definition(
                *each[:8],
                from_storable(node.signature),
                from_storable(node.doc),
                node.body_hash,
                node.sketch,
            )
        )
    return tuple(found)
