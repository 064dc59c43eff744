"""Making the edges of stale files: from what was stored of them, without reading a file again."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from smara.codegraph.held import Held, StoredTable
from smara.codegraph.joining import Joined, Joiner, manifest_reader
from smara.codegraph.lookup import CodeLookup
from smara.codegraph.partial import divide
from smara.codegraph.pool import Pool
from smara.codegraph.reading import TreeReader
from smara.codegraph.scip import NamedLines, Precise, ScipIndex
from smara.codegraph.store import CodeStore
from smara.database.database import Session

_MANY = 40
_PATIENCE = 3
_WRITTEN_AT_ONCE = 400

Guard = Callable[[Session], None]


class Resolving:
    """Makes the edges of the stale files of one tree."""

    def __init__(self, store: CodeStore, tree_no: int, root: str, held: Held) -> None:
        self._store, self._tree_no, self._held = store, tree_no, held
        self._reader = TreeReader(root)

    def some(self, limit: int, guard: Guard | None = None) -> int:
        """Bring up to ``limit`` stale files up to date; how many there were.

        The work is done outside of any transaction. When somebody else has changed the tree
        meanwhile it is done again, and at last inside the transaction that writes, where nobody
        can.
        """
        for attempt in range(_PATIENCE + 1):
            if attempt < _PATIENCE:
                with self._store.database.read() as session:
                    stale = self._store.stale(session, self._tree_no, limit)
                    revision, joined = self._join(session, stale) if stale else (0, [])
                if not stale:
                    return 0
            with self._store.database.write(is_derived=True) as session:
                if guard is not None:
                    guard(session)
                if attempt == _PATIENCE:
                    stale = self._store.stale(session, self._tree_no, limit)
                    revision, joined = self._join(session, stale)
                elif self._store.revision(session, self._tree_no) != revision:
                    continue
                self._write(session, joined, [no for no, _ in stale])
                return len(stale)
        return 0

    def all_in(self, pool: Pool, guard: Guard) -> None:
        """Bring every stale file up to date by the workers of a pool; what changes meanwhile is
        left stale.
        """
        store = self._store
        with store.database.snapshot() as session:
            revision = store.revision(session, self._tree_no)
            stale = dict(store.stale(session, self._tree_no, 1 << 30))
            outlines = [
                (row[0], row[2], bytes(row[3])) for row in store.outlines(session, self._tree_no)
            ]
            paths = [row[0] for row in store.paths(session, self._tree_no)]
            files = [
                (no, stale[no], bytes(uses))
                for no, uses in store.facts(session, "uses", list(stale))
            ]
        waiting: list[Joined] = []
        for joined in pool.join(outlines, paths, files):
            waiting.append(joined)
            if len(waiting) >= _WRITTEN_AT_ONCE:
                revision = self._write_if(waiting, revision, guard)
                waiting = []
                if not revision:
                    return
        if waiting:
            self._write_if(waiting, revision, guard)

    def precisely(self, index: ScipIndex, guard: Guard) -> int:
        """Make the edges of the files that a compiler's index knows again, with what it says; how
        many there were.
        """
        store, held = self._store, self._held
        with store.database.read() as session:
            held.refresh(session, store, self._tree_no)
            lookup = CodeLookup(store.database, store.scope, self._tree_no)
            index.bind(
                lambda path: [
                    NamedLines(node.no, node.name, node.first_line, last_line=node.last_line)
                    for node in lookup.in_file(session, path)
                    if node.kind != "file"
                ]
            )
            known = [(no, path) for path, (no, _) in held.paths.items() if index.precise(path)]
            revision, joined = self._join(session, known, index.precise) if known else (0, [])
        # Whoever has written meanwhile has made the edges anew; they are left as syntax tells until
        # the next time.
        return len(known) if known and self._write_if(joined, revision, guard) else 0

    def _write_if(self, joined: Sequence[Joined], revision: int, guard: Guard) -> int:
        """Write edges if nobody else has written since; the revision then, or 0."""
        with self._store.database.write(is_derived=True) as session:
            guard(session)
            if self._store.revision(session, self._tree_no) != revision:
                return 0
            return self._write(session, joined, [each.file_no for each in joined])

    def _write(self, session: Session, joined: Sequence[Joined], numbers: Sequence[int]) -> int:
        revision = self._store.next_revision(session, self._tree_no)
        made = {each.file_no: each for each in joined if each.edges is not None}
        self._store.put_edges(
            session, [(no, each.edges or b"", each.asked, revision) for no, each in made.items()]
        )
        self._store.unmark(session, [no for no in numbers if no not in made])
        self._held.wrote_edges({no: each.asked for no, each in made.items()}, revision)
        return revision

    def _join(
        self,
        session: Session,
        stale: Sequence[tuple[int, str]],
        precise: Callable[[str], Precise] | None = None,
    ) -> tuple[int, list[Joined]]:
        held = self._held
        held.refresh(session, self._store, self._tree_no)
        table = StoredTable(session, self._store, self._tree_no, held=held)
        if len(stale) > _MANY:
            table.load_all()
        joiner = Joiner(table, held.files(manifest_reader(self._reader)), precise)
        paths = dict(stale)
        found = [] if precise is not None else self._join_partial(session, joiner, paths)
        rows = self._store.facts(
            session, "uses", [no for no in paths if all(no != each.file_no for each in found)]
        )
        return held.revision, [
            *found,
            *(joiner.join(no, paths[no], bytes(uses)) for no, uses in rows),
        ]

    def _join_partial(
        self, session: Session, joiner: Joiner, paths: dict[int, str]
    ) -> list[Joined]:
        """The edges of the file that was just written, if a part of it is as it was and nobody has
        written since.
        """
        number, partial = self._held.partial or (0, None)
        if partial is None or number not in paths or partial.revision != self._held.revision:
            return []
        asked = [bytes(row[1]) for row in self._store.facts(session, "asked", [number])]
        stayed = divide(partial, self._store.edges(session, [number]).get(number, b""))
        joined = (
            joiner.join_rest(number, partial.facts, stayed, asked=asked[0])
            if stayed and asked
            else None
        )
        return [joined] if joined is not None else []
